//! Every tunable of the locks, in one block, each with its evidence.
//!
//! "Do you have any support for the magic numbers?" is asked of every lock in its review.
//! The answers stand here.

/// A type that a tunable may have: a number in a range, or one of a few names.
pub trait Setting: Copy {
    /// The names of the values, in order; empty for a number.
    const NAMES: &'static [&'static str];
    /// The value as a number: itself, or its place among the names.
    fn to_number(self) -> u32;
    /// The value of a number in range; any other becomes the nearest.
    fn from_number(number: u32) -> Self;
}

impl Setting for u32 {
    const NAMES: &'static [&'static str] = &[];
    fn to_number(self) -> u32 {
        self
    }
    fn from_number(number: u32) -> Self {
        number
    }
}

impl Setting for bool {
    const NAMES: &'static [&'static str] = &["off", "on"];
    fn to_number(self) -> u32 {
        self.into()
    }
    fn from_number(number: u32) -> Self {
        number != 0
    }
}

/// When the kick of a halted waiter that becomes the head is left to the release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defer {
    /// Never: it is kicked when the head of the queue is handed to it.
    Never,
    /// Where no kick-ahead is set, or where the waiter behind the new head is halted, too:
    /// the two conditions of document 000.
    Conditions,
    /// Always, as Linux ended up.
    Always,
}

impl Setting for Defer {
    const NAMES: &'static [&'static str] = &["never", "conditions", "always"];
    fn to_number(self) -> u32 {
        self as u32
    }
    fn from_number(number: u32) -> Self {
        [Self::Never, Self::Conditions, Self::Always][number.min(2) as usize]
    }
}

/// Whether a waiter in the queue halts before its threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adaptive {
    /// Never.
    Off,
    /// If the one before it is halted and it has halted often of late itself: the sixth patch
    /// of document 000.
    History,
    /// If the one before it is halted: what the patch's reviewer proposed instead.
    Neighbour,
    /// If the one before it does not run, at a look each `check_polls`: as Linux ended up. The head
    /// that is asleep counts, too.
    Periodic,
}

impl Setting for Adaptive {
    const NAMES: &'static [&'static str] = &["off", "history", "neighbour", "periodic"];
    fn to_number(self) -> u32 {
        self as u32
    }
    fn from_number(number: u32) -> Self {
        [Self::Off, Self::History, Self::Neighbour, Self::Periodic][number.min(3) as usize]
    }
}

/// The part of the locks that reads a tunable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Newcomers of a queued lock, at a lock that has an owner and no waiter.
    Owner,
    /// Newcomers of a queued lock, at its pending waiter.
    Pending,
    /// The backoff lock.
    Backoff,
    /// The simple lock.
    Simple,
    /// The yielding lock.
    Yield,
    /// Waiting in a queue before a halt.
    QueueSpin,
    /// Waiting in a queue that halts.
    Halt,
    /// Waiting as the pending waiter of a lock whose waiters halt.
    HaltPending,
    /// Whether a kick is left to the release.
    Defer,
    /// Waiters that check whether the one they wait for runs.
    RunStatus,
    /// Order by place.
    Numa,
    /// Admission past the queue.
    Stealing,
    /// Admission that culls the waiters.
    Culled,
    /// The barging quantum.
    Turns,
    /// The default locks.
    Mutex,
    /// The default reader-writer lock.
    Rwlock,
    /// Waiters past which newcomers get in until they are the heir.
    Heir,
}

/// The users for whom a tunable is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// For programs, which may set it.
    Supported,
    /// For the laboratory: a switch or a threshold of the paravirt series, document 000.
    Document000,
    /// For the laboratory: a switch of the NUMA-aware order's series, document 002.
    Document002,
    /// For the laboratory: the bound of the backoff patch, document 003.
    Document003,
    /// For the laboratory: a switch of the powerpc series, document 004.
    Document004,
    /// For the laboratory: how the default locks wait.
    DefaultLocks,
}

impl Group {
    /// All of them, in the order of [`Tuning::ALL`].
    pub const ALL: [Self; 6] = [
        Self::Supported,
        Self::Document000,
        Self::Document002,
        Self::Document003,
        Self::Document004,
        Self::DefaultLocks,
    ];

    /// What it is called in a table.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Supported => "Tunables for programs",
            Self::Document000 => {
                "Document 000: switches and thresholds of the series, for the laboratory"
            }
            Self::Document002 => "Document 002, for the laboratory",
            Self::Document003 => "Document 003, for the laboratory",
            Self::Document004 => "Document 004, for the laboratory",
            Self::DefaultLocks => "How the default locks wait, for the laboratory",
        }
    }
}

/// What is known about one tunable: enough to set it by name.
#[derive(Debug, Clone, Copy)]
pub struct Tunable {
    /// The name: that of its field in [`Tuning`].
    pub name: &'static str,
    /// The users for whom it is.
    pub group: Group,
    /// The part of the locks that reads it.
    pub part: Part,
    /// What it does.
    pub about: &'static str,
    /// The smallest value.
    pub min: u32,
    /// The largest value.
    pub max: u32,
    /// The names of its values, for one that is not a number.
    pub names: &'static [&'static str],
    /// Reads it as a number.
    pub get: fn(&Tuning) -> u32,
    /// Sets it from a number within the range.
    pub set: fn(&mut Tuning, u32),
}

macro_rules! tunables {
    ($($group:ident {
        $($(#[doc = $about:literal])+ $part:ident $field:ident: $type:ty = $default:expr,
          $range:expr;)*
    })*) => {
        /// The tunables in force on a platform.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct Tuning {
            $($($(#[doc = $about])+ pub $field: $type,)*)*
        }

        impl Tuning {
            /// What [`crate::platform::Platform::tuning`] returns unless a platform says
            /// otherwise.
            pub const DEFAULT: Self = Self { $($($field: $default,)*)* };

            /// Every tunable, those for programs first.
            pub const ALL: &'static [Tunable] = &[$($(Tunable {
                name: stringify!($field),
                group: Group::$group,
                part: Part::$part,
                about: concat!($($about),+),
                min: *$range.start(),
                max: *$range.end(),
                names: <$type as Setting>::NAMES,
                get: |tuning| tuning.$field.to_number(),
                set: |tuning, number| tuning.$field = <$type>::from_number(number),
            },)*)*];

            /// The tunables for programs.
            pub const SUPPORTED: &'static [Tunable] = {
                let mut count = 0;
                while let Group::Supported = Self::ALL[count].group {
                    count += 1;
                }
                Self::ALL.split_at(count).0
            };
        }
    };
}

/// The range of a number of polls.
const POLLS: core::ops::RangeInclusive<u32> = 0..=1 << 24;
const SWITCH: core::ops::RangeInclusive<u32> = 0..=1;
const CHOICE: core::ops::RangeInclusive<u32> = 0..=2;

tunables! {
    Supported {
        /// Polls of a lock that has an owner and no waiter, before a newcomer becomes the pending waiter.
        /// Linux: 0.
        Owner owner_polls: u32 = OWNER_POLLS, 0..=16;
        /// Pause instructions before the first of those polls; each further one is after twice as
        /// many.
        Owner owner_pauses: u32 = OWNER_PAUSES, 0..=1024;
        /// Polls of the word while the pending waiter is just acquiring the lock, before a newcomer
        /// gives up waiting for the word to settle and queues. Linux: 1 by default, 512 on x86 and
        /// powerpc ("not tuned").
        Pending pending_polls: u32 = PENDING_POLLS, POLLS;
        /// Polls of a taken simple lock before its waiter yields to the owner.
        Simple simple_polls: u32 = SIMPLE_POLLS, POLLS;
        /// Polls of a taken yielding lock before its waiter yields.
        Yield yield_polls: u32 = YIELD_POLLS, POLLS;
        /// Halt: whether a waiter halts earlier if the one before it is known not to be running. It looks
        /// once, when its wait begins; with [`Adaptive::Periodic`] again before each `check_polls` polls.
        /// Simple: whether a waiter yields at once if the owner is.
        RunStatus heed_preempted: bool = false, SWITCH;
        /// CNA: nanoseconds after which the secondary queue is put before the main one. The series: 1 ms,
        /// and 10 ms before its last version.
        Numa numa_threshold_ns: u32 = NUMA_THRESHOLD_NS, 1..=1 << 30;
        /// CNA: while no waiter is in the secondary queue, one head in 2 to the power of this arranges the
        /// queue (shuffle reduction); with 0, each does. The series: 7.
        Numa numa_skip_bits: u32 = 7, 0..=16;
        /// Stealing: polls of a newcomer at a taken lock before it queues.
        Stealing steal_polls: u32 = STEAL_POLLS, POLLS;
        /// Culled: polls of a newcomer at a taken lock before it queues.
        Culled cull_polls: u32 = CULL_POLLS, POLLS;
        /// Culled: polls of the awake waiter before it gives up and queues.
        Culled awake_polls: u32 = AWAKE_POLLS, 1..=1 << 24;
        /// Culled: polls of an awake waiter at a taken lock before it forbids stealing.
        Culled forbid_polls: u32 = FORBID_POLLS, POLLS;
        /// Culled: the barging quantum: acquisitions of a CPU past waiters (locks stolen past a queue,
        /// releases past a sleeping head) before it wakes the head, to queue itself when that one has come.
        Turns rotate_turns: u32 = ROTATE_TURNS, 1..=1 << 24;
        /// Culled: the same in microseconds since the first of these acquisitions.
        Turns rotate_us: u32 = ROTATE_US, 1..=1 << 24;
        /// Culled: a CPU whose quantum is over, and which no waiter has replaced yet, yields once in so many
        /// acquisitions. 0: never.
        Turns yield_turns: u32 = YIELD_TURNS, 0..=1 << 24;
    }
    Document000 {
        /// Halt: polls of a waiter in the queue before it halts. Linux: 32768.
        QueueSpin queue_polls: u32 = QUEUE_POLLS, 1..=1 << 24;
        /// Halt: polls of the head of the queue before it halts. Linux: 32768.
        Halt head_polls: u32 = HEAD_POLLS, 1..=1 << 24;
        /// Halt: whether a newcomer may wait as the pending waiter (patch 2 of the series).
        HaltPending pending: bool = true, SWITCH;
        /// Halt: polls of the pending waiter before it gives up and queues (patch 2). The series: a
        /// 32nd of the threshold in the queue.
        HaltPending pending_wait_polls: u32 = PENDING_WAIT_POLLS, 1..=1 << 24;
        /// Halt: whether a release kicks the halted head whatever its state (patch 1).
        Halt kick_unconditionally: bool = true, SWITCH;
        /// Halt: halted waiters behind the head that a release kicks as well (patch 4).
        Halt kick_ahead: u32 = 0, 0..=KICK_AHEAD_MAX as u32;
        /// Halt: when the kick of a new head is left to the release (patch 5).
        Defer defer: Defer = Defer::Always, CHOICE;
        /// Halt: whether a waiter halts earlier if the one before it is halted (patch 6).
        Halt adaptive: Adaptive = Adaptive::Off, 0..=3;
        /// Halt: the threshold of a waiter that halts early is `queue_polls` divided by this.
        Halt short_divisor: u32 = 32, 1..=1 << 16;
        /// Halt: polls between two checks of the waiter before. The series: 256 of 32768.
        Halt check_polls: u32 = CHECK_POLLS, 1..=1 << 24;
        /// Halt: what a halt adds to the wait history; a halt that came early adds 1.
        Halt history_increment: u32 = 2, 0..=1 << 16;
        /// Halt: below this the wait history does not fall.
        Halt history_min: u32 = 1, 0..=1 << 16;
        /// Halt: from this on the wait history does not rise.
        Halt history_max: u32 = 30, 0..=1 << 16;
        /// Halt: wait history above which waiters heed the one before them.
        Halt history_threshold: u32 = 15, 0..=1 << 16;
    }
    Document002 {
        /// CNA: whether all CPUs of a node are equally near, and all other nodes equally far, as in the series. Off: by
        /// last-level cache, node and distance of nodes, as the machine has them.
        Numa numa_by_node: bool = false, SWITCH;
    }
    Document003 {
        /// Backoff: pause instructions between two polls, at most.
        Backoff backoff_cap: u32 = BACKOFF_CAP, 1..=1024;
    }
    Document004 {
        /// Halt: times that a waiter in the queue yields to the one before it before it halts.
        Halt queue_yields: u32 = 0, 0..=1024;
    }
    DefaultLocks {
        /// Default locks: nanoseconds that a waiter polls at most before it yields; fewer where sleeping costs less, or where
        /// polling was in vain, and at most 2000 where it waits for readers or a writer.
        Mutex mutex_spin_ns: u32 = MUTEX_SPIN_NS, 0..=1 << 30;
        /// Default locks: microseconds in which a waiter beside which no two others are awake then polls and yields, before
        /// it sleeps; ten times as long where waiters keep away from a lock. A yield that takes longer counts as one that
        /// should have been a sleep. Also the length of a rest; with 0 no waiter rests.
        Mutex mutex_awake_us: u32 = MUTEX_AWAKE_US, 0..=1 << 20;
        /// Default locks and the paravirt reader-writer lock: microseconds that a waiter has waited before it forbids
        /// others to take the lock past it.
        Heir mutex_heir_us: u32 = MUTEX_HEIR_US, 0..=1 << 24;
        /// Mutex: the acquisitions of a quantum are short if they take less than so many nanoseconds in the mean: then
        /// no thread is to sleep. 0: none is short.
        Mutex mutex_short_ns: u32 = MUTEX_SHORT_NS, 0..=1 << 30;
        /// Default locks: releases in a row that find no sleeper before they are plain stores again.
        Mutex sleep_idle: u32 = SLEEP_IDLE, 1..=1 << 24;
    }
}

/// What tunables were called before the names of today, with those.
const FORMER: &[(&str, &str)] = &[
    ("owner_looks", "owner_polls"),
    ("pending_looks", "pending_polls"),
    ("simple_looks", "simple_polls"),
    ("yield_looks", "yield_polls"),
    ("steal_looks", "steal_polls"),
    ("cull_looks", "cull_polls"),
    ("awake_looks", "awake_polls"),
    ("patience_looks", "forbid_polls"),
    ("queue_looks", "queue_polls"),
    ("head_looks", "head_polls"),
    ("pending_wait_looks", "pending_wait_polls"),
    ("check_looks", "check_polls"),
    ("history_least", "history_min"),
    ("history_most", "history_max"),
];

impl Tuning {
    /// The tunable of this name, or of a name that it had before. Takes no lock and allocates nothing.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Tunable> {
        let former = FORMER.iter().find(|(former, _)| *former == name);
        let name = former.map_or(name, |(_, today)| today);
        Self::ALL.iter().find(|tunable| tunable.name == name)
    }
}

/// Most waiters that a release may kick beside the head. The series has at most 4, since "I
/// didn't see much performance difference when I did a kick-ahead of 5".
pub const KICK_AHEAD_MAX: usize = 5;

/// The kick-ahead level of the series for this many CPUs: 1 from 4 on, 2 from 8, 3 from 16, 4
/// from 32. That is log2, less 1. (In the review its author says that a division by 4, a right shift by 2, would do
/// as well: of the number of CPUs, which gives 4 from 16 on. Nothing was measured with it there.)
#[must_use]
pub const fn kick_ahead_level(cpus: u32) -> u32 {
    match cpus {
        0..4 => 0,
        _ => {
            let level = cpus.ilog2() - 1;
            if level < 4 { level } else { 4 }
        }
    }
}

// The evidence is printed by `cargo run --release -p qspin --example tunables`; docs/tuning.md sums
// up a run on a machine with 2 CPUs, docs/notes/tuning.md holds its tables.

/// Default of [`Tuning::owner_polls`]. Without them two threads with empty sections do 0.51 of the
/// work; with sections of 300 ns and of 3 µs there is no clear difference. Eight polls do 1.37 of
/// the work of empty sections, but keep a newcomer out of the queue for 510 pauses.
pub const OWNER_POLLS: u32 = 4;

/// Default of [`Tuning::owner_pauses`]. With 8, two threads do 1.79 of the work with empty sections
/// and 0.89 with sections of 300 ns; with 1, it is 0.87 and 1.06.
pub const OWNER_PAUSES: u32 = 2;

/// Default of [`Tuning::pending_polls`]. With 1, two threads with empty sections do 0.73 of the
/// work; from 16 to 4096 there is no clear difference, so the document's 512 stays.
pub const PENDING_POLLS: u32 = 512;

/// Default of [`Tuning::simple_polls`]. With 16, eight threads on 2 CPUs do 0.85 to 0.9 of the work,
/// with 1 from 0.7 to 0.75; more than 256 gains nothing.
pub const SIMPLE_POLLS: u32 = 256;

/// Default of [`Tuning::yield_polls`]. With 16, eight threads on 2 CPUs do 0.8 to 0.9 of the work,
/// with 1 from 0.7 to 0.8; more than 256 gains nothing.
pub const YIELD_POLLS: u32 = 256;

/// Default of [`Tuning::backoff_cap`]: document 003's bound. Its grid,
/// `qspin bench --workload kernel-lock-bench --ratio backoff/tas`, is the evidence.
pub const BACKOFF_CAP: u32 = 64;

/// Default of [`Tuning::queue_polls`]: some microseconds. From 1 to 1024 there is no clear
/// difference; with the series' 32768 eight threads on 2 CPUs do 0.73 to 0.81 of the work.
pub const QUEUE_POLLS: u32 = 64;
/// Default of [`Tuning::head_polls`]. With 1 to 64 eight to 32 threads do 0.88 to 1 of the work with
/// nothing outside, with 32768 0.92 to 1; outside 2 µs there is no clear difference up to 1024.
pub const HEAD_POLLS: u32 = 256;
/// Default of [`Tuning::check_polls`]: eight times within the threshold. The series' 256 is beyond it.
pub const CHECK_POLLS: u32 = 8;
/// Default of [`Tuning::pending_wait_polls`]: the series' figure. Of the locks that halt only the
/// strict one has such a waiter; with two threads its gain is hidden in noise (docs/paravirt.md).
pub const PENDING_WAIT_POLLS: u32 = 1024;
/// Default of [`Tuning::numa_threshold_ns`]: the document's.
pub const NUMA_THRESHOLD_NS: u32 = 1_000_000;
/// Default of [`Tuning::steal_polls`]. With 16 eight threads do 0.75 of the work with 2 µs outside,
/// with 0 a fifth or less; 64 makes no clear difference.
pub const STEAL_POLLS: u32 = 256;
/// Default of [`Tuning::cull_polls`]. From 0 to 512 there is no clear difference with eight threads.
pub const CULL_POLLS: u32 = 32;
/// Default of [`Tuning::awake_polls`]: below a time slice, above a wake-up. From 64 to 16384 there is
/// no clear difference with more threads than CPUs; with two threads 1024 did 0.97 of the work.
pub const AWAKE_POLLS: u32 = 4096;
/// Default of [`Tuning::forbid_polls`]. From 1 to 1024 there is no clear difference in throughput;
/// with empty sections outside, the longest wait of eight threads is a quarter shorter with 8 or 16
/// than with 64.
pub const FORBID_POLLS: u32 = 8;
/// Default of [`Tuning::rotate_turns`]: out of the way of `rotate_us` on a platform with a clock.
pub const ROTATE_TURNS: u32 = 4096;
/// Default of [`Tuning::rotate_us`]. From 250 to 2000 throughput differs little, and the longest wait
/// of many threads grows with it.
pub const ROTATE_US: u32 = 500;
/// As [`ROTATE_US`], where the process has less CPU time than CPUs, by a quota. 16 threads with 10 µs and nothing outside, a quota of half a CPU or one,
/// over `std`, which lets one thread have all: 0.80 with 500, 0.83 with 1000, 0.92 and 0.96 with 2000, 0.99 with 5000;
/// busiest over idlest 2, 5, 5 and 59 in a second.
pub const QUOTA_ROTATE_US: u32 = 4000;
/// Default of [`Tuning::yield_turns`]. From 8 to 64 throughput differs little, and the longest wait
/// grows with it; one in every turn costs 64 threads a tenth of the work, where turns are short. The mutex yields after
/// fewer long turns: [`crate::sleepers::turns_between_yields`].
pub const YIELD_TURNS: u32 = 16;
/// Default of [`Tuning::mutex_spin_ns`]: as long as sleeping costs, whatever that is. Geometric mean of the regret on two
/// CPUs of an AMD EPYC under KVM, where that is some 20 µs: 24 quiet random loads 1.039, and with 6000 1.063; 20 disturbed
/// ones 1.080 and 1.115, with less CPU time an operation in both.
pub const MUTEX_SPIN_NS: u32 = 100_000;
/// Default of [`Tuning::mutex_awake_us`]. Geometric mean of the regret over 24 to 30 random loads each, two CPUs of a Xeon
/// under KVM where sleeping costs about 40 µs: with 40, 1.038 and 1.051; with 200, 1.032; with 600, 1.011 and 1.017; bounded by
/// the measured cost of sleeping, 1.046 where 200 had 1.020.
pub const MUTEX_AWAKE_US: u32 = 200;
/// Default of [`Tuning::mutex_heir_us`].
pub const MUTEX_HEIR_US: u32 = 5000;
/// Default of [`Tuning::mutex_short_ns`]. With 350 and 700 there is no clear difference; with 0, that is never, 32
/// threads and sections of 50 ns do 0.4 of the work.
pub const MUTEX_SHORT_NS: u32 = 700;
/// Default of [`Tuning::sleep_idle`].
pub const SLEEP_IDLE: u32 = 256;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::vec::Vec;

    use super::*;

    #[test]
    fn every_tunable_is_set_by_itself_alone_and_its_default_is_in_range() {
        let mut names = BTreeSet::new();
        for tunable in Tuning::ALL {
            assert!(names.insert(tunable.name));
            let default = (tunable.get)(&Tuning::DEFAULT);
            assert!((tunable.min..=tunable.max).contains(&default), "{}", tunable.name);
            if !tunable.names.is_empty() {
                assert_eq!(tunable.names.len() as u32, tunable.max + 1, "{}", tunable.name);
            }
            for value in [tunable.min, tunable.max] {
                let mut tuning = Tuning::DEFAULT;
                (tunable.set)(&mut tuning, value);
                assert_eq!((tunable.get)(&tuning), value, "{}", tunable.name);
                (tunable.set)(&mut tuning, default);
                assert_eq!(tuning, Tuning::DEFAULT, "{} set something else", tunable.name);
            }
        }
    }

    #[test]
    fn a_tunable_is_found_by_its_name_and_by_what_it_was_called_before() {
        let name = |name| Tuning::named(name).map(|tunable| tunable.name);
        for tunable in Tuning::ALL {
            assert_eq!(name(tunable.name), Some(tunable.name));
        }
        for (former, today) in FORMER {
            assert_eq!(name(former), Some(*today));
            assert!(Tuning::ALL.iter().all(|tunable| tunable.name != *former), "{former}");
        }
        assert_eq!((name("moon"), name("")), (None, None));
    }

    #[test]
    fn at_most_fifteen_are_for_programs_and_they_come_first() {
        let supported = Tuning::ALL.iter().filter(|tunable| tunable.group == Group::Supported);
        assert_eq!(supported.count(), Tuning::SUPPORTED.len());
        assert!(Tuning::SUPPORTED.len() <= 15);
        let groups: Vec<_> = Tuning::ALL.iter().map(|tunable| tunable.group as u8).collect();
        assert!(groups.is_sorted(), "a table shows them group by group");
    }

    #[test]
    fn kick_ahead_follows_the_thresholds_of_the_document() {
        let levels = [(1, 0), (3, 0), (4, 1), (7, 1), (8, 2), (16, 3), (31, 3), (32, 4), (9999, 4)];
        for (cpus, level) in levels {
            assert_eq!(kick_ahead_level(cpus), level, "{cpus} CPUs");
        }
    }
}
