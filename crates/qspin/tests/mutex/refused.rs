//! `membarrier` forbidden, refused from the beginning, and refused from some moment on.

use std::os::unix::process::CommandExt;
use std::process::Command;

use lock_api::RawMutex as _;
use qspin::RawMutex;

use super::{LONG, contend, role, run_again};

/// The number of the system call in a filter's word of data, and the architecture's number.
const NUMBER: u32 = 0;
/// `SECCOMP_RET_ALLOW`, and `SECCOMP_RET_ERRNO` with EPERM.
const ALLOW: u32 = 0x7fff_0000;
const REFUSE: u32 = 0x0005_0000 | libc::EPERM as u32;

/// Has `membarrier` refused to this process from now on. Async-signal-safe.
fn refuse() -> bool {
    let load = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    let compare = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    let answer = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut filter = [
        step(load, 0, 0, NUMBER),
        step(compare, 0, 1, libc::SYS_membarrier as u32),
        step(answer, 0, 0, REFUSE),
        step(answer, 0, 0, ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: a valid program, for all threads of this process.
    unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::syscall(libc::SYS_seccomp, 1, 1, &raw const program) == 0
    }
}

/// A query is refused, too.
fn is_refused() -> bool {
    // SAFETY: the call touches no memory.
    unsafe { libc::syscall(libc::SYS_membarrier, 0, 0, 0) < 0 }
}

fn check(name: &str, prepare: impl FnOnce(&mut Command)) {
    let status = run_again(name, "contend", prepare, LONG);
    assert!(status.is_some_and(|status| status.success()), "{name}: {status:?}");
}

/// In the process that was started: true if this is it.
fn contends() -> bool {
    if role().is_none() {
        return false;
    }
    let lock = RawMutex::INIT;
    assert_eq!(contend(&lock, 6, 5000), 30_000);
    true
}

#[test]
fn forbidden_by_the_environment() {
    if !contends() {
        check("refused::forbidden_by_the_environment", |command| {
            command.env("QSPIN_MEMBARRIER", "off");
        });
    }
}

#[test]
fn refused_from_the_beginning() {
    if role().is_some() && !is_refused() {
        println!("skipped: filters of system calls are refused");
    }
    if !contends() {
        check("refused::refused_from_the_beginning", |command| {
            // SAFETY: makes two system calls.
            unsafe {
                command.pre_exec(|| {
                    refuse();
                    Ok(())
                })
            };
        });
    }
}

#[test]
fn refused_from_some_moment_on() {
    if role().is_none() {
        check("refused::refused_from_some_moment_on", |_| {});
        return;
    }
    let lock = RawMutex::INIT;
    assert_eq!(contend(&lock, 4, 2000), 8000);
    if !refuse() || !is_refused() {
        println!("skipped: filters of system calls are refused");
    }
    // The buckets that are quiet now rely on a barrier that there is no more.
    for _ in 0..20 {
        let other = RawMutex::INIT;
        assert_eq!(contend(&other, 4, 200), 800);
    }
    assert_eq!(contend(&lock, 4, 2000), 8000);
}
