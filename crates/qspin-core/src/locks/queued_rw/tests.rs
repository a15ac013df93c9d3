use core::cell::Cell;
use core::sync::atomic::{AtomicU32, AtomicUsize};

use super::*;
use crate::events::NoEvents;
use crate::locks::paravirt_rw::ParavirtRwLock;
use crate::node::{LEVELS, Node, NodeId};
use crate::platform::CpuId;
use crate::tuning::Tuning;
use crate::waiting::Bucket;

/// One context; while it waits for room, readers leave.
struct Context {
    interrupt: bool,
    /// How many readers have left.
    left: Cell<u32>,
}

impl Context {
    fn new(interrupt: bool) -> Self {
        Self { interrupt, left: Cell::new(0) }
    }
}

impl Platform for Context {
    type Word = AtomicU32;
    type Address = AtomicUsize;
    type Events = NoEvents;
    fn events(&self) -> &NoEvents {
        &NoEvents
    }
    fn cpu(&self) -> Option<CpuId> {
        None
    }
    fn node(&self, _: NodeId) -> &Node<AtomicU32> {
        unreachable!("a context without a number has no node")
    }
    fn wait_until(&self, word: &AtomicU32, until: Until, _: Budget, _: Ordering) -> u32 {
        let seen = word.load(Relaxed);
        if until.met_by(seen) {
            return seen;
        }
        assert_eq!(seen, CROWDED, "it has backed out");
        self.left.set(self.left.get() + 1);
        word.fetch_sub(READER, Relaxed) - READER
    }
    fn relax(&self, _: u32) {}
    fn fence(&self, _: Ordering) {}
    fn in_interrupt(&self) -> bool {
        self.interrupt
    }
}

#[test]
fn readers_beyond_the_limit_stay_outside_and_never_let_a_writer_in() {
    let p = Context::new(false);
    let lock: QueuedRwLock<AtomicU32> = RawSharedLock::<Context>::new();
    // As many forgotten guards as may be inside.
    lock.word.store(CROWDED - READER, Relaxed);
    assert!(lock.try_acquire_shared(&p), "the last one that fits");
    for _ in 0..1000 {
        assert!(!lock.try_acquire_shared(&p));
        assert!(!lock.try_acquire_exclusive(&p));
    }
    assert_eq!(lock.word.load(Relaxed), CROWDED);
    // SAFETY: one of those inside leaves.
    unsafe { RawSharedLock::<Context>::release_shared(&lock, &p) };
    assert!(lock.try_acquire_shared(&p));
    assert_eq!(p.left.get(), 0, "it never had to wait");
}

/// QUEUEDRW-4.
#[test]
fn a_reader_waits_for_room_and_counts_itself_once_in_an_interrupt_as_in_the_queue() {
    for interrupt in [true, false] {
        let p = Context::new(interrupt);
        let lock: QueuedRwLock<AtomicU32> = RawSharedLock::<Context>::new();
        lock.word.store(CROWDED, Relaxed);
        lock.acquire_shared(&p);
        assert_eq!(p.left.get(), 1, "{interrupt}");
        assert_eq!(lock.word.load(Relaxed), CROWDED, "one has left, and one has come");
        // SAFETY: acquired just above.
        unsafe { RawSharedLock::<Context>::release_shared(&lock, &p) };
        assert_eq!(lock.word.load(Relaxed), CROWDED - READER);
    }
}

/// QUEUEDRW-2, QUEUEDRW-3: what a child of `fork` keeps of its parent's lock.
#[test]
fn owners_stay_and_waiters_are_forgotten() {
    let p = Context::new(false);
    for (before, after) in [
        (FREE, FREE),
        (3 * READER, 3 * READER),
        (WAITING | ASLEEP | OPEN, FREE),
        ((2 * READER) | WAITING | ASLEEP, 2 * READER),
        (WRITER | WAITING | ASLEEP | OPEN, WRITER),
        (WRITER | (4 * READER) | ASLEEP, WRITER),
    ] {
        let lock: QueuedRwLock<AtomicU32> = RawSharedLock::<Context>::new();
        lock.word.store(before, Relaxed);
        // The head of the queue, which owns it.
        lock.queue.acquire(&p);
        lock.forget_waiters();
        assert_eq!(lock.word.load(Relaxed), after, "{before:#x}");
        assert!(!lock.queue.is_locked(&p), "{before:#x}");
    }
}

/// One CPU and a lock whose waiters halt. What the others do while its head halts is a script.
struct Guest {
    lock: ParavirtRwLock<AtomicU32>,
    nodes: [Node<AtomicU32>; LEVELS as usize],
    table: [Bucket<AtomicU32, AtomicUsize>; 1],
    tuning: Tuning,
    clock: Cell<u64>,
    halts: Cell<u32>,
    kicks: Cell<u32>,
    others: fn(&Guest),
}

/// A head that has slept for longer is the heir.
const HEIR_US: u32 = 5;

impl Guest {
    /// A lock with this word.
    fn new(word: u32, others: fn(&Guest)) -> Self {
        let (head_polls, steal_polls, mutex_heir_us) = (1, 0, HEIR_US);
        let lock: ParavirtRwLock<AtomicU32> = RawSharedLock::<Guest>::new();
        lock.word.store(word, Relaxed);
        Self {
            lock,
            nodes: [const { Node::<AtomicU32>::UNUSED }; LEVELS as usize],
            table: [Bucket::new()],
            tuning: Tuning { head_polls, steal_polls, mutex_heir_us, ..Tuning::DEFAULT },
            clock: Cell::new(1000),
            halts: Cell::new(0),
            kicks: Cell::new(0),
            others,
        }
    }

    fn reads(&self) -> bool {
        self.lock.try_acquire_shared(self)
    }

    fn writes(&self) -> bool {
        self.lock.try_acquire_exclusive(self)
    }

    fn reader_leaves(&self) {
        // SAFETY: the script counts its readers.
        unsafe { self.lock.release_shared(self) };
    }

    fn writer_leaves(&self) {
        // SAFETY: the script has one writer inside.
        unsafe { self.lock.release_exclusive(self) };
    }

    /// What `step` does wakes the head so many times.
    fn wakes(&self, times: u32, step: impl FnOnce(&Self)) {
        let before = self.kicks.get();
        step(self);
        assert_eq!(self.kicks.get() - before, times, "halt {}", self.halts.get());
    }
}

impl Platform for Guest {
    type Word = AtomicU32;
    type Address = AtomicUsize;
    type Events = NoEvents;
    fn events(&self) -> &NoEvents {
        &NoEvents
    }
    fn tuning(&self) -> &Tuning {
        &self.tuning
    }
    fn cpu(&self) -> Option<CpuId> {
        CpuId::new(0)
    }
    fn node(&self, id: NodeId) -> &Node<AtomicU32> {
        &self.nodes[id.level() as usize]
    }
    fn wait_until(&self, word: &AtomicU32, until: Until, budget: Budget, _: Ordering) -> u32 {
        let seen = word.load(Relaxed);
        assert!(until.met_by(seen) || budget != Budget::Unbounded, "hangs: {seen:#x}");
        seen
    }
    fn fence(&self, _: Ordering) {}
    fn now_ns(&self) -> u64 {
        self.clock.get()
    }
    fn hash(&self) -> &[Bucket<AtomicU32, AtomicUsize>] {
        &self.table
    }
    fn yield_cpu(&self) {
        panic!("there is room in the table, so a head halts");
    }
    fn halt(&self, _: NodeId) {
        self.halts.set(self.halts.get() + 1);
        assert!(self.halts.get() <= 3, "it sleeps for ever");
        (self.others)(self);
        // Two halts together are longer than HEIR_US, one is not.
        self.clock.set(self.clock.get() + 3000);
    }
    fn kick(&self, _: NodeId) {
        self.kicks.set(self.kicks.get() + 1);
    }
}

/// PVRW-3.
#[test]
fn newcomers_barge_past_a_sleeping_writer_until_it_is_the_heir() {
    let p = Guest::new(READER, |p| match p.halts.get() {
        1 => {
            p.wakes(1, Guest::reader_leaves);
            assert!(p.reads(), "a reader barges");
            p.wakes(1, Guest::reader_leaves);
            assert!(p.writes(), "a writer barges");
        }
        2 => {
            p.wakes(1, Guest::writer_leaves);
            assert!(p.writes(), "it has been woken, but has not slept for long enough");
        }
        _ => {
            p.wakes(1, Guest::writer_leaves);
            assert!(!p.reads() && !p.writes(), "the heir has a reservation");
        }
    });
    p.lock.acquire_exclusive(&p);
    assert_eq!((p.lock.word.load(Relaxed), p.halts.get()), (WRITER, 3));
}

/// PVRW-3.
#[test]
fn newcomers_barge_past_a_sleeping_reader_until_it_is_the_heir() {
    let p = Guest::new(WRITER, |p| {
        p.wakes(1, Guest::writer_leaves);
        if p.halts.get() < 3 {
            assert!(p.writes(), "the reader that sleeps has not counted itself");
        } else {
            assert!(!p.writes(), "the heir has counted itself");
        }
    });
    p.lock.acquire_shared(&p);
    assert_eq!((p.lock.word.load(Relaxed), p.halts.get()), (READER, 3));
}

/// PVRW-3.
#[test]
fn a_sleeping_writer_keeps_further_readers_out_of_a_lock_with_readers() {
    let p = Guest::new(2 * READER, |p| {
        assert!(!p.reads(), "two readers");
        p.wakes(0, Guest::reader_leaves);
        assert!(!p.reads(), "one reader");
        p.wakes(1, Guest::reader_leaves);
    });
    p.lock.acquire_exclusive(&p);
    assert_eq!((p.lock.word.load(Relaxed), p.halts.get()), (WRITER, 1));
}

/// QUEUEDRW-5.
#[test]
fn a_reader_beyond_the_limit_that_backs_out_last_wakes_the_sleeping_writer() {
    let p = Guest::new(READER, |p| {
        // A reader in an interrupt has counted itself beyond the limit; then all others leave.
        p.lock.word.fetch_add(READER, Relaxed);
        p.wakes(0, Guest::reader_leaves);
        p.wakes(1, |p| p.lock.make_room(p, CROWDED));
        // It has counted itself once more.
        p.wakes(1, Guest::reader_leaves);
    });
    p.lock.acquire_exclusive(&p);
    assert_eq!((p.lock.word.load(Relaxed), p.halts.get()), (WRITER, 1));
}

#[test]
fn a_lock_is_locked_by_those_inside_and_not_by_those_that_wait() {
    let p = Guest::new(FREE, |_| {});
    for waiting in [0, WAITING, ASLEEP, ASLEEP | OPEN, WAITING | ASLEEP, PASSABLE] {
        for (inside, locked) in
            [(0, (false, false)), (READER, (true, false)), (WRITER, (true, true))]
        {
            p.lock.word.store(inside | waiting, Relaxed);
            let found = (p.lock.is_locked(&p), p.lock.is_locked_exclusive(&p));
            assert_eq!(found, locked, "{inside:#x} with {waiting:#x}");
        }
    }
}
