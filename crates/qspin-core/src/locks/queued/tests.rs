use core::cell::Cell;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use super::*;
use crate::events::NoEvents;
use crate::node::{LEVELS, Node, NodeId};
use crate::platform::{Budget, CpuId, Until};
use crate::tuning::Tuning;
use crate::word::{NO_STEAL, PENDING};

/// One CPU. What the others do while it polls the lock is a script, which returns the word that is seen.
struct Cpu {
    nodes: [Node<AtomicU32>; LEVELS as usize],
    tuning: Tuning,
    polls: Cell<u32>,
    others: fn(&Cpu, &AtomicU32) -> u32,
}

impl Cpu {
    /// A head forbids stealing after so many polls.
    fn new(forbid_polls: u32, others: fn(&Cpu, &AtomicU32) -> u32) -> Self {
        let nodes = [const { Node::<AtomicU32>::UNUSED }; LEVELS as usize];
        let tuning = Tuning { cull_polls: 0, forbid_polls, ..Tuning::DEFAULT };
        Self { nodes, tuning, polls: Cell::new(0), others }
    }
}

impl Platform for Cpu {
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
    fn wait_until(&self, word: &AtomicU32, _: Until, _: Budget, _: Ordering) -> u32 {
        self.polls.set(self.polls.get() + 1);
        assert!(self.polls.get() <= 100, "it waits for ever");
        (self.others)(self, word)
    }
    fn fence(&self, _: Ordering) {}
    fn halt(&self, _: NodeId) {
        panic!("the head sees a free lock at each poll, so it never halts");
    }
}

/// The lock is free at a moment, and whether another context acquires it in the next one.
fn free_for_a_moment(word: &AtomicU32, taken: bool) -> u32 {
    let free = word.load(Relaxed) & !LOCKED;
    word.store(if taken { free | LOCKED } else { free }, Relaxed);
    free
}

/// What a newcomer of a culled lock finds that queues: an owner, and a pending waiter.
fn busy() -> ParavirtLock<AtomicU32> {
    ParavirtLock { word: AtomicU32::new(LOCKED | PENDING), axes: PhantomData }
}

/// The tail of a queue of one.
fn queue_of_one() -> u32 {
    crate::word::tail_of(NodeId::new(CpuId::new(7).unwrap(), 0).unwrap())
}

#[test]
fn a_free_lock_with_waiters_is_not_locked() {
    let p = Cpu::new(0, |_, _| unreachable!("no context waits"));
    let queue = queue_of_one();
    for others in [0, queue, PENDING, queue | PENDING, queue | NO_STEAL] {
        let lock = NativeLock { word: AtomicU32::new(others), axes: PhantomData };
        assert!(!lock.is_locked(&p), "{others:#x}");
        lock.word.fetch_or(LOCKED, Relaxed);
        assert!(lock.is_locked(&p), "{others:#x}");
    }
}

/// A lost race counts as a poll, over all calls of `await_owner`.
#[test]
fn a_head_that_loses_each_race_forbids_stealing() {
    for forbid_polls in [1, 2, 5] {
        let p = Cpu::new(forbid_polls, |_, word| {
            free_for_a_moment(word, word.load(Relaxed) & NO_STEAL == 0)
        });
        let lock = busy();
        lock.acquire(&p);
        assert_eq!(p.polls.get(), forbid_polls + 1, "it lost as many races, and won the next");
        assert_eq!(lock.word.load(Relaxed), LOCKED | PENDING, "the bit goes with the head");
    }
}

/// A pending waiter that raised the bit at the same moment takes it away when it acquires the lock.
#[test]
fn a_head_forbids_stealing_again_when_its_bit_is_gone() {
    let p = Cpu::new(0, |p, word| {
        let before = word.fetch_and(!NO_STEAL, Relaxed);
        assert_ne!(before & NO_STEAL, 0, "poll {}", p.polls.get());
        free_for_a_moment(word, p.polls.get() < 3)
    });
    busy().acquire(&p);
    assert_eq!(p.polls.get(), 3);
}
