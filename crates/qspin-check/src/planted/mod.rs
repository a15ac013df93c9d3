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

use std::sync::atomic::Ordering::{self, AcqRel, Relaxed};

use qspin_core::locks::queued::QueuedLock;
use qspin_core::order::Fifo;
use qspin_core::site::Site;
use qspin_core::waiting::{Halt, Spin};

use crate::failure::Kind;
use crate::ledger::Rules;
use crate::machine::Machine;
use crate::subject::{
    BESIDE, BESIDE_READERS, BESIDE_READERS_INTERRUPTED, Exclusive, Family, Mcs, NEAR_HALTING_STEP,
    NEAR_STEP, NoPending, Of, PLAIN, READERS, STEP, Shared, Subject, Traits, WITH_NODES, family,
    rules, tunings, variants,
};
use crate::weakening::Weakening;
use crate::word::Word;

family!(
    /// [`axes::RelaxedRelease`]
    RelaxedRelease = "planted-relaxed-unlock", WITH_NODES, rules::QUEUED,
    Exclusive<QueuedLock<Word<M>, axes::RelaxedRelease>>
);
family!(
    /// [`axes::WipingRelease`]
    WipingRelease = "planted-wiping-unlock", WITH_NODES, rules::QUEUED,
    Exclusive<QueuedLock<Word<M>, axes::WipingRelease, Fifo, NoPending>>
);
family!(
    /// [`axes::Barging`]
    Barging = "planted-fifo-break", WITH_NODES, rules::QUEUED,
    Exclusive<QueuedLock<Word<M>, Spin, Fifo, axes::Barging>>
);
family!(
    /// [`axes::SharedPending`]
    SharedPending = "planted-shared-pending", WITH_NODES, rules::QUEUED,
    Exclusive<QueuedLock<Word<M>, Spin, Fifo, axes::SharedPending>>
);

family!(
    /// [`halt::StaleRehalt`]
    StaleRehalt = "planted-stale-rehalt", STEP, rules::HALTING,
    Exclusive<QueuedLock<Word<M>, halt::StaleRehalt>>, tunings::NO_PENDING
);

/// A small halting lock.
macro_rules! halting {
    ($family:ident = $name:literal, $flaw:ident) => {
        family!(
            /// A small halting lock.
            $family = $name, STEP, rules::HALTING,
            Exclusive<QueuedLock<Word<M>, halt::SmallHalt<{ halt::$flaw }>>>
        );
    };
}

halting!(SoundHalt = "small-halt", NO_FLAW);
halting!(MarksFirst = "planted-sleeper-before-entry", MARKS_FIRST);
halting!(KicksEarly = "planted-early-kick", KICKS_EARLY);
halting!(AsksLate = "planted-kick-of-another", ASKS_LATE);
halting!(TrustsKick = "planted-stale-kick-trusted", TRUSTS_KICK);
halting!(LooksFirst = "planted-look-before-halted", LOOKS_FIRST);
halting!(HandsOverLast = "planted-look-before-hand-over", HANDS_OVER_LAST);

/// The NUMA-aware lock with a flaw in its order, and a secondary queue that is flushed at once.
macro_rules! numa {
    ($family:ident = $name:literal, $flaw:ident) => {
        numa!($family = $name, $flaw, NEAR_STEP, rules::CNA, Spin, tunings::FLUSH);
    };
    ($family:ident = $name:literal, $flaw:ident, $traits:expr, $rules:expr, $waiting:ty, $tuning:expr) => {
        family!(
            /// A flaw in the order.
            $family = $name, $traits, $rules,
            Exclusive<QueuedLock<Word<M>, $waiting, numa::FlawedNuma<{ numa::$flaw }>, NoPending>>,
            $tuning
        );
    };
}

numa!(LosesSecondary = "planted-secondary-lost-at-flush", LOSES_SECONDARY);
numa!(ClearsTail = "planted-tail-cleared-over-secondary", CLEARS_TAIL);
numa!(NeverFlushes = "planted-threshold-never-checked", NEVER_FLUSHES);
numa!(MovesUrgent = "planted-urgent-put-aside", MOVES_URGENT);
numa!(
    ForgetsHalted = "planted-halted-forgotten-at-flush",
    FORGETS_HALTED,
    NEAR_HALTING_STEP,
    rules::CNA_HALTING,
    Halt,
    tunings::FLUSH_HALTING
);

macro_rules! small {
    ($family:ident, $name:literal, $traits:expr, $rules:expr, $wrap:ident, $lock:ty) => {
        family!(
            /// A small lock.
            $family = $name, $traits, $rules, $wrap<$lock>
        );
    };
}

small!(
    SoundQueue,
    "small-queue",
    SMALL,
    SMALL_QUEUE,
    Exclusive,
    queue::SmallQueue<Word<M>, { queue::NO_FLAW }>
);
small!(
    SkipsLink,
    "planted-lost-hand-over",
    SMALL,
    SMALL_QUEUE,
    Exclusive,
    queue::SmallQueue<Word<M>, { queue::SKIPS_LINK }>
);
small!(
    RelaxedLink,
    "planted-relaxed-link",
    SMALL,
    SMALL_QUEUE,
    Exclusive,
    queue::SmallQueue<Word<M>, { queue::RELAXED_LINK }>
);
small!(
    ReusesNode,
    "planted-node-reuse",
    SMALL,
    SMALL_QUEUE,
    Exclusive,
    queue::SmallQueue<Word<M>, { queue::REUSES_NODE }>
);
small!(
    LeaksLevel,
    "planted-level-leak",
    SMALL,
    SMALL_QUEUE,
    Exclusive,
    queue::SmallQueue<Word<M>, { queue::LEAKS_LEVEL }>
);
small!(
    SoundFlag,
    "small-flag",
    PLAIN,
    rules::FLAG,
    Exclusive,
    flag::SmallFlag<Word<M>, { flag::NO_FLAW }>
);
small!(
    TwoSteps,
    "planted-test-then-set",
    PLAIN,
    rules::ANYTHING,
    Exclusive,
    flag::SmallFlag<Word<M>, { flag::TWO_STEPS }>
);
small!(
    TryWaits,
    "planted-waiting-try",
    PLAIN,
    rules::FLAG,
    Exclusive,
    flag::SmallFlag<Word<M>, { flag::TRY_WAITS }>
);
small!(
    Denies,
    "planted-is-locked-lies",
    PLAIN,
    rules::FLAG,
    Exclusive,
    flag::SmallFlag<Word<M>, { flag::DENIES }>
);
small!(
    NeverEnds,
    "planted-livelock",
    PLAIN,
    rules::ANYTHING,
    Exclusive,
    flag::SmallFlag<Word<M>, { flag::NEVER_ENDS }>
);
small!(SoundRw, "small-rw", READERS, rules::RW, Shared, rw::SmallRw<Word<M>, { rw::NO_FLAW }>);
small!(
    PassesWriter,
    "planted-reader-passes-writer",
    READERS,
    rules::RW,
    Shared,
    rw::SmallRw<Word<M>, { rw::PASSES_WRITER }>
);
small!(
    InterruptQueues,
    "planted-interrupt-queues",
    READERS,
    rules::RW,
    Shared,
    rw::SmallRw<Word<M>, { rw::INTERRUPT_QUEUES }>
);
small!(
    ExcludesReaders,
    "planted-readers-exclude",
    READERS,
    rules::RW,
    Shared,
    rw::SmallRw<Word<M>, { rw::EXCLUDES_READERS }>
);
small!(
    IgnoresWriter,
    "planted-reader-ignores-writer",
    READERS,
    rules::RW,
    Shared,
    rw::SmallRw<Word<M>, { rw::IGNORES_WRITER }>
);

/// Something small that sleeps beside its word.
macro_rules! beside {
    ($family:ident = $name:literal, $traits:expr, $wrap:ident, $lock:ident, $flaw:ident) => {
        family!(
            /// A small lock whose waiters sleep beside it.
            $family = $name, $traits, rules::ANYTHING, $wrap<beside::$lock<Word<M>, { beside::$flaw }>>,
            tunings::MUTEX_SLEEPY
        );
    };
}

beside!(SoundOnce = "small-once", BESIDE, Exclusive, SmallOnce, NO_FLAW);
beside!(OnceLooks = "planted-once-looks-first", BESIDE, Exclusive, SmallOnce, LOOKS_FIRST);
beside!(OnceWakesOne = "planted-once-wakes-one", BESIDE, Exclusive, SmallOnce, WAKES_ONE);
beside!(
    MonitorReleases = "planted-wait-releases-first",
    BESIDE,
    Exclusive,
    SmallMonitor,
    RELEASES_FIRST
);
beside!(SoundGated = "small-gated-rw", BESIDE_READERS, Shared, SmallGated, NO_FLAW);
beside!(GatedLooks = "planted-gate-looks-first", BESIDE_READERS, Shared, SmallGated, LOOKS_FIRST);
// Its waiting writer keeps newcomers out, as the real one does; and it does not ask who comes.
beside!(
    GatedDeaf = "planted-gate-for-interrupts",
    BESIDE_READERS_INTERRUPTED,
    Shared,
    SmallGated,
    CLOSES
);

const SMALL: Traits = Traits { release_waits: true, ..PLAIN };

use rules::SMALL_QUEUE;

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
    pub subject: &'static dyn Subject,
    /// The ordering that is missing, where that is the whole flaw; only loom knows of it.
    pub weakening: Option<Weakening>,
    /// Who must catch it, and where; empty for a lock that must pass everything.
    pub catchers: Vec<(Catcher, Kind)>,
}

fn bug(subject: &'static dyn Subject, catchers: &[(Catcher, Kind)]) -> Planted {
    Planted { subject, weakening: None, catchers: catchers.to_vec() }
}

/// A real lock without one of its orderings, which loom must miss in its scenario of this name.
fn missing(lock: &str, site: Site, to: Ordering, scenario: &'static str, kind: Kind) -> Planted {
    let subject = variants().into_iter().find(|subject| subject.name() == lock);
    Planted {
        subject: subject.expect("a lock of the catalogue"),
        weakening: Some(Weakening { site, to }),
        catchers: vec![(Catcher::Loom(scenario), kind)],
    }
}

/// Every planted bug.
#[must_use]
pub fn all() -> Vec<Planted> {
    use Catcher::{Loom, Shuttle};
    vec![
        bug(Of::<RelaxedRelease>::VALUE, &[(Loom("two"), Kind::DataRace)]),
        bug(Of::<RelaxedLink>::VALUE, &[(Loom("two"), Kind::NodeLife)]),
        bug(
            Of::<SkipsLink>::VALUE,
            &[(Loom("two"), Kind::Deadlock), (Shuttle("four"), Kind::Deadlock)],
        ),
        bug(
            Of::<WipingRelease>::VALUE,
            &[(Loom("two"), Kind::State), (Shuttle("four"), Kind::State)],
        ),
        bug(Of::<Barging>::VALUE, &[(Loom("three"), Kind::Fifo), (Shuttle("four"), Kind::Fifo)]),
        bug(
            Of::<SharedPending>::VALUE,
            &[(Loom("three"), Kind::Fifo), (Shuttle("four"), Kind::State)],
        ),
        bug(
            Of::<ReusesNode>::VALUE,
            &[(Loom("interrupted"), Kind::NodeLife), (Shuttle("interrupted-3"), Kind::Deadlock)],
        ),
        bug(Of::<LeaksLevel>::VALUE, &[(Loom("two"), Kind::Nesting)]),
        bug(
            Of::<TwoSteps>::VALUE,
            &[(Loom("two"), Kind::DataRace), (Shuttle("four"), Kind::Exclusion)],
        ),
        bug(Of::<TryWaits>::VALUE, &[(Loom("try"), Kind::TryWaited)]),
        bug(Of::<Denies>::VALUE, &[(Loom("two"), Kind::IsLocked)]),
        bug(Of::<NeverEnds>::VALUE, &[(Loom("two"), Kind::Livelock)]),
        bug(
            Of::<PassesWriter>::VALUE,
            &[(Loom("read-held"), Kind::WriterPassed), (Shuttle("readers"), Kind::WriterPassed)],
        ),
        bug(Of::<InterruptQueues>::VALUE, &[(Loom("interrupted-reader"), Kind::Deadlock)]),
        bug(Of::<ExcludesReaders>::VALUE, &[(Loom("share"), Kind::Deadlock)]),
        bug(
            Of::<IgnoresWriter>::VALUE,
            &[(Loom("write-read"), Kind::DataRace), (Shuttle("readers"), Kind::Exclusion)],
        ),
        missing("paravirt-queued-no-pending", Site::HaltSlow, Relaxed, "queue", Kind::LostWakeup),
        missing(
            "paravirt-queued-no-pending",
            Site::HaltSleeper,
            Relaxed,
            "queue",
            Kind::LostWakeup,
        ),
        missing(
            "paravirt-queued-no-pending",
            Site::HaltWaiterFence,
            AcqRel,
            "two-twice",
            Kind::LostWakeup,
        ),
        missing(
            "paravirt-queued-no-pending",
            Site::HaltHandOverFence,
            AcqRel,
            "two-twice",
            Kind::LostWakeup,
        ),
        missing(
            "paravirt-queued-conditional-kick",
            Site::HaltKickFence,
            AcqRel,
            "queue-vain",
            Kind::LostWakeup,
        ),
        missing(
            "paravirt-queued-conditional-kick",
            Site::HaltSleepFence,
            AcqRel,
            "queue-vain",
            Kind::LostWakeup,
        ),
        // The default mutex whose releases do not pass the light barrier. (Without the heavy one: see the
        // list of weakenings that survive.)
        missing("mutex-sleepy", Site::SleepLight, AcqRel, "two-twice", Kind::LostWakeup),
        // What only a gate without a fence of its own shows, and only an upgrade.
        missing("rwlock-plain-gate", Site::RwGateTake, Relaxed, "queue", Kind::DataRace),
        missing("rwlock-upgraded", Site::RwUpgrade, Relaxed, "write-read", Kind::DataRace),
        bug(Of::<StaleRehalt>::VALUE, &[(Loom("vain"), Kind::Hash)]),
        bug(
            Of::<MarksFirst>::VALUE,
            &[(Loom("two-twice"), Kind::LostWakeup), (Shuttle("four"), Kind::LostWakeup)],
        ),
        bug(
            Of::<KicksEarly>::VALUE,
            &[(Loom("two-twice"), Kind::LostWakeup), (Shuttle("four"), Kind::LostWakeup)],
        ),
        bug(
            Of::<AsksLate>::VALUE,
            &[(Loom("queue"), Kind::LostWakeup), (Shuttle("four"), Kind::LostWakeup)],
        ),
        bug(
            Of::<TrustsKick>::VALUE,
            &[(Loom("queue-vain"), Kind::Fifo), (Shuttle("four"), Kind::Fifo)],
        ),
        bug(
            Of::<LooksFirst>::VALUE,
            &[(Loom("two-twice"), Kind::LostWakeup), (Shuttle("four"), Kind::LostWakeup)],
        ),
        bug(
            Of::<HandsOverLast>::VALUE,
            &[(Loom("two-twice"), Kind::LostWakeup), (Shuttle("four"), Kind::LostWakeup)],
        ),
        bug(
            Of::<LosesSecondary>::VALUE,
            // Where others are left, they pass who is lost.
            &[(Loom("aside"), Kind::Deadlock), (Shuttle("full"), Kind::Bypass)],
        ),
        bug(
            Of::<ClearsTail>::VALUE,
            &[(Loom("aside"), Kind::Deadlock), (Shuttle("full"), Kind::Deadlock)],
        ),
        bug(
            Of::<NeverFlushes>::VALUE,
            &[(Loom("aside-twice"), Kind::Bypass), (Shuttle("full"), Kind::Bypass)],
        ),
        bug(
            Of::<MovesUrgent>::VALUE,
            &[(Loom("aside-urgent"), Kind::Bypass), (Shuttle("urgent"), Kind::Bypass)],
        ),
        bug(
            Of::<ForgetsHalted>::VALUE,
            &[(Loom("aside"), Kind::LostWakeup), (Shuttle("full"), Kind::LostWakeup)],
        ),
        bug(
            Of::<OnceLooks>::VALUE,
            &[(Loom("two-twice"), Kind::LostWakeup), (Shuttle("four"), Kind::LostWakeup)],
        ),
        bug(
            Of::<OnceWakesOne>::VALUE,
            &[(Loom("queue"), Kind::LostWakeup), (Shuttle("four"), Kind::LostWakeup)],
        ),
        bug(
            Of::<MonitorReleases>::VALUE,
            &[(Loom("two-twice"), Kind::LostWakeup), (Shuttle("four"), Kind::LostWakeup)],
        ),
        bug(
            Of::<GatedLooks>::VALUE,
            &[(Loom("two-twice"), Kind::LostWakeup), (Shuttle("four"), Kind::LostWakeup)],
        ),
        bug(Of::<GatedDeaf>::VALUE, &[(Loom("interrupted-reader"), Kind::LostWakeup)]),
        // A limit that its file states, not a bug: its release waits for an interrupted waiter.
        bug(Of::<Mcs>::VALUE, &[(Loom("crossed"), Kind::Deadlock)]),
        bug(Of::<SoundQueue>::VALUE, &[]),
        bug(Of::<SoundHalt>::VALUE, &[]),
        bug(Of::<SoundFlag>::VALUE, &[]),
        bug(Of::<SoundRw>::VALUE, &[]),
        bug(Of::<SoundOnce>::VALUE, &[]),
        bug(Of::<SoundGated>::VALUE, &[]),
    ]
}
