//! The order on its own: a queue whose waiters run one after the other, on a clock that ticks once a hand-over.
//! So every figure here is exact.

use core::cell::Cell;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::collections::BTreeMap;
use std::vec::Vec;

use super::*;
use crate::events::Events;
use crate::platform::{Budget, CpuId, Until};
use crate::tuning::Tuning;

struct Counts([AtomicU64; Event::ALL.len()]);

impl Default for Counts {
    fn default() -> Self {
        Self([const { AtomicU64::new(0) }; Event::ALL.len()])
    }
}

impl Events for Counts {
    const ENABLED: bool = true;
    fn add(&self, event: Event, amount: u64) {
        self.0[event as usize].fetch_add(amount, Ordering::Relaxed);
    }
}

struct Machine {
    nodes: Vec<Node<AtomicU32>>,
    /// The place of each CPU.
    places: Vec<u32>,
    urgent: Vec<u32>,
    distance: fn(u32, u32) -> u32,
    running: Cell<u32>,
    clock: Cell<u64>,
    tuning: Tuning,
    counts: Counts,
}

impl Machine {
    fn new(places: &[u32], threshold: u32) -> Self {
        let mut tuning = Tuning::DEFAULT;
        tuning.numa_threshold_ns = threshold;
        tuning.numa_skip_bits = 0;
        Self {
            nodes: (0..places.len()).map(|_| Node::new()).collect(),
            places: places.to_vec(),
            urgent: Vec::new(),
            distance: |from, to| u32::from(from != to),
            running: Cell::new(0),
            clock: Cell::new(1),
            tuning,
            counts: Counts::default(),
        }
    }

    fn id(cpu: u32) -> NodeId {
        NodeId::new(CpuId::new(cpu).unwrap(), 0).unwrap()
    }

    fn count(&self, event: Event) -> u64 {
        self.counts.0[event as usize].load(Ordering::Relaxed)
    }
}

impl Platform for Machine {
    type Word = AtomicU32;
    type Address = AtomicUsize;
    type Events = Counts;
    fn events(&self) -> &Counts {
        &self.counts
    }
    fn tuning(&self) -> &Tuning {
        &self.tuning
    }
    fn cpu(&self) -> Option<CpuId> {
        CpuId::new(self.running.get())
    }
    fn node(&self, id: NodeId) -> &Node<AtomicU32> {
        &self.nodes[id.cpu().number() as usize]
    }
    fn wait_until(&self, _: &AtomicU32, _: Until, _: Budget, _: Ordering) -> u32 {
        unreachable!("the order itself never waits")
    }
    fn relax(&self, _: u32) {}
    fn fence(&self, _: Ordering) {}
    fn place(&self) -> u32 {
        self.places[self.running.get() as usize]
    }
    fn distance(&self, from: u32, to: u32) -> u32 {
        (self.distance)(from, to)
    }
    fn is_urgent(&self) -> bool {
        self.urgent.contains(&self.running.get())
    }
    fn now_ns(&self) -> u64 {
        // Odd numbers only: the order's clock has no even ones.
        2 * self.clock.get() + 1
    }
}

/// The queue of a lock that is handed over again and again.
struct Queue<'a> {
    p: &'a Machine,
    head: Option<NodeId>,
    tail: Option<NodeId>,
}

impl<'a> Queue<'a> {
    fn new(p: &'a Machine, cpus: &[u32]) -> Self {
        let mut queue = Self { p, head: None, tail: None };
        for cpu in cpus {
            queue.comes(*cpu);
        }
        queue
    }

    fn comes(&mut self, cpu: u32) {
        let me = Machine::id(cpu);
        self.p.running.set(cpu);
        self.p.node(me).begin();
        Numa::begin(self.p, me);
        match self.tail.replace(me) {
            Some(prev) => self.p.node(prev).next.store(me.number(), Ordering::Relaxed),
            None => self.head = Some(me),
        }
    }

    /// The head acquires the lock, and hands the headship over. Returns its CPU.
    fn serve(&mut self) -> Option<u32> {
        let me = self.head?;
        self.p.clock.set(self.p.clock.get() + 1);
        if Numa::arranges_as_head(self.p, me) {
            while Numa::arrange(self.p, me) == Arranged::Moved {}
        }
        if self.tail == Some(me) {
            self.tail = word::tail(Numa::tail_after(self.p, me));
            self.head = Numa::rest(self.p, me);
        } else {
            let next = node_in(&self.p.node(me).next).expect("everybody has linked");
            self.head = Some(Numa::successor(self.p, me, next));
        }
        assert_eq!(self.head.is_none(), self.tail.is_none());
        Some(me.cpu().number())
    }

    fn drain(mut self) -> Vec<u32> {
        core::iter::from_fn(|| self.serve()).collect()
    }
}

#[test]
fn one_place_is_first_come_first_served() {
    let p = Machine::new(&[7; 6], 1000);
    assert_eq!(Queue::new(&p, &[0, 1, 2, 3, 4, 5]).drain(), [0, 1, 2, 3, 4, 5]);
    assert_eq!(p.count(Event::CnaSplice), 0);
    assert_eq!(p.count(Event::CnaLocalHandoff), 5);
}

#[test]
fn those_near_come_first_and_the_others_keep_their_order() {
    let p = Machine::new(&[0, 1, 0, 1, 0, 1, 0], 1000);
    assert_eq!(Queue::new(&p, &[0, 1, 2, 3, 4, 5, 6]).drain(), [0, 2, 4, 6, 1, 3, 5]);
    assert_eq!(p.count(Event::CnaSplice), 3);
    assert_eq!(p.count(Event::CnaRemoteHandoff), 1);
}

#[test]
fn the_tail_is_never_moved_and_no_waiter_is_lost() {
    let p = Machine::new(&[0, 1, 1, 1], 1000);
    // The last one is far, but no waiter is linked behind it.
    assert_eq!(Queue::new(&p, &[0, 1, 2, 3]).drain(), [0, 3, 1, 2]);
    let p = Machine::new(&[0, 1], 1000);
    assert_eq!(Queue::new(&p, &[0, 1]).drain(), [0, 1]);
}

#[test]
fn the_longest_waiting_come_first_when_the_threshold_has_passed() {
    // Two hand-overs after it was moved (the clock counts 2 a tick), 1 is put first.
    let p = Machine::new(&[0, 1, 0, 0, 0, 0], 4);
    // Now 1's place is the preferred one; 5 is the tail and stays, so it comes before 4.
    assert_eq!(Queue::new(&p, &[0, 1, 2, 3, 4, 5]).drain(), [0, 2, 3, 1, 5, 4]);
    assert_eq!(p.count(Event::CnaFlush), 1);
}

#[test]
fn a_flush_is_due_in_time_where_the_clock_wraps_meanwhile() {
    // As above; but 1 is moved two ticks before 32 bits of the clock wrap. (One tick before they show the value
    // that flushes early.)
    let p = Machine::new(&[0, 1, 0, 0, 0, 0], 4);
    p.clock.set((1 << 31) - 3);
    assert_eq!(Queue::new(&p, &[0, 1, 2, 3, 4, 5]).drain(), [0, 2, 3, 1, 5, 4]);
    assert_eq!(now(&p), 7, "it has wrapped");
}

#[test]
fn the_urgent_are_never_moved() {
    let mut p = Machine::new(&[0, 1, 0, 1, 0], 1000);
    p.urgent = [1].to_vec();
    // It is served in its order; and as no waiter has been passed over yet, its place is preferred then.
    assert_eq!(Queue::new(&p, &[0, 1, 2, 3, 4]).drain(), [0, 1, 3, 4, 2]);
    assert_eq!(p.count(Event::CnaPrioritised), 1);
}

#[test]
fn where_no_waiter_is_near_the_nearest_come_first() {
    // Places 0 and 1 share a socket, 10 and 11 another.
    let mut p = Machine::new(&[0, 10, 1, 11, 1, 0], 1000);
    p.distance = |from, to| u32::from(from != to) + u32::from(from / 10 != to / 10);
    // 5 is near; then of 1, 2, 3, 4 the ones in the same socket, then the others.
    assert_eq!(Queue::new(&p, &[0, 1, 2, 3, 4, 5]).drain(), [0, 5, 2, 4, 1, 3]);
}

#[test]
fn shuffle_reduction_lets_all_but_one_head_in_eight_pass() {
    let mut p = Machine::new(&[0, 1, 0], 1000);
    p.tuning.numa_skip_bits = 3;
    for _ in 0..800 {
        assert_eq!(Queue::new(&p, &[0, 1, 2]).drain().len(), 3);
    }
    let (skipped, moved) = (p.count(Event::CnaShuffleSkip), p.count(Event::CnaSplice));
    // Of 800 first heads one in eight arranges, and then moves one.
    assert!((50..200).contains(&moved), "{moved} moved");
    assert!(skipped > 1000, "{skipped} of 2400 skipped");
    // With none to skip each first head moves one.
    let p = Machine::new(&[0, 1, 0], 1000);
    for _ in 0..800 {
        assert_eq!(Queue::new(&p, &[0, 1, 2]).drain(), [0, 2, 1]);
    }
    assert_eq!((p.count(Event::CnaShuffleSkip), p.count(Event::CnaSplice)), (0, 800));
}

/// Eight waiters that come again as soon as they are served, on two places: how local are hand-overs?
#[test]
fn nine_of_ten_hand_overs_are_local() {
    let p = Machine::new(&[0, 1, 0, 1, 0, 1, 0, 1], 2 * 100);
    let mut queue = Queue::new(&p, &[0, 1, 2, 3, 4, 5, 6, 7]);
    let mut served = BTreeMap::new();
    for _ in 0..100_000 {
        let cpu = queue.serve().unwrap();
        *served.entry(cpu).or_insert(0u32) += 1;
        queue.comes(cpu);
    }
    let (local, remote) = (p.count(Event::CnaLocalHandoff), p.count(Event::CnaRemoteHandoff));
    assert!(local >= 9 * remote, "{local} local, {remote} remote");
    assert!(p.count(Event::CnaFlush) > 100);
    assert!(served.values().all(|count| *count > 10_000), "{served:?}");
}

/// NUMA-3 and NUMA-4, by counting: how often waiters that came later pass a waiter. Here a head has its turn with
/// every tick, so that a threshold of T ticks is met by T - 1 heads and the one that finds the flush due.
#[test]
fn no_waiter_is_passed_more_often_than_the_bound_says() {
    let machines = [(2, 8, 50), (3, 9, 40), (4, 16, 100), (4, 32, 10), (8, 16, 7)];
    // The second time most heads do not arrange; yet each checks whether a flush is due.
    let runs = [0, 3].into_iter().flat_map(|bits| machines.map(|machine| (bits, machine)));
    for (skip_bits, (places, cpus, threshold)) in runs {
        let of: Vec<u32> = (0..cpus).map(|cpu| cpu % places).collect();
        let mut p = Machine::new(&of, 2 * threshold);
        p.tuning.numa_skip_bits = skip_bits;
        // The last one of each place but the first is urgent.
        p.urgent = (cpus - places + 1..cpus).collect();
        let mut queue = Queue::new(&p, &(0..cpus).collect::<Vec<_>>());
        // The waiters, in the order in which they came, and how often each was passed.
        let mut waiting: Vec<(u32, u32)> = (0..cpus).map(|cpu| (cpu, 0)).collect();
        let mut away: Vec<(u32, u32)> = Vec::new();
        let (mut most, mut dice) = (0, 88_172_645u32);
        for turn in 1..60_000u32 {
            if let Some(cpu) = queue.serve() {
                let place = waiting.iter().position(|waiter| waiter.0 == cpu).unwrap();
                let (_, passed) = waiting.remove(place);
                assert!(passed == 0 || !p.urgent.contains(&cpu), "Q4: {cpu} passed {passed} times");
                for waiter in &mut waiting[..place] {
                    waiter.1 += 1;
                    most = most.max(waiter.1);
                }
                dice ^= dice << 13;
                dice ^= dice >> 17;
                dice ^= dice << 5;
                // Back at once, or after a while.
                away.push((turn + if dice % 3 == 0 { dice % 7 } else { 0 }, cpu));
            }
            away.sort_unstable();
            while let Some((when, cpu)) = away.first().copied()
                && when <= turn
            {
                away.remove(0);
                waiting.push((cpu, 0));
                queue.comes(cpu);
            }
        }
        let bound = (places - 1) * threshold;
        assert!(most <= bound, "{places} places, {cpus} CPUs, {skip_bits}: {most} > {bound}");
        if skip_bits != 0 {
            continue;
        }
        // With two places there is one period in which a waiter is passed: all of it.
        assert!(places > 2 || most == bound, "{most} of {bound}");
        assert!(most >= threshold - 1, "the order does something: {most}");
    }
}
