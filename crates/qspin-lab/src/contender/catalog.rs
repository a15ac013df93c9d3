//! The list of everything that can be measured, with what people ask about a lock.

use qspin::tuning::Tunable;
use qspin_core::locks::Id;

use crate::bench::engine::{MutexEngine, RwEngine};

use super::{Raw, RawRw, baseline, pthread, rust_peers};

/// Where a lock comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// This project.
    Ours,
    /// What a program would use instead: Rust's and the C library's locks.
    Peer,
    /// Locks of C and C++ libraries, where they were found at build time.
    PeerC,
    /// No lock: an end of the scale.
    Baseline,
}

/// How a lock is measured.
#[derive(Clone, Copy)]
pub enum Engine {
    /// It excludes.
    Mutex(MutexEngine),
    /// Readers share it.
    Rw(RwEngine),
}

/// A lock that can be measured.
#[derive(Clone, Copy)]
pub struct Lock {
    /// Its name in rows and options.
    pub name: &'static str,
    /// Where it comes from.
    pub origin: Origin,
    /// Size of the lock itself.
    pub bytes: usize,
    /// Which waiter gets it next.
    pub fairness: &'static str,
    /// How a waiter waits.
    pub waits: &'static str,
    /// Whether it knows about NUMA nodes.
    pub numa_aware: bool,
    /// What it is good for.
    pub purpose: &'static str,
    /// How it is measured.
    pub engine: Engine,
    /// Which of the register it is, if it is of this project.
    pub ours: Option<Id>,
}

impl Lock {
    /// Whether it excludes no thread, so that only one thread may use it.
    #[must_use]
    pub fn is_for_one_thread(&self) -> bool {
        self.origin == Origin::Baseline
    }

    /// Whether it counts its events.
    #[must_use]
    pub fn counts(&self) -> bool {
        match self.engine {
            Engine::Mutex(engine) => engine.count.is_some(),
            Engine::Rw(engine) => engine.count.is_some(),
        }
    }

    /// Whether it reads the tunable.
    #[must_use]
    pub fn heeds(&self, tunable: &Tunable) -> bool {
        self.ours.is_some_and(|id| id.lock().reads.contains(&tunable.part))
    }

    /// Whether it is known by this name: those of the register have several, the others one.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.ours.is_some_and(|id| id.lock().is_called(name))
    }

    /// Whether it is a reader-writer lock.
    #[must_use]
    pub fn is_rw(&self) -> bool {
        matches!(self.engine, Engine::Rw(_))
    }
}

/// The name of the lock that is the floor, and of the one that is none.
pub const FLOOR: &str = "floor";
/// The name of no lock at all.
pub const EMPTY: &str = "empty";

const UNFAIR: &str = "none";

macro_rules! lock {
    ($origin:ident, $name:literal, $bytes:expr, $engine:expr, $fairness:expr, $waits:literal,
     $purpose:literal) => {
        Lock {
            name: $name,
            origin: Origin::$origin,
            bytes: $bytes,
            fairness: $fairness,
            waits: $waits,
            numa_aware: false,
            purpose: $purpose,
            engine: $engine,
            ours: None,
        }
    };
}

/// The locks of the register.
macro_rules! ours {
    (()
        sleeping { $($sleeping:tt)* }
        spinning { $($spinning:tt)* }
        shared_sleeping { $($shared_sleeping:tt)* }
        shared_spinning { $($shared_spinning:tt)* }
    ) => {{
        let mut locks =
            ours!(RawMutex, CountedRawMutex, Mutex(MutexEngine, Raw), $($sleeping)* $($spinning)*);
        locks.extend(
            ours!(RawRwLock, CountedRawRwLock, Rw(RwEngine, RawRw), $($shared_sleeping)* $($shared_spinning)*),
        );
        locks
    }};
    ($raw:ident, $counted:ident, $kind:ident($engine:ident, $contender:ident),
     $($id:ident: $module:ident = $lock:path, $about:expr;)*) => {
        vec![$(of_the_register(
            Id::$id,
            Engine::$kind(
                $engine::of::<$contender<qspin::$module::$raw>>()
                    .counting::<$contender<qspin::$module::$counted>>(),
            ),
        )),*]
    };
}

fn of_the_register(id: Id, engine: Engine) -> Lock {
    let lock = id.lock();
    Lock {
        name: lock.name,
        origin: Origin::Ours,
        bytes: lock.bytes(),
        fairness: lock.fairness,
        waits: lock.waiting,
        numa_aware: lock.near_first,
        purpose: lock.purpose,
        engine,
        ours: Some(id),
    }
}

macro_rules! peer {
    ($name:literal, $contender:ty, $bytes:ty, $fairness:expr, $waits:literal, $purpose:literal) => {
        lock!(
            Peer,
            $name,
            size_of::<$bytes>(),
            Engine::Mutex(MutexEngine::of::<$contender>()),
            $fairness,
            $waits,
            $purpose
        )
    };
}

macro_rules! peer_rw {
    ($name:literal, $contender:ty, $bytes:ty, $fairness:literal, $waits:literal,
     $purpose:literal) => {
        lock!(
            Peer,
            $name,
            size_of::<$bytes>(),
            Engine::Rw(RwEngine::of::<$contender>()),
            $fairness,
            $waits,
            $purpose
        )
    };
}

/// Every lock of this build, ours first.
#[must_use]
pub fn locks() -> Vec<Lock> {
    let mut locks = qspin_core::for_each_lock!(ours);
    locks.extend(peers());
    #[cfg(feature = "peers-c")]
    locks.extend(super::c_peers::locks());
    locks.extend(baselines());
    locks
}

fn peers() -> Vec<Lock> {
    vec![
        peer!(
            "std",
            rust_peers::Std,
            std::sync::Mutex<()>,
            UNFAIR,
            "spins briefly, then sleeps",
            "Rust's standard library"
        ),
        peer!(
            "parking_lot",
            rust_peers::ParkingLot,
            parking_lot::Mutex<()>,
            UNFAIR,
            "spins briefly, then sleeps",
            "the crate parking_lot"
        ),
        peer!(
            "parking_lot-0.12",
            rust_peers::ParkingLot012,
            parking_lot_0_12::Mutex<()>,
            "none; by turns now and then",
            "spins briefly, then sleeps",
            "the crate parking_lot, as it was at 0.12.5"
        ),
        peer!(
            "pthread",
            pthread::PthreadMutex,
            libc::pthread_mutex_t,
            UNFAIR,
            "sleeps",
            "the C library's default"
        ),
        peer!(
            "pthread_adaptive",
            pthread::PthreadAdaptive,
            libc::pthread_mutex_t,
            UNFAIR,
            "spins briefly, then sleeps",
            "the C library's adaptive kind"
        ),
        peer!(
            "pthread_spin",
            pthread::PthreadSpin,
            libc::pthread_spinlock_t,
            UNFAIR,
            "spins on the lock",
            "the C library's spinlock"
        ),
        peer!(
            "spin",
            rust_peers::Spin,
            spin::mutex::SpinMutex<()>,
            UNFAIR,
            "spins on the lock",
            "the crate spin"
        ),
        peer!(
            "spinning_top",
            rust_peers::SpinningTop,
            spinning_top::Spinlock<()>,
            UNFAIR,
            "spins on the lock",
            "the crate spinning_top"
        ),
        peer!(
            "mcslock",
            rust_peers::McsLock,
            mcslock::barging::spins::Mutex<()>,
            "queue, newcomers may pass",
            "spins on its own cache line",
            "the crate mcslock, its barging lock"
        ),
        peer!(
            "usync",
            rust_peers::Usync,
            usync::Mutex<()>,
            UNFAIR,
            "spins briefly, then sleeps",
            "the crate usync"
        ),
        peer_rw!(
            "std-rw",
            rust_peers::StdRw,
            std::sync::RwLock<()>,
            "prefers writers",
            "spins briefly, then sleeps",
            "Rust's standard library"
        ),
        peer_rw!(
            "parking_lot-rw",
            rust_peers::ParkingLotRw,
            parking_lot::RwLock<()>,
            "prefers writers",
            "spins briefly, then sleeps",
            "the crate parking_lot"
        ),
        peer_rw!(
            "pthread-rw",
            pthread::PthreadRw,
            libc::pthread_rwlock_t,
            "prefers readers",
            "sleeps",
            "the C library's default"
        ),
        peer_rw!(
            "pthread-writers-rw",
            pthread::PthreadRwWriters,
            libc::pthread_rwlock_t,
            "prefers writers",
            "sleeps",
            "the C library's kind that lets no reader pass a writer"
        ),
        peer_rw!(
            "parking_lot-0.12-rw",
            rust_peers::ParkingLot012Rw,
            parking_lot_0_12::RwLock<()>,
            "prefers writers; by turns now and then",
            "spins briefly, then sleeps",
            "the crate parking_lot, as it was at 0.12.5"
        ),
    ]
}

fn baselines() -> Vec<Lock> {
    vec![
        lock!(
            Baseline,
            "empty",
            0,
            Engine::Mutex(MutexEngine::of::<baseline::Empty>()),
            "does not exclude",
            "never",
            "what the measuring loop costs (one thread only)"
        ),
        lock!(
            Baseline,
            "floor",
            size_of::<baseline::Floor>(),
            Engine::Mutex(MutexEngine::of::<baseline::Floor>()),
            UNFAIR,
            "spins on the lock",
            "the cheapest pair that locks (one thread only)"
        ),
    ]
}

/// Names of the C and C++ peers, whether this build has them or not.
pub const PEERS_C: [&str; 6] = ["tbb_spin", "tbb_mutex", "absl", "nsync", "ck_fas", "ck_mcs"];

#[cfg(test)]
mod tests {
    use qspin::tuning::{Part, Tuning};

    use super::*;

    #[test]
    fn names_are_unique_and_reader_writer_locks_say_so() {
        let locks = locks();
        let mut names: Vec<_> = locks.iter().map(|lock| lock.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), locks.len());
        for lock in &locks {
            let says_so = lock.name.ends_with("-rw") || lock.name == "rwlock";
            assert_eq!(lock.is_rw(), says_so, "{}", lock.name);
        }
    }

    #[test]
    fn the_row_format_names_every_contender() {
        let format = include_str!("../../../../docs/row-format.md");
        let names = format.split("### Names of locks").nth(1).expect("a list of names");
        let names = names.split("\n##").next().unwrap_or(names);
        // Names stand between backticks, several between two.
        let names: Vec<&str> =
            names.split('`').skip(1).step_by(2).flat_map(str::split_whitespace).collect();
        for lock in locks() {
            assert!(names.contains(&lock.name), "{} is missing", lock.name);
        }
        for peer in PEERS_C {
            assert!(names.contains(&peer), "{peer} is missing");
        }
    }

    #[test]
    fn the_locks_that_know_nodes_are_those_that_read_the_tunables_of_their_order() {
        let of_the_order = Tuning::ALL.iter().filter(|tunable| tunable.part == Part::Numa);
        for tunable in of_the_order {
            for lock in locks() {
                assert_eq!(lock.heeds(tunable), lock.numa_aware, "{}", lock.name);
            }
        }
        assert!(locks().iter().any(|lock| lock.numa_aware));
    }

    #[test]
    fn every_tunable_is_heeded_by_a_lock_and_none_by_all() {
        for tunable in Tuning::ALL {
            let heeding = locks().iter().filter(|lock| lock.heeds(tunable)).count();
            assert!(heeding > 0, "{} is heeded by no lock", tunable.name);
            assert!(heeding < locks().len());
        }
    }

    #[test]
    fn a_tunable_is_heeded_by_the_locks_that_read_it() {
        let queues = ["native", "paravirt", "paravirt-queued", "cna", "cna-paravirt", "queued-rw"];
        let halting =
            ["paravirt", "paravirt-stealing", "paravirt-queued", "cna-paravirt", "paravirt-rw"];
        let ticket_too = [
            "paravirt",
            "paravirt-stealing",
            "paravirt-queued",
            "paravirt-ticket",
            "cna-paravirt",
            "paravirt-rw",
        ];
        let expected: [(&str, &[&str]); 14] = [
            ("owner_polls", &queues),
            ("owner_pauses", &queues),
            ("pending_polls", &["native", "paravirt-queued", "cna", "queued-rw"]),
            ("simple_polls", &["simple"]),
            ("yield_polls", &["yield"]),
            ("queue_polls", &ticket_too),
            ("head_polls", &halting),
            ("pending", &["paravirt-queued"]),
            ("defer", &["paravirt-stealing", "paravirt-queued", "paravirt-rw"]),
            ("heed_preempted", &[&["simple"], &halting[..]].concat()),
            ("steal_polls", &["paravirt-stealing", "paravirt-rw"]),
            ("cull_polls", &["paravirt", "cna-paravirt"]),
            ("numa_threshold_ns", &["cna", "cna-paravirt"]),
            ("numa_skip_bits", &["cna", "cna-paravirt"]),
        ];
        for (name, expected) in expected {
            let tunable = Tuning::named(name).unwrap();
            let locks = locks().into_iter().filter(|lock| lock.heeds(tunable));
            assert_eq!(locks.map(|lock| lock.name).collect::<Vec<_>>(), expected, "{name}");
        }
    }
}
