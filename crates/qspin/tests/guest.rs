//! A program that links the library and has one lock: what it costs in memory, and what was done before its `main`.
//!
//! A program without the test harness and without Rust's start: `main` comes right after the functions that run at load
//! time. It runs itself again, under `ptrace`, and sees each of its system calls.

#![no_main]

use std::ffi::{CString, c_char, c_int, c_void};

use qspin::Mutex;

static COUNT: Mutex<u64> = Mutex::new(0);

/// No operation that there is: the call fails, and does nothing. Its next argument says where the program is.
const MARK: u64 = 0x6775_6573;
/// Before functions that run at load time and have no number, as this library's has none.
const LOADING: u64 = 1;
const MAIN: u64 = 2;
/// After the first acquisition and release, and after a thousand of them.
const FIRST: u64 = 3;
const MANY: u64 = 4;

fn mark(place: u64) {
    // SAFETY: an operation that does not exist.
    unsafe { libc::prctl(MARK as c_int, place, 0, 0, 0) };
}

#[used]
#[unsafe(link_section = ".init_array.00001")]
static AT_LOAD: extern "C" fn() = {
    extern "C" fn at_load() {
        mark(LOADING);
    }
    at_load
};

#[unsafe(no_mangle)]
extern "C" fn main(arguments: c_int, _: *const *const c_char) -> c_int {
    if arguments > 1 {
        mark(MAIN);
        *COUNT.lock() += 1;
        mark(FIRST);
        for _ in 0..1000 {
            *COUNT.lock() += 1;
        }
        mark(MANY);
        return c_int::from(*COUNT.lock() != 1001);
    }
    statics_are_small();
    calls_are_few();
    0
}

/// What the program has in memory that can be written, mapped from its file or zeros, and what each thread has.
fn statics_are_small() {
    unsafe extern "C" fn first(
        about: *mut libc::dl_phdr_info,
        _: usize,
        sum: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader's description of the program, which comes first, and a number of the caller's.
        unsafe {
            let headers =
                std::slice::from_raw_parts((*about).dlpi_phdr, (*about).dlpi_phnum.into());
            let counts = |header: &&libc::Elf64_Phdr| {
                header.p_type == libc::PT_TLS
                    || header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_W != 0
            };
            *sum.cast::<u64>() = headers.iter().filter(counts).map(|header| header.p_memsz).sum();
        }
        // And no more.
        1
    }
    let mut bytes = 0_u64;
    // SAFETY: a function that takes that number.
    unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut bytes).cast()) };
    println!("passed: a program with one mutex has {bytes} bytes of statics");
    assert!((100_000..=1 << 20).contains(&bytes), "{bytes}: the library's tables are among them");
}

/// The numbers of the system calls of a run of this program, by the mark that came before; `None` where `ptrace` is
/// forbidden.
fn calls() -> Option<Vec<(u64, i64)>> {
    let program =
        CString::new(std::env::current_exe().unwrap().into_os_string().into_encoded_bytes())
            .unwrap();
    let arguments = [program.as_ptr(), c"child".as_ptr(), std::ptr::null()];
    let environment = [c"QSPIN_LOCK=native".as_ptr(), std::ptr::null()];
    // SAFETY: the child makes async-signal-safe calls only, on texts that were made before.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: as above.
        unsafe {
            if libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) == 0 {
                libc::execve(program.as_ptr(), arguments.as_ptr(), environment.as_ptr());
            }
            libc::_exit(77);
        }
    }
    let mut found = Vec::new();
    let (mut place, mut enters, mut status) = (0, true, 0);
    loop {
        // SAFETY: this process's child, and a valid place.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        if libc::WIFEXITED(status) {
            return match libc::WEXITSTATUS(status) {
                0 => Some(found),
                77 => None,
                code => panic!("the program ended with {code}"),
            };
        }
        assert!(libc::WIFSTOPPED(status), "it was killed: {status}");
        let signal = libc::WSTOPSIG(status);
        if signal == libc::SIGTRAP {
            // It was executed.
            // SAFETY: a child that is stopped.
            unsafe {
                libc::ptrace(libc::PTRACE_SETOPTIONS, child, 0, libc::PTRACE_O_TRACESYSGOOD);
            }
        } else if signal == libc::SIGTRAP | 0x80 {
            if enters {
                // SAFETY: zeros are valid; the place is one for what is told, which is of an entry then.
                let call = unsafe {
                    let mut told: libc::ptrace_syscall_info = std::mem::zeroed();
                    let size = size_of_val(&told);
                    libc::ptrace(libc::PTRACE_GET_SYSCALL_INFO, child, size, &raw mut told);
                    told.u.entry
                };
                let number = call.nr as i64;
                if (number, call.args[0]) == (libc::SYS_prctl, MARK) {
                    assert_eq!(call.args[1], place + 1, "it comes to each mark");
                    place = call.args[1];
                } else {
                    found.push((place, number));
                }
            }
            enters = !enters;
        }
        // SAFETY: as above.
        unsafe { libc::ptrace(libc::PTRACE_SYSCALL, child, 0, 0) };
    }
}

fn calls_are_few() {
    let Some(calls) = calls() else {
        println!("skipped: no process may trace another one here");
        return;
    };
    let after = |mark| -> Vec<i64> {
        calls.iter().filter(|(place, _)| *place == mark).map(|(_, call)| *call).collect()
    };
    println!(
        "passed: a program with one mutex makes system calls {:?} at load, {:?} of the first lock, {:?} of a thousand others",
        after(LOADING),
        after(MAIN),
        after(FIRST)
    );
    assert!(!after(0).is_empty() && !after(MANY).is_empty(), "the loader's, and those of the end");
    // What the C library needs to note handlers: memory.
    let of_the_allocator = [libc::SYS_brk, libc::SYS_mmap, libc::SYS_getrandom];
    for call in after(LOADING) {
        assert!(of_the_allocator.contains(&call), "system call {call} before main");
    }
    // The first release asks for barriers, for which a thread takes a number.
    let of_the_first = [libc::SYS_membarrier, libc::SYS_madvise, libc::SYS_gettid];
    for call in after(MAIN) {
        assert!(of_the_first.contains(&call), "system call {call} of the first lock");
    }
    assert_eq!(after(FIRST), [], "of a lock that no thread waits for");
}
