//! What the scheduler publishes, where this process may have it do so.

// The portable platform asks no kernel.
#![cfg(not(feature = "portable"))]
#![cfg(feature = "ebpf")]

mod pinning;

use std::sync::mpsc::{self, TryRecvError};
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
    assert!(ebpf::loaded());
    ebpf::load().expect("a second time changes nothing");
    let cpus = pinning::cpus();
    let (send, number) = mpsc::channel();
    // Both end with the closure below, also if that panics.
    let (wake, sleep) = mpsc::channel::<()>();
    let (end, spin) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            // On another CPU, where there is one: there its own says nothing about it.
            pinning::pin(cpus[cpus.len() - 1]);
            send.send(cpu::current().unwrap()).unwrap();
            sleep.recv().unwrap_err();
            while spin.try_recv() == Err(TryRecvError::Empty) {
                std::hint::spin_loop();
            }
        });
        let (wake, _end) = (wake, end);
        pinning::pin(pinning::cpus()[0]);
        let number = number.recv().unwrap();
        assert!(comes(|| run_status::known_not_to_run(number)), "it sleeps, on whatever CPU");

        // SAFETY: the child calls only async-signal-safe functions.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let part = ebpf::loaded() || run_status::known_not_to_run(number);
            // SAFETY: ends the child without running the parent's destructors.
            unsafe { libc::_exit(i32::from(part)) };
        }
        let mut status = 0;
        // SAFETY: `child` is ours and `status` a valid place.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert_eq!(status, 0, "the child has no part in what its parent loaded");

        drop(wake);
        // It spins, so it runs but for the moments that others take from it.
        assert!(comes(|| !run_status::known_not_to_run(number)));
    });
}
