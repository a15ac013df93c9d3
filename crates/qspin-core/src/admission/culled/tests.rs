use core::cell::Cell;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use super::*;
use crate::events::NoEvents;
use crate::node::{Node, NodeId};
use crate::platform::CpuId;
use crate::tuning::Tuning;
use crate::waiting::{Halt, Waiting};
use crate::word::SLOW;

/// A CPU whose barging quantum is two turns, and which then yields at every third release.
struct Cpu {
    tuning: Tuning,
    node: Node<AtomicU32>,
    in_interrupt: Cell<bool>,
    yields: Cell<u32>,
    now_ns: Cell<u64>,
    number: Option<u32>,
    polls: Cell<u32>,
    /// What others do while this CPU polls the lock; returns the word that is seen.
    others: fn(&Cpu, &AtomicU32) -> u32,
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
        self.number.and_then(CpuId::new)
    }
    fn node(&self, node: NodeId) -> &Node<AtomicU32> {
        assert_eq!(NodeId::new(CpuId::new(0).unwrap(), 0), Some(node));
        &self.node
    }
    fn wait_until(&self, word: &AtomicU32, _: Until, _: Budget, _: Ordering) -> u32 {
        self.polls.set(self.polls.get() + 1);
        assert!(self.polls.get() <= 100, "it waits for ever");
        (self.others)(self, word)
    }
    fn relax(&self, _: u32) {}
    fn fence(&self, _: Ordering) {}
    fn now_ns(&self) -> u64 {
        self.now_ns.get()
    }
    fn in_interrupt(&self) -> bool {
        self.in_interrupt.get()
    }
    fn yield_cpu(&self) {
        self.yields.set(self.yields.get() + 1);
    }
}

/// A waiter in the queue.
const QUEUE: u32 = 5 << 18;

impl Cpu {
    fn new() -> Self {
        let tuning = Tuning { rotate_turns: 2, yield_turns: 3, ..Tuning::DEFAULT };
        let node = Node::new();
        let (in_interrupt, yields, now_ns) = (Cell::new(false), Cell::new(0), Cell::new(0));
        let (number, polls) = (Some(0), Cell::new(0));
        let others = |_: &Self, word: &AtomicU32| word.load(Relaxed);
        Self { tuning, node, in_interrupt, yields, now_ns, number, polls, others }
    }

    /// A CPU whose barging quantum is used up.
    fn over() -> Self {
        let cpu = Self::new();
        assert!(cpu.acquires(QUEUE) && cpu.acquires(QUEUE));
        cpu
    }

    /// Whether a newcomer that finds the lock free, beside `others`, acquires it; otherwise it queues.
    fn acquires(&self, others: u32) -> bool {
        Culled::newcomer(self, &AtomicU32::new(others), others, Halt::pending_budget)
    }

    fn releases(&self, seen: u32, kicked: bool) {
        Culled::released(self, seen, kicked);
    }
}

#[test]
fn before_its_turns_are_over_nothing_makes_a_cpu_leave() {
    let cpu = Cpu::new();
    assert!(cpu.acquires(QUEUE | SLEEPER));
    cpu.releases(QUEUE | SLOW, true);
    cpu.releases(QUEUE | SLOW, true);
    assert!(cpu.acquires(QUEUE | SLEEPER));
    assert_eq!(cpu.yields.get(), 0);
}

#[test]
fn a_cpu_whose_quantum_is_over_leaves_when_a_state_bit_says_that_it_is_replaced() {
    let cpu = Cpu::over();
    cpu.releases(QUEUE | SLOW, true);
    assert!(cpu.acquires(QUEUE), "the head that was woken does not run yet");
    cpu.releases(QUEUE | LOCKED, false);
    assert!(!cpu.acquires(QUEUE | SLEEPER), "it has had the lock, and another sleeps");
    assert!(cpu.acquires(QUEUE | SLEEPER), "its quantum has begun anew");

    let cpu = Cpu::over();
    assert!(!cpu.acquires(QUEUE | NO_STEAL), "a waiter is awake and at a loss");
}

/// Its own release clears SLEEPER, and the head clears NO_STEAL when it falls asleep again.
#[test]
fn a_cpu_that_wakes_a_second_head_is_replaced_though_no_state_bit_is_left() {
    let cpu = Cpu::over();
    cpu.releases(QUEUE | SLOW, true);
    assert!(cpu.acquires(QUEUE));
    cpu.releases(QUEUE | SLOW, true);
    assert!(!cpu.acquires(QUEUE));
    assert!(cpu.acquires(QUEUE), "its quantum has begun anew");
}

#[test]
fn turns_are_over_only_while_a_waiter_is_in_the_queue() {
    let cpu = Cpu::over();
    cpu.releases(PENDING | LOCKED, false);
    assert!(cpu.acquires(QUEUE | SLEEPER));

    let cpu = Cpu::over();
    assert!(cpu.acquires(0));
    assert!(cpu.acquires(QUEUE | SLEEPER));
}

#[test]
fn a_cpu_gives_way_once_in_so_many_releases_whatever_it_does_in_between() {
    for steals in [0, 1, 2] {
        let cpu = Cpu::over();
        for release in 0..9 {
            assert_eq!(cpu.yields.get(), u32::div_ceil(release, 3), "{steals} steals a release");
            cpu.releases(QUEUE | LOCKED, false);
            for _ in 0..steals {
                assert!(cpu.acquires(QUEUE));
            }
        }
    }
}

#[test]
fn without_turns_after_which_to_yield_a_cpu_never_gives_way() {
    let cpu = Cpu::new();
    let cpu = Cpu { tuning: Tuning { yield_turns: 0, ..cpu.tuning }, ..cpu };
    assert!(cpu.acquires(QUEUE) && cpu.acquires(QUEUE), "its quantum is used up");
    for _ in 0..9 {
        cpu.releases(QUEUE | LOCKED, false);
    }
    assert_eq!(cpu.yields.get(), 0);
}

#[test]
fn a_context_that_has_interrupted_a_wait_does_not_give_way() {
    let cpu = Cpu::over();
    cpu.node.nesting.store(1, Relaxed);
    cpu.releases(QUEUE | LOCKED, false);
    cpu.node.nesting.store(0, Relaxed);

    let other = Cpu::over();
    other.in_interrupt.set(true);
    other.releases(QUEUE | LOCKED, false);
    assert_eq!((cpu.yields.get(), other.yields.get()), (0, 0));
}

#[test]
fn turns_are_as_long_as_the_clock_says() {
    let cpu = Cpu { now_ns: Cell::new(3 << 20), ..Cpu::new() };
    let quantum = Quantum::of(&cpu);
    assert!(!quantum.count());
    let begun = quantum.number();
    assert_eq!(begun, 1);
    cpu.now_ns.set((3 << 20) + (10 << 10));
    assert!(quantum.count());
    assert_eq!(quantum.mean_ns(begun + 1), 5 << 10);
}

#[test]
fn a_quantum_ends_by_time_though_its_clock_wraps_meanwhile() {
    // The clock shows 32 bits, in a unit of 2^10 ns: the second time they wrap one unit after the first turn.
    for begin in [3 << 20, (1 << 42) - (1 << 10)] {
        let tuning = Tuning { rotate_turns: 1000, rotate_us: 100, ..Tuning::DEFAULT };
        let cpu = Cpu { tuning, now_ns: Cell::new(begin), ..Cpu::new() };
        let quantum = Quantum::of(&cpu);
        // A turn takes ten units, and the clock is read once in eight turns.
        for turn in 0..16 {
            cpu.now_ns.set(begin + ((10 * turn) << 10));
            assert!(!quantum.count(), "turn {turn} after {begin:#x} ns");
        }
        cpu.now_ns.set(begin + (160 << 10));
        assert!(quantum.count() && quantum.is_over(), "{begin:#x}");
        assert_eq!(quantum.mean_ns(16), 10 << 10);
    }
}

/// CULLED-2.
#[test]
fn a_release_leaves_the_head_asleep_until_the_quantum_is_over_and_never_without_one() {
    let cpu = Cpu::new();
    assert!(Culled::leaves_asleep(&cpu), "the first of two turns");
    assert!(!Culled::leaves_asleep(&cpu) && !Culled::leaves_asleep(&cpu));

    let cpu = Cpu { number: None, ..Cpu::new() };
    assert!(!Culled::leaves_asleep(&cpu), "turns without a number are not counted");
}

impl Cpu {
    /// A CPU that competes, and forbids stealing after so many polls.
    fn pending(forbid_polls: u32, others: fn(&Cpu, &AtomicU32) -> u32) -> Self {
        let cpu = Cpu::new();
        Self { tuning: Tuning { forbid_polls, awake_polls: 50, ..cpu.tuning }, others, ..cpu }
    }
}

#[test]
fn a_pending_waiter_that_loses_each_race_forbids_stealing() {
    for forbid_polls in [1, 2, 5] {
        let cpu = Cpu::pending(forbid_polls, |_, word| {
            let free = word.load(Relaxed) & !LOCKED;
            // A thief, while stealing is allowed.
            let thief = if free & NO_STEAL == 0 { LOCKED } else { 0 };
            word.store(free | thief, Relaxed);
            free
        });
        let word = AtomicU32::new(LOCKED | PENDING);
        assert!(compete(&cpu, &word));
        assert_eq!(cpu.polls.get(), forbid_polls + 1, "it lost as many races, and won the next");
        assert_eq!(word.load(Relaxed), LOCKED, "its bit goes with it");
    }
}

#[test]
fn a_pending_waiter_leaves_the_bit_of_a_head_that_forbids_stealing() {
    let word = AtomicU32::new(QUEUE | NO_STEAL | PENDING);
    assert!(compete(&Cpu::pending(1, Cpu::new().others), &word));
    assert_eq!(word.load(Relaxed), QUEUE | NO_STEAL | LOCKED, "it has acquired the lock");

    let word = AtomicU32::new(QUEUE | NO_STEAL | PENDING | LOCKED);
    assert!(!compete(&Cpu::pending(1, Cpu::new().others), &word));
    assert_eq!(word.load(Relaxed), QUEUE | NO_STEAL | LOCKED, "it has given up");
}

#[test]
fn a_pending_waiter_forbids_stealing_again_when_a_head_has_taken_its_bit_away() {
    let cpu = Cpu::pending(1, |cpu, word| {
        let seen = word.load(Relaxed);
        let forbidden = seen & NO_STEAL != 0;
        let free = seen & !LOCKED;
        let (expected, seen, now) = match cpu.polls.get() {
            1 => (false, seen, seen),
            // It sees the lock free; the head acquires it first, and clears the bit (`HEAD_CLEARS`).
            2 => (true, free, seen & !NO_STEAL),
            // Now a thief acquires it first.
            3 => (false, free, seen),
            _ => (true, free, free),
        };
        assert_eq!(forbidden, expected, "poll {}", cpu.polls.get());
        word.store(now, Relaxed);
        seen
    });
    let word = AtomicU32::new(QUEUE | PENDING | LOCKED);
    assert!(compete(&cpu, &word));
    assert_eq!((word.load(Relaxed), cpu.polls.get()), (QUEUE | LOCKED, 4));
}

#[test]
fn a_quantum_past_many_sleepers_is_shorter_but_at_least_half_as_long() {
    for (sleepers, length) in [(0, 320), (1, 320), (25, 320), (40, 200), (100, 160), (1000, 160)] {
        let tuning = Tuning { rotate_turns: 1 << 20, rotate_us: 320, ..Tuning::DEFAULT };
        let cpu = Cpu { tuning, ..Cpu::new() };
        let quantum = Quantum::of(&cpu);
        let ends = (0..).find(|turn| {
            cpu.now_ns.set(turn << 10);
            quantum.count_past(sleepers)
        });
        // The clock is read once in eight turns.
        assert_eq!(ends, Some(length), "{sleepers} sleepers");
    }
}
