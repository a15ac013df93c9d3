//! A platform for tests in one thread: what the other threads do meanwhile is a script.
//!
//! A wait runs the next step of the script, which calls locks as another CPU, and then polls again. A wait for which no
//! step is left fails the test, so none hangs. Time passes only where a step lets it pass, and waiters neither poll
//! nor yield for long before they sleep.

use core::cell::{Cell, RefCell};
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::boxed::Box;
use std::collections::VecDeque;
use std::vec::Vec;

use crate::events::NoEvents;
use crate::node::{LEVELS, Node, NodeId};
use crate::platform::{Budget, CpuId, Platform, Until};
use crate::site::Site;
use crate::sleepers::{self, End, SleepBucket, SleepPlatform, Sleeper, Throughput};
use crate::tuning::Tuning;

const CPUS: u32 = 8;
/// How often [`SleepPlatform::wait_briefly`] says to go on.
const ROUNDS: u32 = 3;
/// When a waiter beside which none sleeps starves, in nanoseconds.
pub(crate) const STARVES_NS: u64 = 5000;

type Step<'s> = Box<dyn FnOnce(&Scripted<'s>) + 's>;
/// Each step with the CPU that executes it.
type Script<'s> = RefCell<VecDeque<(u32, Step<'s>)>>;

/// The platform. What its steps refer to is made before it.
pub(crate) struct Scripted<'s> {
    nodes: Vec<Node<AtomicU32>>,
    sleepers: Vec<Sleeper<AtomicU32, AtomicUsize>>,
    hints: Vec<AtomicU32>,
    buckets: Vec<SleepBucket<AtomicU32>>,
    throughput: Option<Throughput<AtomicU32>>,
    knows_places: bool,
    tuning: Tuning,
    running: Cell<u32>,
    clock: Cell<u64>,
    priority: Cell<u32>,
    interrupt: Cell<bool>,
    generation: Cell<u32>,
    yields: Cell<u32>,
    at_halts: Script<'s>,
    at_polls: Script<'s>,
    at_readings: Script<'s>,
    at_pauses: Script<'s>,
    at_generations: Script<'s>,
    at_sites: Script<'s>,
    site: Cell<Option<Site>>,
    kicked: RefCell<Vec<u32>>,
}

impl<'s> Scripted<'s> {
    /// A platform whose waiters sleep at once, in so many buckets.
    pub(crate) fn new(buckets: usize) -> Self {
        let mut tuning = Tuning::DEFAULT;
        tuning.mutex_spin_ns = 0;
        tuning.mutex_awake_us = 0;
        tuning.mutex_heir_us = (STARVES_NS / 1000) as u32;
        let nodes = (CPUS * LEVELS) as usize;
        Self {
            nodes: (0..nodes).map(|_| Node::new()).collect(),
            sleepers: (0..nodes).map(|_| Sleeper::new()).collect(),
            hints: (0..buckets).map(|_| AtomicU32::new(0)).collect(),
            buckets: (0..buckets).map(|_| SleepBucket::new()).collect(),
            throughput: None,
            knows_places: false,
            tuning,
            running: Cell::new(0),
            // Late: a waiter that has by mistake waited since 0 starves at once.
            clock: Cell::new(1000 * STARVES_NS),
            priority: Cell::new(0),
            interrupt: Cell::new(false),
            generation: Cell::new(0),
            yields: Cell::new(0),
            at_halts: Script::default(),
            at_polls: Script::default(),
            at_readings: Script::default(),
            at_pauses: Script::default(),
            at_generations: Script::default(),
            at_sites: Script::default(),
            site: Cell::new(None),
            kicked: RefCell::default(),
        }
    }

    /// The same with waiters that poll once before they sleep.
    pub(crate) fn polling(buckets: usize) -> Self {
        let mut p = Self::new(buckets);
        p.tuning.mutex_spin_ns = 1;
        p
    }

    /// The same with waiters that yield so many times before they sleep, and acquisitions that are counted.
    pub(crate) fn yielding(buckets: usize, yields: u32) -> Self {
        let mut p = Self::new(buckets);
        p.tuning.mutex_awake_us = 2 * yields;
        p.throughput = Some(Throughput::new());
        p
    }

    /// The same where threads know on which CPU they run.
    pub(crate) fn with_places(mut self) -> Self {
        self.knows_places = true;
        self
    }

    /// The same with barging quanta of so many microseconds.
    pub(crate) fn with_quantum(mut self, rotate_us: u32) -> Self {
        self.tuning.rotate_us = rotate_us;
        self
    }

    /// At the next halt for which there is no step yet, `cpu` executes this.
    pub(crate) fn at_halt(&self, cpu: u32, step: impl FnOnce(&Self) + 's) {
        self.at_halts.borrow_mut().push_back((cpu, Box::new(step)));
    }

    /// The same at a poll in vain. Without a step that has just waited for its time.
    pub(crate) fn at_poll(&self, cpu: u32, step: impl FnOnce(&Self) + 's) {
        self.at_polls.borrow_mut().push_back((cpu, Box::new(step)));
    }

    /// The same while this CPU pauses without polling.
    pub(crate) fn at_pause(&self, cpu: u32, step: impl FnOnce(&Self) + 's) {
        self.at_pauses.borrow_mut().push_back((cpu, Box::new(step)));
    }

    /// The same at a reading of the clock: between two steps of a lock.
    pub(crate) fn at_reading(&self, cpu: u32, step: impl FnOnce(&Self) + 's) {
        self.at_readings.borrow_mut().push_back((cpu, Box::new(step)));
    }

    /// The same just after a reading of the generation, before the lock does anything with it.
    pub(crate) fn at_generation(&self, cpu: u32, step: impl FnOnce(&Self) + 's) {
        self.at_generations.borrow_mut().push_back((cpu, Box::new(step)));
    }

    /// The same just before the first access at a site. There is one such step at a time.
    pub(crate) fn at_site(&self, site: Site, cpu: u32, step: impl FnOnce(&Self) + 's) {
        assert_eq!(self.site.replace(Some(site)), None);
        self.at_sites.borrow_mut().push_back((cpu, Box::new(step)));
    }

    /// Runs this as `cpu`.
    pub(crate) fn on_cpu<R>(&self, cpu: u32, run: impl FnOnce(&Self) -> R) -> R {
        let before = self.running.replace(cpu);
        let result = run(self);
        self.running.set(before);
        result
    }

    /// Runs this in an interrupt.
    pub(crate) fn in_interrupt<R>(&self, run: impl FnOnce(&Self) -> R) -> R {
        self.interrupt.set(true);
        let result = run(self);
        self.interrupt.set(false);
        result
    }

    /// The first node of `cpu`.
    pub(crate) fn node_of(cpu: u32) -> NodeId {
        NodeId::new(CpuId::new(cpu).unwrap(), 0).unwrap()
    }

    /// All nodes of `cpu` are in use from now on.
    pub(crate) fn uses_up_nodes(&self, cpu: u32) {
        self.node(Self::node_of(cpu)).nesting.store(LEVELS, Ordering::Relaxed);
    }

    /// `cpu` joins the sleepers, and does nothing else however often it is woken.
    pub(crate) fn sleeps(&self, cpu: u32, priority: u32, on: usize, tag: u32, end: End) {
        self.priority.set(priority);
        let me = Self::node_of(cpu);
        assert!(self.on_cpu(cpu, |p| sleepers::enqueue(p, me, on, tag, end)));
        self.priority.set(0);
    }

    /// Lets time pass.
    pub(crate) fn pass(&self, ns: u64) {
        self.clock.set(self.clock.get() + ns);
    }

    /// The time so long from now: a deadline.
    pub(crate) fn after(&self, ns: u64) -> u64 {
        self.clock.get() + ns
    }

    /// The CPUs that were kicked since the last call, in order.
    pub(crate) fn kicked(&self) -> Vec<u32> {
        self.kicked.take()
    }

    /// How often a CPU has yielded since the last call.
    pub(crate) fn yields(&self) -> u32 {
        self.yields.take()
    }

    /// From now on this is the child of `fork`.
    pub(crate) fn forks(&self) {
        self.generation.set(self.generation.get() + 1);
    }

    /// Runs the next step, if there is one.
    fn step(&self, script: &Script<'s>) -> bool {
        // Not while the step runs: it may add further ones.
        let next = script.borrow_mut().pop_front();
        next.map(|(cpu, step)| self.on_cpu(cpu, step)).is_some()
    }

    fn wait(&self) {
        assert!(self.step(&self.at_halts), "CPU {} waits for ever", self.running.get());
    }

    fn index(id: NodeId) -> usize {
        (id.number() - NodeId::FIRST) as usize
    }
}

impl Drop for Scripted<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let at_accesses = [&self.at_readings, &self.at_generations, &self.at_sites];
            for script in [&self.at_halts, &self.at_polls].into_iter().chain(at_accesses) {
                assert!(script.borrow().is_empty(), "steps were left");
            }
        }
    }
}

impl Platform for Scripted<'_> {
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
        CpuId::new(self.running.get())
    }
    fn node(&self, id: NodeId) -> &Node<AtomicU32> {
        &self.nodes[Self::index(id)]
    }
    fn wait_until(&self, word: &AtomicU32, until: Until, budget: Budget, order: Ordering) -> u32 {
        loop {
            let seen = word.load(order);
            if until.met_by(seen) {
                return seen;
            }
            let has_changed = self.step(&self.at_polls);
            if budget != Budget::Unbounded {
                return word.load(order);
            }
            let cpu = self.running.get();
            assert!(has_changed, "CPU {cpu} waits for {until:?} for ever");
        }
    }
    fn runs_on(&self) -> Option<u32> {
        self.knows_places.then(|| self.running.get())
    }
    fn relax(&self, _: u32) {
        self.step(&self.at_pauses);
    }
    fn ordering(&self, site: Site, order: Ordering) -> Ordering {
        if self.site.get() == Some(site) {
            self.site.set(None);
            self.step(&self.at_sites);
        }
        order
    }
    /// Without it there is nothing to learn from how long waits take.
    fn pause_ns(&self) -> u32 {
        0
    }
    fn in_interrupt(&self) -> bool {
        self.interrupt.get()
    }
    fn yield_cpu(&self) {
        self.yields.set(self.yields.get() + 1);
    }
    fn halt(&self, _: NodeId) {
        self.wait();
    }
    fn kick(&self, node: NodeId) {
        self.kicked.borrow_mut().push(node.cpu().number());
    }
    fn now_ns(&self) -> u64 {
        self.step(&self.at_readings);
        self.clock.get()
    }
}

impl SleepPlatform for Scripted<'_> {
    fn hints(&self) -> &[AtomicU32] {
        &self.hints
    }
    fn buckets(&self) -> &[SleepBucket<AtomicU32>] {
        &self.buckets
    }
    fn sleeper(&self, id: NodeId) -> &Sleeper<AtomicU32, AtomicUsize> {
        &self.sleepers[Self::index(id)]
    }
    fn token(&self) -> u32 {
        self.running.get() + 1
    }
    fn asymmetric(&self) -> bool {
        false
    }
    fn light_barrier(&self, _: Ordering) {}
    fn heavy_barrier(&self, _: Ordering) {}
    fn halt_until(&self, _: NodeId, _: u64) {
        self.wait();
    }
    fn wait_briefly(&self, _: &AtomicU32, _: Until, rounds: u32) -> bool {
        rounds < ROUNDS
    }
    fn timed_backoff(&self) {
        self.wait();
    }
    fn priority(&self) -> u32 {
        self.priority.get()
    }
    fn throughput(&self) -> Option<&Throughput<AtomicU32>> {
        self.throughput.as_ref()
    }
    fn generation(&self) -> u32 {
        let generation = self.generation.get();
        self.step(&self.at_generations);
        generation
    }
}
