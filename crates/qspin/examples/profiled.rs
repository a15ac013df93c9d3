//! Two threads that wait for each other's locks, for `qspin stat PID` and `qspin run --stats` to look at.
//!
//! Built with the feature `profile`. Prints its number, works for so many rounds, and says how often it has taken
//! each lock.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::Duration;

use qspin::{Mutex, RwLock};

static HOT: Mutex<u64> = Mutex::new(0);
static TABLE: RwLock<u64> = RwLock::new(0);
static HELD: AtomicBool = AtomicBool::new(false);

#[inline(never)]
fn keeps() {
    let mut guard = HOT.lock();
    HELD.store(true, SeqCst);
    thread::sleep(Duration::from_millis(10));
    *guard += 1;
    drop(guard);
    HELD.store(false, SeqCst);
    thread::sleep(Duration::from_millis(1));
}

#[inline(never)]
fn waits() {
    while !HELD.load(SeqCst) {
        thread::yield_now();
    }
    *HOT.lock() += 1;
    let before = *TABLE.read();
    *TABLE.write() = before + 1;
}

fn main() {
    let rounds =
        std::env::args().nth(1).and_then(|rounds| rounds.parse::<u64>().ok()).unwrap_or(20);
    println!("{}", std::process::id());
    let other = thread::spawn(move || (0..rounds).for_each(|_| waits()));
    (0..rounds).for_each(|_| keeps());
    HELD.store(true, SeqCst);
    let _ = other.join();
    println!("{} {rounds}", *HOT.lock());
}
