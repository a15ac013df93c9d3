//! Futexes that fail: with EINTR and EAGAIN, each time, and on a clock that may be set.

use std::process::Command;
use std::time::{Duration, Instant};

use super::counts_are_exact;

/// What a run of this program is for, when another run of it has started it.
const ROLE: &str = "QSPIN_TEST_ROLE";

const ALLOW: u32 = 0x7fff_0000;
const ERROR: u32 = 0x0005_0000;
const KILL: u32 = 0x8000_0000;

/// Where the kernel puts the number of a system call, and the lower half of its second argument.
const NUMBER: u32 = 0;
const OPERATION: u32 = 16 + 8;

/// From now on a futex call whose operation, masked by `mask`, is `value` gets the `answer`. Returns whether
/// that is permitted.
fn filter(mask: u32, value: u32, answer: u32) -> bool {
    let load = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    let compare = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    let and = (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16;
    let say = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut filter = [
        step(load, 0, 0, NUMBER),
        step(compare, 0, 4, libc::SYS_futex as u32),
        step(load, 0, 0, OPERATION),
        step(and, 0, 0, mask),
        step(compare, 0, 1, value),
        step(say, 0, 0, answer),
        step(say, 0, 0, ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: a valid program, for all threads of this process.
    unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::syscall(libc::SYS_seccomp, 1, 1, &raw const program) == 0
    }
}

/// Runs the test `name` of this program as another process, with `role`.
fn run_again(name: &str, role: &str) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture", "--test-threads", "1"]).env(ROLE, role);
    let mut child = command.spawn().unwrap();
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "{name} as {role}: {status:?}");
            return;
        }
        if begun.elapsed() > super::LONG {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("{name} as {role} hangs");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether this process is the one that plays `role`; the others start it.
fn plays(role: &str) -> bool {
    std::env::var(ROLE).is_ok_and(|own| own == role)
}

/// No futex ever waits: each returns at once, as after a signal, or as if the word had changed.
#[test]
fn waits_that_fail_are_spurious() {
    const NAME: &str = "futexes::waits_that_fail_are_spurious";
    for (role, errno) in [("interrupted", libc::EINTR), ("changed", libc::EAGAIN)] {
        if plays(role) {
            // Of both waits, with and without a time: FUTEX_WAIT is 0, FUTEX_WAIT_BITSET 9.
            let answer = ERROR | errno as u32;
            let all = 0x7f;
            if !(filter(all, 0, answer) && filter(all, libc::FUTEX_WAIT_BITSET as u32, answer)) {
                println!("skipped: filters of system calls are refused");
            }
            return counts_are_exact::<qspin::RawMutex, qspin::rwlock::RawRwLock>();
        }
    }
    if std::env::var(ROLE).is_err() {
        run_again(NAME, "interrupted");
        run_again(NAME, "changed");
    }
}

/// In a process that is killed where a futex waits by the clock on the wall.
pub(super) fn no_wait_is_on_the_wall_clock() {
    const NAME: &str = "clock::no_wait_asks_the_clock_on_the_wall";
    if !plays("wall") {
        return run_again(NAME, "wall");
    }
    let wall = libc::FUTEX_CLOCK_REALTIME as u32;
    if !filter(wall, wall, KILL) {
        println!("skipped: filters of system calls are refused");
    }
    let moment = Duration::from_millis(50);
    let (mutex, condition) = (qspin::Mutex::new(()), qspin::Condvar::new());
    let shared = qspin::RwLock::new(());
    let (mut held, writes) = (mutex.lock(), shared.write());
    std::thread::scope(|scope| {
        scope.spawn(|| assert!(shared.try_read_for(moment).is_none()));
        scope.spawn(|| assert!(shared.try_write_for(moment).is_none()));
        condition.wait_for(&mut held, moment);
        scope.spawn(|| assert!(mutex.try_lock_for(moment).is_none()));
        // Longer than they wait.
        std::thread::sleep(4 * moment);
    });
    drop((held, writes));
    // The test's runner joins its thread, and the C library joins by the clock on the wall.
    std::process::exit(0);
}
