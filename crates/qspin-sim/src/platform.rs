//! The platform: what a lock of `qspin-core` finds on a simulated CPU.
//!
//! # Model
//! A [`SimWord`] is as big as an atomic of 32 bits and holds its initial value; each of its operations is one
//! of the machine's. The platform itself is the simulated CPU. The simulator contains no lock: the code that
//! runs here is the code that runs everywhere.
//!
//! It keeps the contract of the platform: words are coherent, seen in total store order (PLATFORM-1); a strand
//! is a CPU's one context, without interrupts (PLATFORM-2); watching a word puts the strand to sleep until the
//! word changes (PLATFORM-3); a kick is remembered per node until a halt consumes it, and both empty the store
//! buffer, as a hypercall does (PLATFORM-4).
//!
//! # Limits
//! Simulated CPUs have one nesting level. Orderings weaker than total store order do not exist.

mod sleep;

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::Ordering;

use qspin_core::events::{Event, Events};
use qspin_core::node::{Node, NodeId};
use qspin_core::platform::{AtomicAddress, AtomicWord, Budget, CpuId, Platform, Until};
use qspin_core::tuning::Tuning;
use qspin_core::waiting::Bucket;

use crate::engine::{Random, Time, World, current, from_ns, to_ns};
use crate::machine::Distance;

pub(crate) use sleep::Sleeping;

/// A word of simulated memory.
#[derive(Debug)]
#[repr(transparent)]
pub struct SimWord(u32);

impl SimWord {
    fn address(&self) -> usize {
        core::ptr::from_ref(self) as usize
    }

    #[inline]
    fn on<R>(&self, operation: impl FnOnce(&World, usize) -> R) -> R {
        let world = current();
        let place = world.memory.place(self.address());
        operation(&world, place)
    }

    #[inline]
    fn modify(&self, change: impl FnOnce(u32) -> Option<u32>) -> u32 {
        self.on(|world, place| world.modify(place, self.0, change))
    }
}

impl AtomicWord for SimWord {
    fn new(value: u32) -> Self {
        Self(value)
    }
    fn load(&self, _: Ordering) -> u32 {
        self.on(|world, place| world.load(place, self.0))
    }
    fn store(&self, value: u32, _: Ordering) {
        self.on(|world, place| world.store(place, self.0, value));
    }
    fn swap(&self, value: u32, _: Ordering) -> u32 {
        self.modify(|_| Some(value))
    }
    fn compare_exchange(&self, current: u32, new: u32, _: Ordering) -> Result<u32, u32> {
        let seen = self.modify(|seen| (seen == current).then_some(new));
        if seen == current { Ok(seen) } else { Err(seen) }
    }
    fn fetch_add(&self, value: u32, _: Ordering) -> u32 {
        self.modify(|seen| Some(seen.wrapping_add(value)))
    }
    fn fetch_or(&self, value: u32, _: Ordering) -> u32 {
        self.modify(|seen| Some(seen | value))
    }
    fn fetch_and(&self, value: u32, _: Ordering) -> u32 {
        self.modify(|seen| Some(seen & value))
    }
    fn observe(&self) -> u32 {
        self.on(|world, place| world.state.borrow_mut().value(place, self.0))
    }
}

/// The address of a lock in simulated memory: the place of its word, as big as a real address.
#[derive(Debug)]
#[repr(C, align(8))]
pub struct SimAddress {
    place: SimWord,
    rest: u32,
}

impl AtomicAddress for SimAddress {
    fn new(address: usize) -> Self {
        Self { place: SimWord(address as u32), rest: 0 }
    }
    fn load(&self, order: Ordering) -> usize {
        self.place.load(order) as usize
    }
    fn store(&self, address: usize, order: Ordering) {
        self.place.store(address as u32, order);
    }
    fn compare_exchange(&self, now: usize, new: usize, order: Ordering) -> Result<usize, usize> {
        let result = self.place.compare_exchange(now as u32, new as u32, order);
        result.map(|seen| seen as usize).map_err(|seen| seen as usize)
    }
}

/// Counts events of all simulated CPUs together, at no simulated cost: a run has the same digest with and
/// without counting.
#[derive(Debug)]
pub struct SimEvents([Cell<u64>; Event::ALL.len()]);

impl Default for SimEvents {
    fn default() -> Self {
        Self([const { Cell::new(0) }; Event::ALL.len()])
    }
}

impl SimEvents {
    /// How often `event` has happened.
    #[must_use]
    pub fn count_of(&self, event: Event) -> u64 {
        self.0[event as usize].get()
    }
}

impl Events for SimEvents {
    // Off spares a lock the clock readings and stores that statistics need, which would cost simulated time.
    // The simulator measures latencies itself.
    const ENABLED: bool = false;
    const COUNTS: bool = true;
    fn add(&self, event: Event, amount: u64) {
        let count = &self.0[event as usize];
        count.set(count.get() + amount);
    }
}

/// One simulated CPU.
#[derive(Debug, Clone)]
pub struct SimPlatform {
    world: Rc<World>,
    cpu: CpuId,
}

/// The node of a number. A lock asks only for nodes that exist; and a CPU that is never interrupted waits for
/// one lock at a time, in the first of its nodes.
fn place_of(node: NodeId) -> usize {
    assert!(node.level() == 0, "a simulated CPU waits for two locks at once");
    node.cpu().number() as usize
}

impl SimPlatform {
    pub(crate) fn new(cpu: CpuId) -> Self {
        Self { world: current(), cpu }
    }

    /// The number of this CPU.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.cpu.number()
    }

    /// Works for that many nanoseconds.
    pub fn work(&self, ns: f64) {
        self.world.work(from_ns(ns));
    }

    /// The CPU's time, in nanoseconds. Costs nothing: it is for the workload's book-keeping.
    #[must_use]
    pub fn time_ns(&self) -> f64 {
        to_ns(self.world.clock())
    }

    /// Loads words of different lines whose addresses do not depend on each other: they are in flight at the
    /// same time.
    pub fn load_together<'a>(&self, words: impl IntoIterator<Item = &'a SimWord>) {
        let memory = &self.world.memory;
        self.world
            .load_together(words.into_iter().map(|word| (memory.place(word.address()), word.0)));
    }

    /// Counts one more operation of this CPU, for a workload that counts them itself.
    pub(crate) fn did_one(&self) {
        let mut state = self.world.state.borrow_mut();
        let me = state.current;
        state.strands[me].figures.done += 1;
    }

    /// Whether the workload is to end.
    #[must_use]
    pub fn is_over(&self) -> bool {
        let state = self.world.state.borrow();
        state.strands[state.current].clock >= state.stop_at
    }

    /// Numbers from this CPU's own generator.
    pub fn random<R>(&self, draw: impl FnOnce(&mut Random) -> R) -> R {
        let mut state = self.world.state.borrow_mut();
        let me = state.current;
        draw(&mut state.strands[me].random)
    }

    /// Sleeps for that many nanoseconds: another task may have the processor.
    pub fn sleep(&self, ns: f64) {
        self.world.sleep(from_ns(ns));
    }

    /// This CPU wants lock number `lock`.
    pub(crate) fn wants(&self, lock: u32) {
        self.world.state.borrow_mut().wants(lock);
    }

    /// It has acquired the lock.
    pub(crate) fn entered(&self, lock: u32) {
        self.world.state.borrow_mut().entered(lock);
    }

    /// It has acquired the lock for reading.
    pub(crate) fn entered_shared(&self, lock: u32) {
        self.world.state.borrow_mut().entered_shared(lock);
    }

    /// It is about to end that.
    pub(crate) fn leaves_shared(&self, lock: u32) {
        self.world.state.borrow_mut().leaves_shared(lock);
    }

    /// It is about to release the lock.
    pub(crate) fn leaves(&self, lock: u32) {
        self.world.state.borrow_mut().leaves(lock);
    }
}

impl World {
    fn clock(&self) -> Time {
        let state = self.state.borrow();
        state.strands[state.current].clock
    }

    fn processor(&self) -> u32 {
        let state = self.state.borrow();
        state.strands[state.current].processor.into()
    }

    fn core(&self) -> u32 {
        let state = self.state.borrow();
        state.strands[state.current].core.into()
    }
}

impl Platform for SimPlatform {
    type Word = SimWord;
    type Address = SimAddress;
    type Events = SimEvents;

    fn events(&self) -> &SimEvents {
        &self.world.events
    }

    fn tuning(&self) -> &Tuning {
        &self.world.tuning
    }

    fn cpu(&self) -> Option<CpuId> {
        Some(self.cpu)
    }

    fn node(&self, id: NodeId) -> &Node<SimWord> {
        &self.world.nodes[place_of(id)]
    }

    fn wait_until(&self, word: &SimWord, until: Until, budget: Budget, _: Ordering) -> u32 {
        let place = self.world.memory.place(word.address());
        self.world.watch(place, word.0, until, budget)
    }

    fn relax(&self, pauses: u32) {
        self.world.relax(pauses);
    }

    fn pause_ns(&self) -> u32 {
        self.world.pause_ns()
    }

    fn fence(&self, order: Ordering) {
        self.world.fence_as(order);
    }

    fn yield_cpu(&self) {
        self.world.yield_cpu();
    }

    fn yield_to(&self, holder: CpuId) {
        self.world.yield_to(holder.number() as usize);
    }

    fn halt(&self, me: NodeId) {
        self.world.halt_until(me.level(), None);
    }

    fn kick(&self, node: NodeId) {
        self.world.kick(node.cpu().number() as usize, node.level());
    }

    fn address(&self, word: &SimWord) -> usize {
        // 0 means none.
        self.world.memory.place(word.address()) + 1
    }

    fn holder_enter(&self) {
        self.world.holder_enter();
    }

    fn holder_exit(&self) {
        self.world.holder_exit();
    }

    fn runs_on(&self) -> Option<u32> {
        Some(self.world.processor())
    }

    fn is_preempted(&self, cpu: CpuId) -> bool {
        self.world.is_preempted(cpu.number() as usize)
    }

    fn place(&self) -> u32 {
        self.world.core()
    }

    fn distance(&self, from: u32, to: u32) -> u32 {
        let shape = &self.world.shape;
        let by_node = self.tuning().numa_by_node;
        // A socket that is a single cache is not a level of its own.
        let within = u32::from(shape.llc() != shape.cores_per_socket);
        match shape.distance(from, to) {
            Distance::SameCore | Distance::SameCache => 0,
            Distance::SameSocket if by_node => 0,
            Distance::SameSocket => within,
            Distance::Hops(_) if by_node => 1,
            Distance::Hops(hops) => within + hops,
        }
    }

    fn now_ns(&self) -> u64 {
        self.world.look_at_the_clock()
    }

    fn hash(&self) -> &[Bucket<SimWord, SimAddress>] {
        &self.world.hash
    }
}
