//! Which contexts are inside, and in which order they came.

use super::{Lock, Role, Touched, coverage, current, with};
use crate::failure::{Failure, Kind};
use crate::scenario::Mode;

/// The running context is about to acquire; returns the time.
#[must_use]
pub fn starts() -> u64 {
    with(|trace| {
        trace.stamps += 1;
        trace.stamps
    })
}

/// The running context, which started at `start`, has acquired lock `lock`.
///
/// # Errors
/// It should not have.
pub fn entered(lock: usize, mode: Mode, start: u64, interrupt: bool) -> Result<(), Failure> {
    let slot = current();
    with(|trace| {
        let (fifo, bypass) = (trace.check_fifo, trace.bypass);
        trace.sections += 1;
        // What it has interrupted goes on, and has not looked yet.
        trace.slots[slot].dozed = (0, 0);
        let lock = &mut trace.locks[lock];
        if fifo {
            match lock.arrivals.pop_front().map(|first| first.slot) {
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
        } else {
            served(lock, slot, interrupt, bypass)?;
        }
        match mode {
            Mode::Write => {
                lock.announced = None;
                lock.writers += 1;
                lock.writes += 1;
            }
            Mode::Read | Mode::Upgradable => {
                lock.upgradable += u32::from(mode == Mode::Upgradable);
                if !interrupt && lock.announced.is_some_and(|since| since < start) {
                    let message = format!("reader {slot} came later than the waiting writer");
                    return Err(Failure::new(Kind::WriterPassed, message));
                }
                if !interrupt && !lock.admits && lock.admitted < start {
                    let message = format!("reader {slot} came in while none was admitted");
                    return Err(Failure::new(Kind::WriterPassed, message));
                }
                lock.readers += 1;
            }
        }
        if lock.writers > 1 || lock.writers > 0 && lock.readers > 0 {
            let message = format!("{} writers and {} readers inside", lock.writers, lock.readers);
            return Err(Failure::new(Kind::Exclusion, message));
        }
        if lock.upgradable > 1 {
            let message = format!("{} upgradable readers inside", lock.upgradable);
            return Err(Failure::new(Kind::Exclusion, message));
        }
        Ok(())
    })
}

/// A waiter that came before `slot` has been passed once more. An urgent waiter never is.
fn served(lock: &mut Lock, slot: usize, urgent: bool, bypass: Option<u32>) -> Result<(), Failure> {
    let Some(place) = lock.arrivals.iter().position(|arrival| arrival.slot == slot) else {
        // Past the queue: no place in it was taken.
        return Ok(());
    };
    let arrival = lock.arrivals.remove(place);
    let Some(most) = bypass else { return Ok(()) };
    if let Some(arrival) = arrival.filter(|arrival| urgent && arrival.passed > 0) {
        let message = format!("urgent context {slot} was passed by {}", arrival.passed);
        return Err(Failure::new(Kind::Bypass, message));
    }
    for waiter in lock.arrivals.range_mut(..place) {
        waiter.passed += 1;
        coverage::passed(waiter.passed);
        if waiter.passed > most {
            let message = format!("context {} was passed by {}", waiter.slot, waiter.passed);
            return Err(Failure::new(Kind::Bypass, format!("{message}, where {most} may")));
        }
    }
    Ok(())
}

/// A clock that ticks once a section.
#[must_use]
pub fn clock() -> u64 {
    with(|trace| trace.sections)
}

/// The running context is about to release lock `lock`.
pub fn left(lock: usize, mode: Mode) {
    with(|trace| {
        let lock = &mut trace.locks[lock];
        match mode {
            Mode::Write => lock.writers -= 1,
            Mode::Read | Mode::Upgradable => {
                lock.readers -= 1;
                lock.upgradable -= u32::from(mode == Mode::Upgradable);
            }
        }
    });
}

/// The running context, which is inside, writes once more.
pub fn wrote_again(lock: usize) {
    with(|trace| trace.locks[lock].writes += 1);
}

/// Lock `lock` is freed.
pub fn freed(lock: usize) {
    with(|trace| {
        trace.touched = Some(Touched::Word(Role::Lock { lock, index: 0 }));
        trace.locks[lock].freed = true;
    });
}

/// Whether lock `lock` was freed.
#[must_use]
pub fn is_freed(lock: usize) -> bool {
    with(|trace| trace.locks[lock].freed)
}

/// How many writing sections lock `lock` has had.
#[must_use]
pub fn writes(lock: usize) -> u32 {
    with(|trace| trace.locks[lock].writes)
}
