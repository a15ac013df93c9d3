//! Who is inside, and in which order they came.

use super::{current, with};
use crate::failure::{Failure, Kind};
use crate::scenario::Mode;

/// The running context is about to acquire; returns the time.
#[must_use]
pub fn starts() -> u64 {
    with(|ledger| {
        ledger.stamps += 1;
        ledger.stamps
    })
}

/// The running context, which started at `start`, has acquired lock `lock`.
///
/// # Errors
/// It should not have.
pub fn entered(lock: usize, mode: Mode, start: u64, interrupt: bool) -> Result<(), Failure> {
    let slot = current();
    with(|ledger| {
        let fifo = ledger.check_fifo;
        let lock = &mut ledger.locks[lock];
        if fifo {
            match lock.arrivals.pop_front() {
                Some(first) if first == slot => {}
                Some(first) => {
                    let message = format!("context {slot} was served before context {first}");
                    return Err(Failure::new(Kind::Fifo, message));
                }
                None => {
                    let message = format!("context {slot} was served without having arrived");
                    return Err(Failure::new(Kind::Fifo, message));
                }
            }
        }
        match mode {
            Mode::Write => {
                lock.announced = None;
                lock.writers += 1;
                lock.writes += 1;
            }
            Mode::Read => {
                if !interrupt && lock.announced.is_some_and(|since| since < start) {
                    let message = format!("reader {slot} came later than the waiting writer");
                    return Err(Failure::new(Kind::WriterPassed, message));
                }
                lock.readers += 1;
            }
        }
        if lock.writers > 1 || lock.writers > 0 && lock.readers > 0 {
            let message = format!("{} writers and {} readers inside", lock.writers, lock.readers);
            return Err(Failure::new(Kind::Exclusion, message));
        }
        Ok(())
    })
}

/// The running context is about to release lock `lock`.
pub fn left(lock: usize, mode: Mode) {
    with(|ledger| {
        let lock = &mut ledger.locks[lock];
        match mode {
            Mode::Write => lock.writers -= 1,
            Mode::Read => lock.readers -= 1,
        }
    });
}

/// How many writing sections lock `lock` has had.
#[must_use]
pub fn writes(lock: usize) -> u32 {
    with(|ledger| ledger.locks[lock].writes)
}
