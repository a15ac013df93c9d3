//! Planted bugs: locks with a known flaw. Each must be caught, by the kind of counterexample that
//! its flaw should cause; the same small locks without a flaw must pass. So must the documented
//! limit of a real lock be caught, or it is no limit any more.

pub mod axes;
pub mod beside;
pub mod flag;
pub mod halt;
pub mod numa;
pub mod queue;
pub mod rw;

use std::sync::atomic::Ordering::{AcqRel, Relaxed};

use qspin_core::locks::Id;
use qspin_core::locks::queued::QueuedLock;
use qspin_core::order::Fifo;
use qspin_core::site::Site;
use qspin_core::waiting::{Halt, Spin};

use crate::contend::{Exclusive, Shared};
use crate::failure::Kind;
use crate::model::Traits;
use crate::subject::{self, NoPending, Subject, of, rules, runs, tunings};
use crate::trace::Rules;
use crate::weakening::Weakening;
use crate::word::Word;

use beside::{SmallGated, SmallMonitor, SmallOnce};
use flag::SmallFlag;
use halt::SmallHalt;
use numa::FlawedNuma;
use queue::SmallQueue;
use rw::{HaltingRw, SmallRw};

/// The checker that is to catch a bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Catcher {
    /// Loom, in its scenario of this name.
    Loom(&'static str),
    /// Shuttle, in its scenario of this name.
    Shuttle(&'static str),
}

/// A planted bug, or a lock without one.
pub struct Planted {
    /// The lock.
    pub subject: Subject,
    /// The ordering that is missing, where that is the whole flaw; only loom knows of it.
    pub weakening: Option<Weakening>,
    /// Which checker must catch it, and where; empty for a lock that must pass everything.
    pub catchers: &'static [(Catcher, Kind)],
}

/// Flawed locks: the one in whose manner each is, its name, its type, and what must catch it, where and how.
macro_rules! flawed {
    ($($manner:ident $name:literal: $lock:ty $(=> $($catcher:ident $scenario:literal $kind:ident),+)?;)*) => {
        [$(Planted {
            subject: $manner.planted($name, runs!($lock)),
            weakening: None,
            catchers: &[$($((Catcher::$catcher($scenario), Kind::$kind)),+)?],
        }),*]
    };
}

/// Real locks without one of their orderings, which loom must miss in this scenario.
macro_rules! missing {
    ($($name:literal without $site:ident: $to:ident => $scenario:literal $kind:ident;)*) => {
        [$(Planted {
            subject: subject::lookup($name).expect("a lock of the catalogue"),
            weakening: Some(Weakening { site: Site::$site, to: $to }),
            catchers: &[(Catcher::Loom($scenario), Kind::$kind)],
        }),*]
    };
}

/// Every planted bug.
#[must_use]
pub fn all() -> Vec<Planted> {
    let mut all = flaws();
    all.extend(missing! {
        "paravirt-queued-no-pending" without HaltSlow: Relaxed => "queue" LostWakeup;
        "paravirt-queued-no-pending" without HaltSleeper: Relaxed => "queue" LostWakeup;
        "paravirt-queued-no-pending" without HaltWaiterFence: AcqRel => "two-twice" LostWakeup;
        "paravirt-queued-no-pending" without HaltHandOverFence: AcqRel => "two-twice" LostWakeup;
        "paravirt-queued-conditional-kick" without HaltKickFence: AcqRel => "queue-vain" LostWakeup;
        "paravirt-queued-conditional-kick" without HaltSleepFence: AcqRel => "queue-vain" LostWakeup;
        "paravirt-rw" without RwAsleep: Relaxed => "two-twice" LostWakeup;
        "paravirt-rw" without RwKick: Relaxed => "two-twice" LostWakeup;
        // The default mutex without one side of the asymmetric fence.
        "mutex-sleepy" without SleepLight: AcqRel => "two-twice" LostWakeup;
        "mutex-sleepy" without SleepHeavy: AcqRel => "two-twice" LostWakeup;
        // What only a gate without a fence of its own shows, and only an upgrade.
        "rwlock-plain-gate" without RwGateTake: Relaxed => "queue" DataRace;
        "rwlock-upgraded" without RwUpgrade: Relaxed => "write-read" DataRace;
    });
    // A limit that its file states, not a bug: its release waits for an interrupted waiter.
    let catchers = &[(Catcher::Loom("crossed"), Kind::Deadlock)];
    all.push(Planted { subject: of(Id::Mcs), weakening: None, catchers });
    all
}

/// The lock of this name, planted bugs included.
#[must_use]
pub fn lookup(name: &str) -> Option<Subject> {
    let planted = || flaws().into_iter().map(|bug| bug.subject);
    subject::lookup(name).or_else(|| planted().find(|subject| subject.name == name))
}

fn flaws() -> Vec<Planted> {
    let queued = of(Id::Native);
    let halting = of(Id::ParavirtQueued).step("");
    let halting = halting.with(Traits { brief: true, ..halting.traits() });
    let strict = halting.tuned(tunings::NO_PENDING);
    // A secondary queue that is flushed at once.
    let near = of(Id::Cna).step("").tuned(tunings::FLUSH);
    let near_halting =
        of(Id::CnaParavirt).step("").ruled(rules::CNA_HALTING).tuned(tunings::FLUSH_HALTING);
    let flag = of(Id::Tas);
    let any_flag = flag.ruled(rules::ANYTHING);
    let small = flag.ruled(rules::SMALL_QUEUE);
    let small = small.with(Traits { release_waits: true, freed: false, ..small.traits() });
    // A reader that comes in beside a writer is to be seen beside it.
    let rw = of(Id::QueuedRw).ruled(Rules { admits: |_, _| true, ..rules::RW });
    let rw_halting = of(Id::ParavirtRw).step("");
    let gated_deaf = of(Id::Rwlock).step("").tuned(tunings::MUTEX_SLEEPY);
    let gated = gated_deaf.with(Traits { interrupted: false, ..gated_deaf.traits() });
    let beside = gated.ruled(rules::ANYTHING).with(Traits { shared: false, ..gated.traits() });
    Vec::from(flawed! {
        queued "planted-relaxed-unlock": Exclusive<QueuedLock<Word<M>, axes::RelaxedRelease>>
            => Loom "two" DataRace;
        queued "planted-wiping-unlock": Exclusive<QueuedLock<Word<M>, axes::WipingRelease, Fifo, NoPending>>
            => Loom "two" State, Shuttle "four" State;
        queued "planted-fifo-break": Exclusive<QueuedLock<Word<M>, Spin, Fifo, axes::Barging>>
            => Loom "three" Fifo, Shuttle "four" Fifo;
        queued "planted-shared-pending": Exclusive<QueuedLock<Word<M>, Spin, Fifo, axes::SharedPending>>
            => Loom "three" Fifo, Shuttle "four" State;

        small "small-queue": Exclusive<SmallQueue<Word<M>, { queue::NO_FLAW }>>;
        small "planted-relaxed-link": Exclusive<SmallQueue<Word<M>, { queue::RELAXED_LINK }>>
            => Loom "two" NodeLife;
        small "planted-lost-hand-over": Exclusive<SmallQueue<Word<M>, { queue::SKIPS_LINK }>>
            => Loom "two" Deadlock, Shuttle "four" Deadlock;
        small "planted-node-reuse": Exclusive<SmallQueue<Word<M>, { queue::REUSES_NODE }>>
            => Loom "interrupted" NodeLife, Shuttle "interrupted-3" Deadlock;
        small "planted-level-leak": Exclusive<SmallQueue<Word<M>, { queue::LEAKS_LEVEL }>>
            => Loom "two" Nesting;

        flag "small-flag": Exclusive<SmallFlag<Word<M>, { flag::NO_FLAW }>>;
        any_flag "planted-test-then-set": Exclusive<SmallFlag<Word<M>, { flag::TWO_STEPS }>>
            => Loom "two" DataRace, Shuttle "four" Exclusion;
        flag "planted-waiting-try": Exclusive<SmallFlag<Word<M>, { flag::TRY_WAITS }>>
            => Loom "try" TryWaited;
        flag "planted-is-locked-lies": Exclusive<SmallFlag<Word<M>, { flag::DENIES }>>
            => Loom "two" IsLocked;
        any_flag "planted-livelock": Exclusive<SmallFlag<Word<M>, { flag::NEVER_ENDS }>>
            => Loom "two" Livelock;

        rw "small-rw": Shared<SmallRw<Word<M>, { rw::NO_FLAW }>>;
        rw "planted-reader-passes-writer": Shared<SmallRw<Word<M>, { rw::PASSES_WRITER }>>
            => Loom "read-held" WriterPassed, Shuttle "readers" WriterPassed;
        rw "planted-interrupt-queues": Shared<SmallRw<Word<M>, { rw::INTERRUPT_QUEUES }>>
            => Loom "interrupted-reader" Deadlock;
        rw "planted-readers-exclude": Shared<SmallRw<Word<M>, { rw::EXCLUDES_READERS }>>
            => Loom "share" Deadlock;
        rw "planted-reader-ignores-writer": Shared<SmallRw<Word<M>, { rw::IGNORES_WRITER }>>
            => Loom "write-read" DataRace, Shuttle "readers" Exclusion;
        rw_halting "small-halting-rw": Shared<HaltingRw<Word<M>, { rw::NO_FLAW }>>;
        rw_halting "planted-head-halts-blindly": Shared<HaltingRw<Word<M>, { rw::HALTS_BLINDLY }>>
            => Loom "two-twice" LostWakeup, Shuttle "four" LostWakeup;
        rw_halting "planted-head-forgotten": Shared<HaltingRw<Word<M>, { rw::FORGETS_HEAD }>>
            => Loom "two-twice" LostWakeup, Shuttle "four" LostWakeup;

        strict "planted-stale-rehalt": Exclusive<QueuedLock<Word<M>, halt::StaleRehalt>>
            => Loom "vain" Hash;
        halting "small-halt": Exclusive<QueuedLock<Word<M>, SmallHalt<{ halt::NO_FLAW }>>>;
        halting "planted-sleeper-before-entry": Exclusive<QueuedLock<Word<M>, SmallHalt<{ halt::MARKS_FIRST }>>>
            => Loom "two-twice" LostWakeup, Shuttle "four" LostWakeup;
        halting "planted-early-kick": Exclusive<QueuedLock<Word<M>, SmallHalt<{ halt::KICKS_EARLY }>>>
            => Loom "two-twice" LostWakeup, Shuttle "four" LostWakeup;
        halting "planted-kick-of-another": Exclusive<QueuedLock<Word<M>, SmallHalt<{ halt::ASKS_LATE }>>>
            => Loom "queue" LostWakeup, Shuttle "four" LostWakeup;
        halting "planted-stale-kick-trusted": Exclusive<QueuedLock<Word<M>, SmallHalt<{ halt::TRUSTS_KICK }>>>
            => Loom "queue-vain" Fifo, Shuttle "four" Fifo;
        halting "planted-look-before-halted": Exclusive<QueuedLock<Word<M>, SmallHalt<{ halt::LOOKS_FIRST }>>>
            => Loom "two-twice" LostWakeup, Shuttle "four" LostWakeup;
        halting "planted-look-before-hand-over": Exclusive<QueuedLock<Word<M>, SmallHalt<{ halt::HANDS_OVER_LAST }>>>
            => Loom "two-twice" LostWakeup, Shuttle "four" LostWakeup;

        // Where others are left, they pass the one that is lost.
        near "planted-secondary-lost-at-flush": Exclusive<QueuedLock<Word<M>, Spin, FlawedNuma<{ numa::LOSES_SECONDARY }>, NoPending>>
            => Loom "aside" Deadlock, Shuttle "full" Bypass;
        near "planted-tail-cleared-over-secondary": Exclusive<QueuedLock<Word<M>, Spin, FlawedNuma<{ numa::CLEARS_TAIL }>, NoPending>>
            => Loom "aside" Deadlock, Shuttle "full" Deadlock;
        near "planted-threshold-never-checked": Exclusive<QueuedLock<Word<M>, Spin, FlawedNuma<{ numa::NEVER_FLUSHES }>, NoPending>>
            => Loom "aside-twice" Bypass, Shuttle "full" Bypass;
        near "planted-urgent-put-aside": Exclusive<QueuedLock<Word<M>, Spin, FlawedNuma<{ numa::MOVES_URGENT }>, NoPending>>
            => Loom "aside-urgent" Bypass, Shuttle "urgent" Bypass;
        near_halting "planted-halted-forgotten-at-flush": Exclusive<QueuedLock<Word<M>, Halt, FlawedNuma<{ numa::FORGETS_HALTED }>, NoPending>>
            => Loom "aside" LostWakeup, Shuttle "full" LostWakeup;

        beside "small-once": Exclusive<SmallOnce<Word<M>, { beside::NO_FLAW }>>;
        beside "planted-once-looks-first": Exclusive<SmallOnce<Word<M>, { beside::LOOKS_FIRST }>>
            => Loom "two-twice" LostWakeup, Shuttle "four" LostWakeup;
        beside "planted-once-wakes-one": Exclusive<SmallOnce<Word<M>, { beside::WAKES_ONE }>>
            => Loom "queue" LostWakeup, Shuttle "four" LostWakeup;
        beside "planted-wait-releases-first": Exclusive<SmallMonitor<Word<M>, { beside::RELEASES_FIRST }>>
            => Loom "two-twice" LostWakeup, Shuttle "four" LostWakeup;
        gated "small-gated-rw": Shared<SmallGated<Word<M>, { beside::NO_FLAW }>>;
        gated "planted-gate-looks-first": Shared<SmallGated<Word<M>, { beside::LOOKS_FIRST }>>
            => Loom "two-twice" LostWakeup, Shuttle "four" LostWakeup;
        // Its waiting writer keeps newcomers out, as the real one does; and it does not ask which context comes.
        gated_deaf "planted-gate-for-interrupts": Shared<SmallGated<Word<M>, { beside::CLOSES }>>
            => Loom "interrupted-reader" LostWakeup;
    })
}
