//! The NUMA-aware order on real threads, on machines that this one is not: the order of every
//! acquisition, every counter, and how long any thread waits.
//!
//! A topology is read once, when a program asks for it, so each play has a process of its own: this program
//! again, for one of the functions that are ignored otherwise.

#[path = "../halting/mod.rs"]
mod halting;
mod model;
mod stage;
#[path = "../trees/mod.rs"]
mod trees;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::process::Command;
use std::sync::atomic::AtomicU32;

use qspin::platform::topology;
use qspin_core::locks::queued::{CnaLock, CnaParavirtLock};
use qspin_core::platform::CpuId;

use stage::{Comes, Outcome, Play, play};

/// What the lock counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) local: u64,
    pub(crate) remote: u64,
    pub(crate) splices: u64,
    pub(crate) flushes: u64,
    pub(crate) skips: u64,
    pub(crate) prioritised: u64,
}

type Cna = CnaLock<AtomicU32>;
type CnaParavirt = CnaParavirtLock<AtomicU32>;

/// Runs `part` on this topology; returns what it says in a line that begins with `said: `.
fn run(part: &str, topology: impl AsRef<OsStr>) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture", part])
        .env("QSPIN_TOPOLOGY", topology.as_ref())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{part}: {output:?}");
    assert!(text.contains("1 passed"), "there is no {part}");
    let at = text.find("said: ").expect("it says something");
    text[at + 6..].lines().next().unwrap_or("").to_owned()
}

/// Eight that wait, and one that owns the lock.
const EIGHT_WAIT: usize = 9;

fn plainly(turns: u64, threshold: u32, halts: bool) -> Play {
    Play { comes: vec![Comes::Plainly; EIGHT_WAIT], turns, threshold, skip_bits: 0, halts }
}

/// How many places the threads are laid on.
fn places() -> u64 {
    let topology = topology::in_force();
    let threads = (0..EIGHT_WAIT as u32).filter_map(CpuId::new);
    let cpus = threads.filter_map(|thread| topology.cpu_of_thread(thread));
    let places: BTreeSet<u32> = cpus.map(|cpu| topology.place_of(cpu)).collect();
    places.len() as u64
}

/// Says what came out of a long play, and checks what always holds.
fn check(outcome: &Outcome, threshold: u64) {
    let Counts { local, remote, splices, flushes, .. } = outcome.counts;
    println!("said: {:?} longest {} {}", outcome.counts, outcome.longest, outcome.passed_over);
    assert!(local > 0 && remote > 0 && splices > 0 && flushes > 1, "{:?}", outcome.counts);
    // The order's bound: a flush for each of the other places, and the waiters that came before.
    let places = places();
    if places == 2 {
        assert!(local >= 9 * remote, "nine of ten hand-overs are local: {local}, {remote}");
    }
    let bound = (places - 1) * (threshold + 1);
    assert!(outcome.passed_over <= bound, "{} times, more than {bound}", outcome.passed_over);
    let longest = bound + EIGHT_WAIT as u64;
    assert!(outcome.longest <= longest, "{} turns, more than {longest}", outcome.longest);
    assert!(outcome.longest > EIGHT_WAIT as u64, "the order does something: {outcome:?}");
}

#[test]
#[ignore = "a part of other tests"]
fn part_spinning() {
    check(&play::<Cna>(plainly(120, 25, false)), 25);
}

#[test]
#[ignore = "a part of other tests"]
fn part_halting() {
    check(&play::<CnaParavirt>(plainly(600, 50, true)), 50);
}

#[test]
fn nine_of_ten_hand_overs_are_local_and_the_order_is_the_model_s() {
    for topology in ["2x4x1", "4x4x1"] {
        println!("cna, {topology}: {}", run("part_spinning", topology));
    }
}

#[test]
fn so_it_is_where_waiters_halt() {
    for topology in ["2x4x1", "3x18x2", "8x1x1"] {
        println!("cna-paravirt, {topology}: {}", run("part_halting", topology));
    }
}

#[test]
fn so_it_is_on_machines_with_levels() {
    for tree in [trees::epyc(), trees::four_sockets(), trees::clusters(), trees::asymmetric()] {
        println!("cna-paravirt: {}", run("part_halting", tree.path()));
    }
    println!("cna: {}", run("part_spinning", trees::epyc().path()));
}

/// A queue that comes once and is served. The first to come is the pending waiter of a lock that spins.
fn once(comes: &[(usize, Comes)], halts: bool) -> Play {
    let mut play = plainly(0, 1000, halts);
    comes.iter().for_each(|&(thread, how)| play.comes[thread] = how);
    play
}

#[test]
#[ignore = "a part of other tests"]
fn part_once_spinning() {
    println!("said: {:?}", play::<Cna>(once(&[], false)).order);
}

#[test]
#[ignore = "a part of other tests"]
fn part_once_halting() {
    println!("said: {:?}", play::<CnaParavirt>(once(&[], true)).order);
}

/// By hand, not by the model. Threads are laid on the nodes in turn.
#[test]
fn those_near_come_first_and_of_those_far_the_nearest() {
    for _ in 0..5 {
        // Behind the first comes 1's node, then 0's last one, since no thread was behind it.
        assert_eq!(run("part_once_spinning", "2x8x1"), "[0, 1, 3, 5, 7, 8, 2, 4, 6]");
        assert_eq!(run("part_once_halting", "2x8x1"), "[0, 2, 4, 6, 8, 1, 3, 5, 7]");
    }
    assert_eq!(run("part_once_spinning", "1x8x1"), "[0, 1, 2, 3, 4, 5, 6, 7, 8]");
    // 1 and 3 share a cache of node 1, 5 and 7 another; of node 0: 0 and 2, 4 and 6, and 8 alone.
    let epyc = trees::epyc();
    assert_eq!(run("part_once_spinning", epyc.path()), "[0, 1, 3, 8, 5, 7, 2, 6, 4]");
    // The nodes stand in a row: after 1's come 2's, and not 3's, which are farther.
    let row = trees::four_sockets();
    assert_eq!(run("part_once_spinning", row.path()), "[0, 1, 5, 8, 2, 6, 7, 3, 4]");
}

fn in_a_handler(how: Comes) {
    let outcome = play::<Cna>(once(&[(2, how)], false));
    assert_eq!(outcome.order, [0, 1, 2, 4, 6, 8, 3, 5, 7]);
    assert_eq!(outcome.counts.prioritised, 1);
    println!("said: done");
}

/// Often, and while all wait asleep.
fn in_a_handler_that_halts(how: Comes) {
    let mut often = plainly(200, 50, true);
    often.comes[3] = how;
    let outcome = play::<CnaParavirt>(often);
    assert!(outcome.counts.prioritised > 10 && outcome.counts.splices > 10, "{outcome:?}");
    println!("said: done");
}

#[test]
#[ignore = "a part of other tests"]
fn part_handler_that_says_so() {
    in_a_handler(Comes::InHandler);
}

#[test]
#[ignore = "a part of other tests"]
fn part_handler_above_a_wait() {
    in_a_handler(Comes::InterruptingAWait);
}

#[test]
#[ignore = "a part of other tests"]
fn part_handler_that_says_so_halts() {
    in_a_handler_that_halts(Comes::InHandler);
}

#[test]
#[ignore = "a part of other tests"]
fn part_handler_above_a_wait_halts() {
    in_a_handler_that_halts(Comes::InterruptingAWait);
}

#[test]
fn a_signal_handler_is_never_moved() {
    for handler in ["part_handler_that_says_so", "part_handler_above_a_wait"] {
        run(handler, "2x8x1");
        run(&format!("{handler}_halts"), "2x8x1");
    }
}

#[test]
#[ignore = "a part of other tests"]
fn part_in_real_time() {
    if let Err(why) = stage::real_time_is_allowed() {
        println!("said: skipped: SCHED_FIFO is refused: {why}");
        return;
    }
    let outcome = play::<CnaParavirt>(once(&[(1, Comes::InRealTime)], true));
    assert_eq!(outcome.order, [0, 1, 3, 5, 7, 8, 2, 4, 6]);
    assert_eq!(outcome.counts.prioritised, 1);
    println!("said: done");
}

#[test]
#[cfg_attr(feature = "portable", ignore = "the portable platform knows no policies")]
fn a_thread_with_a_real_time_policy_is_never_moved() {
    println!("{}", run("part_in_real_time", "2x8x1"));
}

#[test]
#[ignore = "a part of other tests"]
fn part_skipping() {
    let mut skipping = plainly(100, 25, false);
    skipping.skip_bits = 2;
    let outcome = play::<Cna>(skipping);
    assert!(outcome.counts.skips > 0 && outcome.counts.splices > 0, "{outcome:?}");
    println!("said: {:?}", outcome.counts);
}

#[test]
fn most_heads_do_not_look_while_the_secondary_queue_is_empty() {
    println!("{}", run("part_skipping", "2x8x1"));
}
