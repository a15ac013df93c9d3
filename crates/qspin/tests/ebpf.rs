//! What the scheduler publishes, where this process may have it do so.

#![cfg(feature = "ebpf")]

mod pinning;

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Barrier, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use qspin::platform::{cpu, ebpf, run_status};

/// Waits for what must come, but not for ever.
fn comes(condition: impl Fn() -> bool) -> bool {
    let began = Instant::now();
    while !condition() {
        if began.elapsed() > Duration::from_secs(10) {
            return false;
        }
        thread::sleep(Duration::from_millis(1));
    }
    true
}

#[test]
fn a_thread_that_sleeps_is_known_not_to_run_and_one_that_spins_to_run() {
    if let Err(why) = ebpf::load() {
        assert!(!matches!(why, ebpf::NotPublished::Failed(..)), "{why}");
        println!("skipped: {why}");
        return;
    }
    ebpf::load().expect("a second time changes nothing");
    let (send, number) = mpsc::channel();
    let (asleep, spinning, end) = (Barrier::new(2), AtomicBool::new(false), AtomicBool::new(false));
    let cpus = pinning::cpus();
    thread::scope(|scope| {
        scope.spawn(|| {
            // On another CPU, where there is one: there its own says nothing about it.
            pinning::pin(cpus[cpus.len() - 1]);
            send.send(cpu::current().unwrap()).unwrap();
            asleep.wait();
            spinning.store(true, SeqCst);
            while !end.load(SeqCst) {
                std::hint::spin_loop();
            }
        });
        pinning::pin(cpus[0]);
        let number = number.recv().unwrap();
        assert!(comes(|| run_status::known_not_to_run(number)), "it sleeps, on whatever CPU");

        // The child has no part in what its parent loaded.
        // SAFETY: the child calls only async-signal-safe functions.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let known = run_status::known_not_to_run(number);
            // SAFETY: ends the child without running the parent's destructors.
            unsafe { libc::_exit(i32::from(known)) };
        }
        let mut status = 0;
        // SAFETY: `child` is ours and `status` a valid place.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert_eq!(status, 0, "the child knew");

        asleep.wait();
        assert!(comes(|| spinning.load(SeqCst)));
        // It spins, so it runs but for the moments that others take from it.
        assert!(comes(|| !run_status::known_not_to_run(number)));
        end.store(true, SeqCst);
    });
}
