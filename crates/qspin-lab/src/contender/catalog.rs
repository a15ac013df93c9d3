//! The list of everything that can be measured, with what people ask about a lock.

use qspin::tuning::{Part, Tunable};

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
    /// Who gets it next.
    pub fairness: &'static str,
    /// How a waiter waits.
    pub waits: &'static str,
    /// Whether it knows about NUMA nodes.
    pub numa_aware: bool,
    /// What it is good for.
    pub purpose: &'static str,
    /// How it is measured.
    pub engine: Engine,
}

impl Lock {
    /// Whether it excludes nobody, so that only one thread may use it.
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
        let (name, part) = (tunable.name, tunable.part);
        // Other admissions than that of the strict queue have no use for the pending waiter.
        let halt = part == Part::Halt && !name.starts_with("pending");
        match self.name {
            // Its turns are those of the culled queue.
            "mutex" => part == Part::Mutex || name.starts_with("rotate_"),
            // So is its gate.
            "default-rw" => {
                matches!(part, Part::Mutex | Part::Rwlock) || name.starts_with("rotate_")
            }
            // The queue of the reader-writer lock is a native lock.
            "native" | "queued-rw" => matches!(part, Part::Owner | Part::Pending),
            "cna" => matches!(part, Part::Owner | Part::Pending | Part::Numa),
            "paravirt-queued" => matches!(part, Part::Owner | Part::Pending | Part::Halt),
            "paravirt-stealing" => halt || part == Part::Stealing,
            // Culling leaves every kick to the release.
            "paravirt" | "cna-paravirt" => {
                let order = part == Part::Numa && self.numa_aware;
                matches!(part, Part::Owner | Part::Culled) || halt && name != "defer" || order
            }
            "paravirt-ticket" => name == "queue_looks",
            "simple" => part == Part::Simple || name == "heed_preempted",
            "yield" => part == Part::Yield,
            _ => false,
        }
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

const FIFO: &str = "first come, first served";
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
        }
    };
}

macro_rules! ours {
    ($name:literal, $module:ident, $fairness:expr, $waits:literal, $purpose:literal) => {
        lock!(
            Ours,
            $name,
            size_of::<qspin::$module::RawLock>(),
            Engine::Mutex(
                MutexEngine::of::<Raw<qspin::$module::RawLock>>()
                    .counting::<Raw<qspin::$module::CountedRawLock>>()
            ),
            $fairness,
            $waits,
            $purpose
        )
    };
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
    let mut locks = ours();
    locks.extend(peers());
    #[cfg(feature = "peers-c")]
    locks.extend(super::c_peers::locks());
    locks.extend(baselines());
    locks
}

fn ours() -> Vec<Lock> {
    vec![
        ours!(
            "mutex",
            mutex,
            "nobody is forgotten; newcomers may pass",
            "one looks and yields, the rest sleep",
            "nobody knows the load: the default"
        ),
        ours!(
            "native",
            native,
            FIFO,
            "spins on its own cache line",
            "every thread has a CPU; strict order, many threads"
        ),
        ours!(
            "backoff",
            backoff,
            UNFAIR,
            "pauses, ever longer",
            "short sections; a virtual machine without a paravirtual lock"
        ),
        ours!("tas", tas, UNFAIR, "spins on the lock", "to compare: backoff with a cap of 1"),
        ours!(
            "yield",
            yielding,
            UNFAIR,
            "spins, then yields its CPU",
            "more threads than CPUs, without sleeping"
        ),
        ours!(
            "ticket",
            ticket,
            FIFO,
            "spins on the lock",
            "few threads that each have a CPU; strict order"
        ),
        ours!(
            "mcs",
            mcs,
            FIFO,
            "spins on its own cache line",
            "to compare: the queue without the four-byte word"
        ),
        ours!(
            "simple",
            simple,
            UNFAIR,
            "spins, yields to the holder",
            "where the holder should be known"
        ),
        ours!(
            "paravirt",
            paravirt,
            "by turns; newcomers may pass",
            "one or two spin, the rest sleep",
            "more threads than CPUs, or nobody knows how many"
        ),
        ours!(
            "paravirt-stealing",
            paravirt_stealing,
            "queue, newcomers may pass",
            "spins briefly, then sleeps in a queue",
            "to compare: what Linux has today"
        ),
        ours!(
            "paravirt-queued",
            paravirt_queued,
            FIFO,
            "spins briefly, then sleeps in a queue",
            "more threads than CPUs, in strict order"
        ),
        ours!(
            "paravirt-ticket",
            paravirt_ticket,
            FIFO,
            "spins briefly on the lock, then sleeps",
            "to compare: the ticket lock, halting"
        ),
        near_first(ours!(
            "cna",
            cna,
            "near waiters first, within bounds",
            "spins on its own cache line",
            "every thread has a CPU, on several NUMA nodes"
        )),
        near_first(ours!(
            "cna-paravirt",
            cna_paravirt,
            "near first; newcomers may pass",
            "one or two spin, the rest sleep",
            "several NUMA nodes, and more threads than CPUs"
        )),
        lock!(
            Ours,
            "default-rw",
            size_of::<qspin::rwlock::RawRwLock>(),
            Engine::Rw(
                RwEngine::of::<RawRw<qspin::rwlock::RawRwLock>>()
                    .counting::<RawRw<qspin::rwlock::CountedRawRwLock>>()
            ),
            "nobody is forgotten; newcomers may pass",
            "one looks and yields, the rest sleep",
            "nobody knows the load: the default"
        ),
        lock!(
            Ours,
            "queued-rw",
            size_of::<qspin::queued_rw::RawRwLock>(),
            Engine::Rw(
                RwEngine::of::<RawRw<qspin::queued_rw::RawRwLock>>()
                    .counting::<RawRw<qspin::queued_rw::CountedRawRwLock>>()
            ),
            "readers and writers in one queue",
            "spins",
            "many readers, and writers that must not starve"
        ),
    ]
}

/// A lock that knows about NUMA nodes.
fn near_first(lock: Lock) -> Lock {
    Lock { numa_aware: true, ..lock }
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
            "none; by turns now and then",
            "spins briefly, then sleeps",
            "the crate parking_lot"
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
            "prefers writers; by turns now and then",
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
    ]
}

fn baselines() -> Vec<Lock> {
    vec![
        lock!(
            Baseline,
            "empty",
            0,
            Engine::Mutex(MutexEngine::of::<baseline::Empty>()),
            "excludes nobody",
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
    use qspin::tuning::Tuning;

    use super::*;

    #[test]
    fn names_are_unique_and_reader_writer_locks_say_so() {
        let locks = locks();
        let mut names: Vec<_> = locks.iter().map(|lock| lock.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), locks.len());
        for lock in &locks {
            assert_eq!(lock.is_rw(), lock.name.ends_with("-rw"), "{}", lock.name);
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
        let halting = ["paravirt", "paravirt-stealing", "paravirt-queued", "cna-paravirt"];
        let ticket_too =
            ["paravirt", "paravirt-stealing", "paravirt-queued", "paravirt-ticket", "cna-paravirt"];
        let expected: [(&str, &[&str]); 14] = [
            ("owner_looks", &queues),
            ("owner_pauses", &queues),
            ("pending_looks", &["native", "paravirt-queued", "cna", "queued-rw"]),
            ("simple_looks", &["simple"]),
            ("yield_looks", &["yield"]),
            ("queue_looks", &ticket_too),
            ("head_looks", &halting),
            ("pending", &["paravirt-queued"]),
            ("defer", &["paravirt-stealing", "paravirt-queued"]),
            ("heed_preempted", &[&["simple"], &halting[..]].concat()),
            ("steal_looks", &["paravirt-stealing"]),
            ("cull_looks", &["paravirt", "cna-paravirt"]),
            ("numa_threshold_ns", &["cna", "cna-paravirt"]),
            ("numa_skip_bits", &["cna", "cna-paravirt"]),
        ];
        for (name, expected) in expected {
            let tunable = Tuning::ALL.iter().find(|tunable| tunable.name == name).unwrap();
            let locks = locks().into_iter().filter(|lock| lock.heeds(tunable));
            assert_eq!(locks.map(|lock| lock.name).collect::<Vec<_>>(), expected, "{name}");
        }
    }
}
