//! The default mutex on threads.

// The portable platform has no barrier for all threads, and does not notice a fork. What these share is not used then.
#![cfg_attr(feature = "portable", allow(dead_code))]

#[cfg(not(feature = "portable"))]
mod barrier;
mod budget;
mod fair;
#[cfg(not(feature = "portable"))]
mod fork;
#[cfg(not(feature = "portable"))]
mod refused;
mod times;
mod torture;

use std::process::{Command, ExitStatus};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// What a run of this program is for, when another run of it has started it.
const ROLE: &str = "QSPIN_TEST_ROLE";

/// Numbers that look random (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }
}

/// Runs the test `name` of this program as another process, with `role`; kills it when it has not ended
/// after `limit`, and returns `None`.
fn run_again(
    name: &str,
    role: &str,
    prepare: impl FnOnce(&mut Command),
    limit: Duration,
) -> Option<ExitStatus> {
    let program = std::env::current_exe().unwrap();
    let mut command = Command::new(program);
    command.args(["--exact", name, "--nocapture", "--test-threads", "1"]).env(ROLE, role);
    prepare(&mut command);
    let mut child = command.spawn().unwrap();
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        if begun.elapsed() > limit {
            child.kill().unwrap();
            child.wait().unwrap();
            return None;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The role of this process, if it has one.
fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}

/// Runs the test `name` once more, in a process where no other test runs; whether this is that one. For a bare
/// system call that forks, and copies the locks of the C library's heap as they are: while another test allocates
/// its child could not. And for what is exact only where no other test's threads use the same bucket of sleepers.
fn is_alone(name: &str) -> bool {
    if role().is_some() {
        return true;
    }
    let status = run_again(name, "alone", |_| {}, LONG);
    assert!(status.is_some_and(|status| status.success()), "{name}: {status:?}");
    false
}

/// A long time: what lasts longer hangs.
const LONG: Duration = Duration::from_secs(120);

/// Two threads that lock and unlock until told to stop; the longest that any thread has to wait in vain is
/// found by the thread that has started it.
fn contend(lock: &(impl lock_api::RawMutex + Sync), threads: u64, rounds: u64) -> u64 {
    let count = std::cell::UnsafeCell::new(0);
    struct Shared<'a>(&'a std::cell::UnsafeCell<u64>);
    // SAFETY: used by the owner of the lock only.
    unsafe impl Sync for Shared<'_> {}
    let shared = Shared(&count);
    let go = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for number in 0..threads {
            let (shared, go) = (&shared, &go);
            scope.spawn(move || {
                let mut random = Random(number);
                while !go.load(Relaxed) {
                    std::hint::spin_loop();
                }
                for _ in 0..rounds {
                    let guard = lock.lock();
                    // SAFETY: this thread holds the lock.
                    unsafe { *shared.0.get() += 1 };
                    for _ in 0..random.below(50) {
                        std::hint::spin_loop();
                    }
                    // SAFETY: locked above.
                    unsafe { lock.unlock(guard) };
                    for _ in 0..random.below(100) {
                        std::hint::spin_loop();
                    }
                }
            });
        }
        go.store(true, Relaxed);
    });
    count.into_inner()
}
