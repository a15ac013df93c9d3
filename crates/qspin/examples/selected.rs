//! What the choice costs: an uncontended pair of the chosen lock, beside the locks that can be chosen.
//!
//! `QSPIN_LOCK=native cargo run --release -p qspin --example selected`

use std::time::Instant;

use lock_api::RawMutex;

const PAIRS: u32 = 20_000;
const ROUNDS: usize = 41;

/// Nanoseconds of one acquisition and release.
#[inline(never)]
fn pair<R: RawMutex>(lock: &R) -> f64 {
    let begin = Instant::now();
    for _ in 0..PAIRS {
        let held = lock.lock();
        // SAFETY: locked just above.
        unsafe { lock.unlock(held) };
    }
    begin.elapsed().as_nanos() as f64 / f64::from(PAIRS)
}

fn main() {
    let chosen = qspin::select::RawMutex::INIT;
    let native = qspin::native::RawMutex::INIT;
    let paravirt = qspin::paravirt::RawMutex::INIT;
    let backoff = qspin::backoff::RawMutex::INIT;
    let mut rounds: Vec<[f64; 4]> = (0..ROUNDS)
        .map(|_| [pair(&chosen), pair(&native), pair(&paravirt), pair(&backoff)])
        .collect();
    let name = format!("chosen: {}", qspin::select::chosen());
    for (at, lock) in [name.as_str(), "native", "paravirt", "backoff"].into_iter().enumerate() {
        rounds.sort_by(|a, b| a[at].total_cmp(&b[at]));
        println!("{lock:20} {:6.2} ns", rounds[ROUNDS / 2][at]);
    }
}
