//! `qspin bench --remedy`: the remedies of document 001 against an owner that does not run, side by side on threads.

use qspin::platform::{holder, run_status};

use crate::bench::hinted;
use crate::contender::catalog::Lock;
use crate::remedy::{Remedy, SETS};
use crate::tune::Tune;

/// The locks that are measured where none is named: the document's, and the halting queue.
pub(in crate::command) const LOCKS: [&str; 4] = ["ticket", "simple", "yield", "paravirt"];

/// The tunables that the remedies set.
pub(super) const TUNES: &[&str] = &SETS;

/// What makes a remedy of a lock here.
///
/// # Errors
///
/// Why it is not to be had: in the lock, or on this machine.
pub(super) fn of(remedy: Remedy, lock: &Lock) -> Result<Vec<Tune>, String> {
    let tunes = remedy.tunes(|tunable| lock.heeds(tunable))?;
    match remedy {
        Remedy::None | Remedy::A => {}
        Remedy::B if lock.ours.and_then(hinted::measure).is_none() => {
            return Err(format!("only {} are built with owners that ask", LOCKS.join(", ")));
        }
        Remedy::B => holder::available().map_err(|why| why.to_string())?,
        Remedy::C if !run_status::available() => {
            return Err(
                "the C library has registered no rseq area, which tells on which CPU a thread is"
                    .to_owned(),
            );
        }
        Remedy::C => {}
    }
    Ok(tunes)
}

/// That a remedy is not to be had, in a sentence.
pub(in crate::command) fn left_out(lock: &str, remedy: Remedy, why: &str) -> String {
    format!("{lock} {remedy} is left out: {why}.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contender::catalog;

    #[test]
    fn what_a_lock_or_the_machine_lacks_is_told_and_not_measured() {
        for lock in catalog::locks().iter().filter(|lock| LOCKS.contains(&lock.name)) {
            assert!(of(Remedy::None, lock).is_ok());
            let hints = of(Remedy::B, lock);
            assert_eq!(hints.is_ok(), holder::available().is_ok(), "{hints:?}");
            let yields = of(Remedy::A, lock);
            assert_eq!(yields.is_err(), lock.name == "ticket", "{yields:?}");
        }
        let native = catalog::locks().into_iter().find(|lock| lock.name == "native").unwrap();
        let said = of(Remedy::B, &native).unwrap_err();
        assert!(said.contains("ticket, simple, yield, paravirt"), "{said}");
        let said = left_out(native.name, Remedy::A, "its waiters do not yield");
        assert_eq!(said, "native a is left out: its waiters do not yield.");
    }
}
