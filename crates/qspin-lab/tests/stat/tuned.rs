//! Tunables of a running process, changed by `qspin stat PID --tune`.

use std::process::Command;
use std::sync::Mutex;

use qspin::tuning::{self, Tuning};

use crate::{Forked, Idle, assert_said, stat, this};

/// The tunables are the process's, so one test at a time.
static TURN: Mutex<()> = Mutex::new(());

fn said(arguments: &[&str]) -> String {
    let output = stat(arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_process_that_waits_has_the_new_values_at_once() {
    let _turn = TURN.lock().unwrap();
    tuning::listen().unwrap();
    let lock = qspin::paravirt::Mutex::new(());
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Two threads that wait for each other, again and again.
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    let guard = lock.lock();
                    std::thread::yield_now();
                    drop(guard);
                }
            });
        }
        let text =
            said(&[&this(), "--tune", "numa_threshold_ns=2000000", "--tune", "defer=conditions"]);
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(text, "numa_threshold_ns: 1000000 -> 2000000\ndefer: always -> conditions\n");
    });
    let tuned = Tuning {
        numa_threshold_ns: 2_000_000,
        defer: tuning::Defer::Conditions,
        ..Tuning::DEFAULT
    };
    assert_eq!(tuning::get(), &tuned);
    tuning::set(&Tuning::DEFAULT);
}

#[test]
fn a_process_that_does_not_wait_has_them_at_its_next_wait() {
    let _turn = TURN.lock().unwrap();
    tuning::listen().unwrap();
    let text = said(&[&this(), "--tune", "steal_polls=5"]);
    assert_eq!(text, "steal_polls: 256 -> 5, when a thread next waits for a lock\n");
    assert_eq!(tuning::get().steal_polls, 5);
    tuning::set(&Tuning::DEFAULT);
}

#[test]
fn what_is_wrong_is_refused_and_changes_nothing() {
    let _turn = TURN.lock().unwrap();
    tuning::listen().unwrap();
    let before = *tuning::get();
    assert_said(&stat(&[&this(), "--tune", "kick_ahead=6"]), &["a number from 0 to 5"]);
    assert_said(&stat(&[&this(), "--tune", "kick_ahead"]), &["has no value"]);
    assert_said(&stat(&[&this(), "--tune", "moon=full"]), &["no tunable is called `moon`"]);
    let two = ["--tune", "steal_polls=5", "--tune", "kick_ahead=6"];
    assert_said(&stat(&[&[&*this()], &two[..]].concat()), &["0 to 5"]);
    assert_said(&stat(&[&this(), "--tune", "steal_polls=5", "--reset"]), &["--reset"]);
    assert_said(&stat(&["--tune", "steal_polls=5"]), &["PID"]);
    assert_eq!(tuning::get(), &before);
}

#[test]
fn a_process_that_does_not_listen_says_what_would_make_it_listen() {
    let cat = Idle::cat(&mut Command::new("cat"));
    assert_said(
        &stat(&[&cat.id(), "--tune", "steal_polls=5"]),
        &["(cat)", "does not listen", "qspin run", "qspin::tuning::listen()"],
    );
}

#[test]
fn a_child_is_tuned_from_its_first_wait_on_and_alone() {
    let _turn = TURN.lock().unwrap();
    tuning::listen().unwrap();
    let idle = Forked::after(false, || {});
    assert_said(
        &stat(&[&idle.id(), "--tune", "steal_polls=5"]),
        &["the child of a fork", "waited for a lock since"],
    );
    let child = Forked::after(false, || {
        let _ = tuning::get();
    });
    let text = said(&[&child.id(), "--tune", "steal_polls=6"]);
    assert_eq!(text, "steal_polls: 256 -> 6, when a thread next waits for a lock\n");
    assert_eq!(tuning::get(), &Tuning::DEFAULT);
}
