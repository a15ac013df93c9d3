//! Event counters, for the whole process or for a group of locks.
//!
//! Every lock comes in two instantiations, `Mutex` and `CountedMutex`. The first has not one instruction for
//! counting. The second counts in [`Counted`], together with all other such locks of the process. Locks that
//! are to be counted separately get a group of their own:
//!
//! ```
//! use qspin::events::{CounterGroup, Event};
//!
//! qspin::counter_group! {
//!     /// Counts what the locks of the table do.
//!     pub TableLock = "table"
//! }
//!
//! static TABLE: qspin::paravirt::MutexWith<TableLock, Vec<u32>> =
//!     qspin::paravirt::MutexWith::new(Vec::new());
//!
//! TABLE.lock().push(1);
//! assert_eq!(TableLock::count_of(Event::LockSlowpath), 0, "there was no contention");
//! ```
//!
//! Another process of the same user can read the counters while they count: `qspin stat PID`. [`Group`]
//! documents how they are published and what that cannot do.

pub(crate) mod group;

use crate::platform::StaticEvents;

pub use group::{Group, Pages};
pub use qspin_core::events::{Averages, Event, Events, NoEvents};

/// A type that counts in a [`Group`]; [`counter_group!`](crate::counter_group) makes one.
pub trait CounterGroup: StaticEvents {
    /// The group that it counts in.
    fn group() -> &'static Group;

    /// How often each event happened since the last [`reset`](Self::reset).
    ///
    /// Counters are read one after the other while threads go on counting. Each is exact once the counting
    /// threads are done; until then their relation is approximate.
    #[must_use]
    fn snapshot() -> Vec<(Event, u64)> {
        Event::ALL.into_iter().zip(Self::group().counts()).collect()
    }

    /// How often `event` happened since the last [`reset`](Self::reset).
    #[must_use]
    fn count_of(event: Event) -> u64 {
        Self::group().counts()[event as usize]
    }

    /// Resets every counter to zero.
    fn reset() {
        Self::group().reset();
    }
}

/// Makes a type that counts events in a group of its own, to instantiate locks with.
///
/// The name in quotes is what `qspin stat` shows: at most 64 letters, digits, `-` and `_`. It should be unique
/// in the program; `process` belongs to [`events::Counted`].
///
/// ```compile_fail
/// qspin::counter_group!(pub TableLock = "my table");
/// ```
///
/// [`events::Counted`]: crate::events::Counted
#[macro_export]
macro_rules! counter_group {
    ($(#[$doc:meta])* $visibility:vis $group:ident = $name:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        $visibility struct $group;

        const _: () = {
            static PAGES: $crate::events::Pages = $crate::events::Pages::untouched();
            static GROUP: $crate::events::Group =
                $crate::events::Group::new(concat!("qspin-stat:", $name, "\0"), &PAGES);

            impl $crate::events::Events for $group {
                const ENABLED: bool = true;

                #[inline]
                fn add(&self, event: $crate::events::Event, amount: u64) {
                    GROUP.add(event, amount);
                }
            }

            impl $crate::platform::StaticEvents for $group {
                const EVENTS: &'static Self = &$group;
            }

            impl $crate::events::CounterGroup for $group {
                fn group() -> &'static $crate::events::Group {
                    &GROUP
                }
            }
        };
    };
}

counter_group! {
    /// Counts events in the counters of the process.
    pub Counted = "process"
}

/// How often each event happened in the locks of this process that count in [`Counted`], since
/// the last [`reset`]. See [`CounterGroup::snapshot`].
#[must_use]
pub fn snapshot() -> Vec<(Event, u64)> {
    Counted::snapshot()
}

/// Resets every counter of [`Counted`] to zero.
pub fn reset() {
    Counted::reset();
}
