//! What a waiter does under each lock: the one property that explains most of a chart.
//!
//! With two dozen contenders a colour for each lock tells nothing. A colour for each *way of
//! waiting* tells the story: the queues that spin fall off a cliff where threads outnumber CPUs,
//! and the locks whose waiters sleep do not.

use qspin_core::locks::{Id, Lock, Waits};

/// How the waiters of a lock wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// In a queue, and every waiter spins until its turn: first come, first served, or those near
    /// the holder first.
    Queue,
    /// The first thread to come after the release acquires it; waiters spin.
    Spin,
    /// Waiters spin a little, then give their CPU away and try again.
    Yield,
    /// Waiters sleep in the kernel until they are woken.
    Sleep,
    /// A lock that this version does not know.
    Other,
}

impl Family {
    /// All families, in the order of a legend.
    pub const ALL: [Self; 5] = [Self::Queue, Self::Spin, Self::Yield, Self::Sleep, Self::Other];

    /// The family of a lock by its name in the rows: of ours by the register, of the peers by what is
    /// known of them, since rows come from other builds with other peers, too.
    #[must_use]
    pub fn of(lock: &str) -> Self {
        match ours(lock) {
            Some(lock) => match lock.waits {
                Waits::Halts => Self::Sleep,
                Waits::Yields => Self::Yield,
                Waits::Spins if lock.queues() => Self::Queue,
                Waits::Spins => Self::Spin,
            },
            None => match lock {
                "ck_mcs" => Self::Queue,
                "spin" | "spinning_top" | "mcslock" | "pthread_spin" | "ck_fas" | "spin-rw" => {
                    Self::Spin
                }
                "tbb_spin" => Self::Yield,
                "std"
                | "parking_lot"
                | "parking_lot-0.12"
                | "pthread"
                | "pthread_adaptive"
                | "usync"
                | "tbb_mutex"
                | "absl"
                | "nsync"
                | "std-rw"
                | "parking_lot-rw"
                | "parking_lot-0.12-rw"
                | "pthread-rw"
                | "pthread-writers-rw"
                | "usync-rw" => Self::Sleep,
                _ => Self::Other,
            },
        }
    }

    /// The name of the family in a legend.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Queue => "spins in line",
            Self::Spin => "spins, any order",
            Self::Yield => "spins, then yields",
            Self::Sleep => "sleeps",
            Self::Other => "other",
        }
    }

    /// The CSS class of everything that belongs to the family.
    #[must_use]
    pub fn class(self) -> &'static str {
        match self {
            Self::Queue => "f-queue",
            Self::Spin => "f-spin",
            Self::Yield => "f-yield",
            Self::Sleep => "f-sleep",
            Self::Other => "f-other",
        }
    }
}

/// What the register says of a lock.
fn ours(lock: &str) -> Option<&'static Lock> {
    Id::named(lock).map(Id::lock)
}

/// Whether the lock is one of qspin's own, which charts draw stronger.
#[must_use]
pub fn is_own(lock: &str) -> bool {
    ours(lock).is_some()
}

/// Whether the lock goes to its waiters in strict order, also where the next one sleeps.
#[must_use]
pub fn sleeps_in_order(lock: &str) -> bool {
    ours(lock).is_some_and(|lock| lock.fifo && lock.waits == Waits::Halts)
}

/// Whether the row measures the harness and not a lock: shown, never recommended.
#[must_use]
pub fn is_reference(lock: &str) -> bool {
    matches!(lock, "empty" | "floor")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contender::catalog::{Origin, locks};

    #[test]
    fn a_lock_of_the_future_is_shown_and_not_refused() {
        assert_eq!(Family::of("some-new-lock"), Family::Other);
        assert!(!is_own("some-new-lock"));
    }

    #[test]
    fn every_lock_of_this_build_has_its_family_and_its_owner() {
        for lock in locks() {
            let baseline = lock.origin == Origin::Baseline;
            assert_eq!(is_reference(lock.name), baseline, "{}", lock.name);
            assert_eq!(Family::of(lock.name) == Family::Other, baseline, "{}", lock.name);
            assert_eq!(is_own(lock.name), lock.origin == Origin::Ours, "{}", lock.name);
        }
    }

    #[test]
    fn the_locks_that_need_a_running_successor_are_the_queues() {
        for lock in ["native", "ticket", "mcs", "ck_mcs", "cna"] {
            assert_eq!(Family::of(lock), Family::Queue, "{lock}");
        }
        assert_eq!(Family::of("paravirt"), Family::Sleep);
        assert_eq!(Family::of("cna-paravirt"), Family::Sleep);
    }

    #[test]
    fn the_locks_that_sleep_in_order_are_those_that_are_first_come_first_served() {
        for lock in locks().iter().filter(|lock| Family::of(lock.name) == Family::Sleep) {
            let in_order = lock.fairness == "first come, first served";
            assert_eq!(sleeps_in_order(lock.name), in_order, "{}", lock.name);
        }
    }
}
