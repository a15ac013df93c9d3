//! The register: every lock of the family, once, and what is to be known about it.
//!
//! There are two families. The *queued family* is one slow path over three axes, its word the tail of a queue of
//! waiters; the *sleeping family* is one word, released by a plain store, beside which waiters sleep in buckets that
//! are found by its address. Tickets, MCS and the flags are small files beside them.
//!
//! A lock is a file in this folder, its `mod` line and its entry below. Everything else that lists locks is made of
//! this register: the typed modules of the crate `qspin`, what is measured, simulated, booted, checked and interposed,
//! the functions for C, and the tables of the documentation.
//!
//! # The entry
//! `Id: file::Type, module` are names of Rust; the strings are for people. `name` is what commands, rows and scenarios
//! call it, and [`Id::named`] knows its other names, too. The four groups tell what a lock can, and what it asks of a
//! platform: those of `sleeping` need a [`SleepPlatform`](crate::sleepers::SleepPlatform).

pub mod backoff;
pub mod mcs;
pub mod mutex;
pub mod paravirt_rw;
pub mod paravirt_ticket;
pub mod queued;
pub mod queued_rw;
pub mod rwlock;
pub mod simple;
pub mod ticket;
pub mod yielding;

use crate::tuning::Part;

/// What kind of lock it is inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    /// One slow path over three axes; the word holds the tail of a queue. The reader-writer lock's waiters queue so, too.
    Queued,
    /// One word and buckets beside it, in which waiters sleep.
    Sleeping,
    /// A counter of tickets.
    Ticket,
    /// A queue of nodes in which the lock is one.
    Mcs,
    /// A flag that waiters try to set.
    Flag,
}

/// What a waiter does at last, when polling has brought nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Waits {
    /// It spins on.
    Spins,
    /// It yields its CPU, and tries again.
    Yields,
    /// It halts, or sleeps, until it is woken.
    Halts,
}

/// A lock of the register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lock {
    /// Which it is.
    pub id: Id,
    /// What commands, rows and scenarios call it.
    pub name: &'static str,
    /// Other names that are understood.
    pub aliases: &'static [&'static str],
    /// Its module in the crate `qspin`, and the middle of its names in C: `qspin_MODULE_lock`.
    pub module: &'static str,
    /// What it is, in a sentence or two.
    pub about: &'static str,
    /// What it is for, in a few words.
    pub purpose: &'static str,
    /// In which order waiters acquire it.
    pub fairness: &'static str,
    /// How a waiter waits.
    pub waiting: &'static str,
    /// What kind it is inside.
    pub family: Family,
    /// What a waiter does at last.
    pub waits: Waits,
    /// Whether waiters acquire it strictly in the order in which they came.
    pub fifo: bool,
    /// Whether it prefers waiters that are near the owner.
    pub near_first: bool,
    /// Whether readers share it.
    pub shared: bool,
    /// Its size in words of 32 bits.
    pub words: usize,
    /// The parts of the tunables that it reads.
    pub reads: &'static [Part],
}

impl Lock {
    /// Its size.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        4 * self.words
    }

    /// Whether it is known by this name: any of its names, with `-` or `_`, in capitals or not.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        let same = |known: &str| {
            let plain = |byte: u8| if byte == b'_' { b'-' } else { byte.to_ascii_lowercase() };
            known.len() == name.len() && known.bytes().map(plain).eq(name.bytes().map(plain))
        };
        same(self.name) || same(self.module) || self.aliases.iter().any(|alias| same(alias))
    }

    /// Whether its waiters queue with nodes of their own.
    #[must_use]
    pub const fn queues(&self) -> bool {
        !matches!(self.family, Family::Flag)
    }
}

impl Id {
    /// The lock of this name, or of this other name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        LOCKS.iter().find(|lock| lock.is_called(name.trim())).map(|lock| lock.id)
    }

    /// What is known about it.
    #[must_use]
    pub const fn lock(self) -> &'static Lock {
        &LOCKS[self as usize]
    }

    /// What commands, rows and scenarios call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.lock().name
    }
}

macro_rules! register {
    ($dollar:tt $(
        $group:ident: shared = $shared:literal {
            $(
                $id:ident: $file:ident::$lock:ident, $module:ident {
                    name: $name:literal $(or $alias:literal)*,
                    about: $about:literal,
                    purpose: $purpose:literal,
                    fairness: $fairness:expr,
                    waiting: $waiting:literal,
                    family: $family:ident, waits: $waits:ident, fifo: $fifo:literal, near_first: $near:literal,
                    words: $words:literal,
                    reads: [$($part:ident),*],
                }
            )*
        }
    )*) => {
        /// Every lock, as a number: its place in [`LOCKS`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Id {
            $($(#[doc = $about] $id,)*)*
        }

        /// Every lock.
        pub const LOCKS: &[Lock] = &[$($(Lock {
            id: Id::$id,
            name: $name,
            aliases: &[$($alias),*],
            module: stringify!($module),
            about: $about,
            purpose: $purpose,
            fairness: $fairness,
            waiting: $waiting,
            family: Family::$family,
            waits: Waits::$waits,
            fifo: $fifo,
            near_first: $near,
            shared: $shared,
            words: $words,
            reads: &[$(Part::$part),*],
        },)*)*];

        /// Calls the macro `$callback` with every lock of the register, in four groups:
        ///
        /// ```text
        /// callback! {
        ///     (what was given besides)
        ///     sleeping { Id: module = path::to::Lock, about; … }
        ///     spinning { … }
        ///     shared_sleeping { … }
        ///     shared_spinning { … }
        /// }
        /// ```
        ///
        /// The types are generic over the word. Those of `sleeping` need a platform on which threads can sleep beside a
        /// lock; readers share those of the last two.
        #[macro_export]
        macro_rules! for_each_lock {
            ($dollar($dollar callback:ident)::+ $dollar(, $dollar($dollar given:tt)*)?) => {
                $dollar($dollar callback)::+! {
                    ($dollar($dollar($dollar given)*)?)
                    $($group {
                        $($id: $module = $dollar crate::locks::$file::$lock, $about;)*
                    })*
                }
            };
        }
    };
}

const FIFO: &str = "first come, first served";
const UNFAIR: &str = "none";
const BOUNDED: &str = "no waiter starves; newcomers may barge";

register! { $
    sleeping: shared = false {
        Mutex: mutex::DefaultLock, mutex {
            name: "mutex",
            about: "The default mutex: released by a plain store; waiters poll, yield, then sleep, and none of them \
                    starves. For loads that are not known beforehand.",
            purpose: "the load is not known: the default",
            fairness: BOUNDED,
            waiting: "a few poll and yield, the rest sleep",
            family: Sleeping, waits: Halts, fifo: false, near_first: false,
            words: 1,
            reads: [Mutex, Heir, Turns],
        }
    }
    spinning: shared = false {
        Native: queued::NativeLock, native {
            name: "native",
            about: "The queued spinlock: first come, first served; each waiter spins on a cache line of its own. \
                    For programs whose threads never outnumber their CPUs.",
            purpose: "every thread has a CPU; strict order, many threads",
            fairness: FIFO,
            waiting: "spins on its own cache line",
            family: Queued, waits: Spins, fifo: true, near_first: false,
            words: 1,
            reads: [Owner, Pending],
        }
        Backoff: backoff::BackoffLock, backoff {
            name: "backoff",
            about: "Test-and-set with bounded exponential backoff: the cheapest, and unfair.",
            purpose: "short sections; a virtual machine without a paravirtual lock",
            fairness: UNFAIR,
            waiting: "pauses, ever longer",
            family: Flag, waits: Spins, fifo: false, near_first: false,
            words: 1,
            reads: [Backoff],
        }
        Tas: backoff::TasLock, tas {
            name: "tas",
            about: "Plain test-and-set: unfair.",
            purpose: "to compare: backoff with a cap of 1",
            fairness: UNFAIR,
            waiting: "spins on the lock",
            family: Flag, waits: Spins, fifo: false, near_first: false,
            words: 1,
            reads: [],
        }
        Yield: yielding::YieldLock, yielding {
            name: "yield",
            about: "Test-and-set that yields the CPU after a bounded spin: unfair.",
            purpose: "more threads than CPUs, without sleeping",
            fairness: UNFAIR,
            waiting: "spins, then yields its CPU",
            family: Flag, waits: Yields, fifo: false, near_first: false,
            words: 1,
            reads: [Yield],
        }
        Ticket: ticket::TicketLock, ticket {
            name: "ticket",
            about: "The ticket lock: strictly first come, first served; waiters spin on the lock.",
            purpose: "few threads that each have a CPU; strict order",
            fairness: FIFO,
            waiting: "spins on the lock",
            family: Ticket, waits: Spins, fifo: true, near_first: false,
            words: 1,
            reads: [],
        }
        Mcs: mcs::McsLock, mcs {
            name: "mcs",
            about: "The MCS lock: strictly first come, first served; each waiter spins on a cache line of its own.",
            purpose: "to compare: the queue without the four-byte word",
            fairness: FIFO,
            waiting: "spins on its own cache line",
            family: Mcs, waits: Spins, fifo: true, near_first: false,
            words: 2,
            reads: [],
        }
        Simple: simple::SimpleLock, simple {
            name: "simple",
            about: "Test-and-set with its owner in the word, to whom waiters yield: unfair. The thread that locked \
                    must be the one that unlocks.",
            purpose: "where the owner should be known",
            fairness: UNFAIR,
            waiting: "spins, yields to the owner",
            family: Flag, waits: Yields, fifo: false, near_first: false,
            words: 1,
            reads: [Simple, RunStatus],
        }
        Paravirt: queued::ParavirtLock, paravirt {
            name: "paravirt",
            about: "The paravirt queued spinlock with culling: one or two waiters stay awake, the others halt. \
                    For programs whose threads may outnumber their CPUs.",
            purpose: "more threads than CPUs, or it is not known how many",
            fairness: "by turns; newcomers may barge",
            waiting: "one or two spin, the rest sleep",
            family: Queued, waits: Halts, fifo: false, near_first: false,
            words: 1,
            reads: [Owner, QueueSpin, Halt, RunStatus, Culled, Turns],
        }
        ParavirtStealing: queued::ParavirtStealingLock, paravirt_stealing {
            name: "paravirt-stealing",
            about: "The paravirt queued spinlock that newcomers may steal past a sleeping head.",
            purpose: "to compare: what Linux has today",
            fairness: "queue; newcomers may barge",
            waiting: "spins briefly, then sleeps in a queue",
            family: Queued, waits: Halts, fifo: false, near_first: false,
            words: 1,
            reads: [QueueSpin, Halt, RunStatus, Defer, Stealing],
        }
        ParavirtQueued: queued::ParavirtQueuedLock, paravirt_queued {
            name: "paravirt-queued",
            about: "The paravirt queued spinlock, strictly first come, first served.",
            purpose: "more threads than CPUs, in strict order",
            fairness: FIFO,
            waiting: "spins briefly, then sleeps in a queue",
            family: Queued, waits: Halts, fifo: true, near_first: false,
            words: 1,
            reads: [Owner, Pending, HaltPending, QueueSpin, Halt, RunStatus, Defer],
        }
        ParavirtTicket: paravirt_ticket::ParavirtTicketLock, paravirt_ticket {
            name: "paravirt-ticket",
            about: "The paravirt ticket lock: strictly first come, first served; waiters spin, then halt.",
            purpose: "to compare: the ticket lock, halting",
            fairness: FIFO,
            waiting: "spins briefly on the lock, then sleeps",
            family: Ticket, waits: Halts, fifo: true, near_first: false,
            words: 1,
            reads: [QueueSpin],
        }
        Cna: queued::CnaLock, cna {
            name: "cna",
            about: "The NUMA-aware queued spinlock: waiters near the owner first, within bounds. For machines \
                    whose cores are far apart, while every thread runs.",
            purpose: "every thread has a CPU, on several NUMA nodes",
            fairness: "near waiters first, within bounds",
            waiting: "spins on its own cache line",
            family: Queued, waits: Spins, fifo: false, near_first: true,
            words: 1,
            reads: [Owner, Pending, Numa],
        }
        CnaParavirt: queued::CnaParavirtLock, cna_paravirt {
            name: "cna-paravirt",
            about: "The NUMA-aware queued spinlock whose waiters halt, one or two of them awake.",
            purpose: "several NUMA nodes, and more threads than CPUs",
            fairness: "near first; newcomers may barge",
            waiting: "one or two spin, the rest sleep",
            family: Queued, waits: Halts, fifo: false, near_first: true,
            words: 1,
            reads: [Owner, QueueSpin, Halt, RunStatus, Culled, Turns, Numa],
        }
    }
    shared_sleeping: shared = true {
        Rwlock: rwlock::DefaultRwLock, rwlock {
            name: "rwlock" or "default-rw",
            about: "The default reader-writer lock: a writer closes it to further readers, so neither starves; \
                    waiters poll, yield, then sleep.",
            purpose: "the load is not known: the default",
            fairness: BOUNDED,
            waiting: "a few poll and yield, the rest sleep",
            family: Sleeping, waits: Halts, fifo: false, near_first: false,
            words: 2,
            reads: [Mutex, Rwlock, Heir, Turns],
        }
    }
    shared_spinning: shared = true {
        QueuedRw: queued_rw::QueuedRwLock, queued_rw {
            name: "queued-rw",
            about: "The queued reader-writer lock: readers and writers alike wait their turn.",
            purpose: "every thread has a CPU; writers must not starve",
            fairness: "readers and writers in one queue",
            waiting: "spins",
            family: Queued, waits: Spins, fifo: true, near_first: false,
            words: 2,
            reads: [Owner, Pending],
        }
        ParavirtRw: paravirt_rw::ParavirtRwLock, paravirt_rw {
            name: "paravirt-rw",
            about: "The queued reader-writer lock whose waiters halt: newcomers may take it past one that sleeps, within \
                    bounds. For programs whose threads may outnumber their CPUs.",
            purpose: "readers and writers, more threads than CPUs",
            fairness: BOUNDED,
            waiting: "spins briefly, then sleeps in a queue",
            family: Queued, waits: Halts, fifo: false, near_first: false,
            words: 2,
            reads: [QueueSpin, Halt, RunStatus, Defer, Stealing, Heir],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_lock_stands_at_its_number_under_names_of_its_own() {
        for (number, lock) in LOCKS.iter().enumerate() {
            assert_eq!(lock.id as usize, number);
            let names = [lock.name, lock.module].into_iter().chain(lock.aliases.iter().copied());
            for name in names {
                assert_eq!(Id::named(name), Some(lock.id), "{name}");
            }
        }
        assert_eq!(Id::named("nativ"), None);
        assert_eq!(Id::named(""), None);
    }

    #[test]
    fn a_name_is_understood_with_either_dash_and_in_either_case() {
        assert_eq!(Id::named("yield"), Some(Id::Yield));
        assert_eq!(Id::named("yielding"), Some(Id::Yield));
        assert_eq!(Id::named(" Paravirt_Queued "), Some(Id::ParavirtQueued));
        assert_eq!(Id::named("default_rw"), Some(Id::Rwlock));
        assert_eq!(Id::named("queued_rw"), Some(Id::QueuedRw));
    }

    macro_rules! sizes {
        (() $($group:ident { $($id:ident: $module:ident = $lock:path, $about:literal;)* })*) => {
            $($({
                use $lock as Lock;
                assert_eq!(size_of::<Lock<core::sync::atomic::AtomicU32>>(), Id::$id.lock().bytes());
                assert_eq!(stringify!($module), Id::$id.lock().module);
                assert_eq!(stringify!($group).starts_with("shared"), Id::$id.lock().shared);
            })*)*
        };
    }

    #[test]
    fn sizes_are_those_of_the_types() {
        for_each_lock!(sizes);
    }
}
