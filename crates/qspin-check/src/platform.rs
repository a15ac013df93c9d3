//! The platform of the checkers: a context, its CPU number, and the nodes of all CPUs.

mod sleep;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use qspin_core::events::{Event, Events};
use qspin_core::node::{Node, NodeId};
use qspin_core::platform::{AtomicAddress, AtomicWord, Budget, CpuId, Platform, Until};
use qspin_core::site::Site;
use qspin_core::tuning::Tuning;
use qspin_core::waiting::Bucket;

use crate::failure::{Failure, Kind};
use crate::machine::{Loom, Machine, Shuttle};
use crate::model::Traits;
use crate::scenario::Scenario;
use crate::trace::{self, NodeWords, Role, Turn, VainHalt};
use crate::word::{Word, judge};

use self::sleep::Sleepers;

/// The state of a node's `kick` while it was not kicked since its last halt.
const NOT_KICKED: u32 = 0;
/// Kicked: the next halt returns (PLATFORM-4).
const KICKED: u32 = 1;

/// Locks on this platform are checked by loom.
pub type LoomPlatform = Context<Loom>;
/// Locks on this platform are checked by shuttle.
pub type ShuttlePlatform = Context<Shuttle>;

/// The address of a lock, in the table of halted waiters. A lock is known there by the number of
/// its word, which is the same in every execution.
pub struct Address<M: Machine>(Word<M>);

impl<M: Machine> AtomicAddress for Address<M> {
    fn new(address: usize) -> Self {
        // What a sleeper sleeps on is left where it was; an entry of the table is not.
        // So is what a lock keeps of another.
        let role = match trace::role() {
            role @ (Role::Sleeper | Role::Lock { .. }) => role,
            _ => Role::Entry,
        };
        Self(trace::making(role, || Word::new(address as u32)))
    }
    fn load(&self, order: Ordering) -> usize {
        self.0.load(order) as usize
    }
    fn store(&self, address: usize, order: Ordering) {
        self.0.store(address as u32, order);
    }
    fn compare_exchange(&self, now: usize, new: usize, order: Ordering) -> Result<usize, usize> {
        let result = self.0.compare_exchange(now as u32, new as u32, order);
        result.map(|address| address as usize).map_err(|address| address as usize)
    }
}

type Table<M> = Vec<Bucket<Word<M>, Address<M>>>;

/// What all contexts share: the nodes of every CPU, and the table of halted waiters.
pub struct Domain<M: Machine> {
    tuning: Tuning,
    /// Waiters halt: see [`Context::relax`].
    halts: bool,
    /// Bounded waits on one word that a waiter spends, where it waits once.
    looks: u32,
    /// Nesting levels for which a CPU has nodes here.
    levels: u32,
    places: u32,
    nodes: Vec<Node<Word<M>>>,
    table: Table<M>,
    sleepers: Sleepers<M>,
}

impl<M: Machine> Domain<M> {
    /// The nodes of the CPUs of `scenario`, and a table with as few entries as its contract allows.
    #[must_use]
    pub fn new(scenario: &Scenario, tuning: Tuning, traits: Traits) -> Self {
        let halts = traits.halts;
        let levels = scenario.levels();
        let count = scenario.nesting.len() * levels as usize;
        let nodes = (0..count as u32).map(|place| make_node(place / levels, place % levels));
        let nodes = nodes.collect();
        let entries = if halts && !traits.sleeps && !traits.no_room { count } else { 0 };
        let buckets = entries.div_ceil(Bucket::<Word<M>, Address<M>>::ENTRIES);
        let buckets = if entries > 0 { buckets.next_power_of_two() } else { 0 };
        let looks = tuning.queue_polls.max(tuning.head_polls).max(tuning.awake_polls);
        // A waiter that sleeps beside the lock polls anew each time it was woken, and for a bounded time.
        let looks = if traits.sleeps { u32::MAX } else { looks };
        let table = (0..buckets).map(|_| Bucket::new()).collect();
        let sleepers = Sleepers::new(traits, count);
        if !scenario.interrupts_buckets {
            sleepers.must_not_be_interrupted();
        }
        Self { tuning, halts, looks, levels, places: scenario.places, nodes, table, sleepers }
    }

    /// Where the node of this number stands.
    fn place(&self, id: NodeId) -> usize {
        (id.cpu().number() * self.levels + id.level()) as usize
    }

    /// The node that a number names, if there is one.
    fn find(&self, id: NodeId) -> Option<&Node<Word<M>>> {
        self.nodes.get(self.place(id)).filter(|_| id.level() < self.levels)
    }

    /// The node that a number names.
    #[must_use]
    pub fn node(&self, id: NodeId) -> &Node<Word<M>> {
        self.find(id).expect("a lock asks only for nodes that there are")
    }
}

/// A node of a CPU, whose words the record knows.
fn make_node<M: Machine>(cpu: u32, level: u32) -> Node<Word<M>> {
    let node: Node<Word<M>> = trace::making(Role::Node, || {
        // The first throw of such dice is 0: the first wait of this CPU is a probe.
        let dice = u32::from(cpu.is_multiple_of(2));
        Node { dice: Word::new(dice), ..Node::new() }
    });
    for word in [&node.nesting, &node.turns, &node.since, &node.history, &node.dice] {
        trace::is_private(word.id());
    }
    if let Some(id) = CpuId::new(cpu).and_then(|cpu| NodeId::new(cpu, level)) {
        trace::know_node(NodeWords {
            id,
            locked: node.locked.id(),
            next: node.next.id(),
            state: node.state.id(),
            second_head: node.second_head.id(),
            second_tail: node.second_tail.id(),
        });
    }
    node
}

/// What the clock shows at first: a few sections before its lower 32 bits, which are all that some waiters keep, are 0 again.
pub const FIRST: u64 = (1 << 32) - 3 * TICK;

/// What the clock shows more with every section, in nanoseconds. Even, since the NUMA-aware order knows odd times only;
/// two of them are more than a microsecond, after which a waiter may starve.
pub const TICK: u64 = 700;

/// The time at which deadlines are over: no context's clock shows it before.
pub const DEADLINE: u64 = 1 << 40;

/// One execution context: a CPU at one nesting level, or a context without a number.
pub struct Context<M: Machine> {
    cpu: Option<CpuId>,
    interrupt: bool,
    domain: Arc<Domain<M>>,
}

impl<M: Machine> Context<M> {
    /// A context that interrupts no other.
    #[must_use]
    pub fn new(cpu: Option<u32>, domain: Arc<Domain<M>>) -> Self {
        Self { cpu: cpu.and_then(CpuId::new), interrupt: false, domain }
    }

    /// The same context.
    #[must_use]
    pub fn again(&self) -> Self {
        Self { cpu: self.cpu, interrupt: self.interrupt, domain: Arc::clone(&self.domain) }
    }

    /// A context on the same CPU that interrupts this one.
    #[must_use]
    pub fn interrupting(&self) -> Self {
        Self { interrupt: true, ..self.again() }
    }

    /// Waits, as the holder of a lock, until so many others wait for it. Only the record knows of this
    /// wait: it orders nothing.
    pub(crate) fn await_arrivals(&self, lock: usize, count: usize) {
        while judge::<M, _>(trace::waits_for_arrivals(lock, count)) {
            Self::yield_until_it_may_look();
        }
    }

    /// Waits until there were so many signals. This orders nothing.
    pub(crate) fn await_signals(&self, count: u32) {
        while judge::<M, _>(trace::waits_for_signals(count)) {
            Self::yield_until_it_may_look();
        }
    }

    /// Waits until a waiter was moved, or every other context has ended or waits. This orders nothing, either.
    pub(crate) fn await_moved(&self) {
        while judge::<M, _>(trace::waits_for_moved()) {
            Self::yield_until_it_may_look();
        }
    }

    /// Waits until every other context has ended or waits. This orders nothing, either.
    pub(crate) fn await_rest(&self, turn: Turn) {
        while judge::<M, _>(trace::waits_for_others(turn)) {
            Self::yield_until_it_may_look();
        }
    }

    fn yield_until_it_may_look() {
        loop {
            trace::keep(M::yield_now);
            if trace::may_look() {
                return;
            }
            if trace::woke_in_vain() {
                M::prune();
            }
        }
    }

    /// Waits until the wait that the trace holds for this context may have ended.
    ///
    /// Executions that differ only in looks of a waiter that fail are equal: a failed look
    /// changes nothing, and what it may order can only hide a bug. Of equal executions one is
    /// explored.
    fn wait_for_a_change(&self) {
        if !trace::saw_latest() {
            // The look returned an old value. One that returns the latest is explored, too.
            M::prune();
        }
        Self::yield_until_it_may_look();
    }
}

/// Counts events in the coverage of the check.
#[derive(Debug, Clone, Copy)]
pub struct Recorded;

impl Events for Recorded {
    // Off is what spares a lock the work that only a counter needs, such as reading the clock and
    // writing the time down; there is no time here. What is counted is counted nevertheless.
    const ENABLED: bool = false;
    const COUNTS: bool = true;
    fn add(&self, event: Event, amount: u64) {
        trace::add_events(event, amount);
    }
}

impl<M: Machine> Platform for Context<M> {
    type Word = Word<M>;
    type Address = Address<M>;
    type Events = Recorded;

    fn events(&self) -> &Recorded {
        &Recorded
    }

    fn tuning(&self) -> &Tuning {
        &self.domain.tuning
    }

    fn cpu(&self) -> Option<CpuId> {
        self.cpu
    }

    fn node(&self, id: NodeId) -> &Node<Word<M>> {
        self.domain.node(id)
    }

    fn pause_ns(&self) -> u32 {
        // What waiters learn of whether to poll is explored at random only: the state is too large for more. There a
        // slice is one poll.
        if M::EXHAUSTIVE { 0 } else { u32::MAX }
    }

    fn runs_on(&self) -> Option<u32> {
        // Two CPUs: some contexts have one for themselves, and some have not.
        self.cpu.map(|cpu| cpu.number() % 2)
    }

    fn wait_until(&self, word: &Word<M>, until: Until, budget: Budget, order: Ordering) -> u32 {
        let mut looks = 0;
        loop {
            let value = word.load(order);
            looks += 1;
            if until.met_by(value) {
                return value;
            }
            match budget {
                Budget::Polls(most) if looks >= most => {
                    if !self.domain.halts || !trace::looked_in_vain(word.id(), self.domain.looks) {
                        return value;
                    }
                    judge::<M, _>(trace::waits_for(word.id()));
                    self.wait_for_a_change();
                }
                Budget::Polls(_) => trace::keep(M::yield_now),
                Budget::Unbounded => {
                    judge::<M, _>(trace::waits_for(word.id()));
                    self.wait_for_a_change();
                }
            }
        }
    }

    fn relax(&self, pauses: u32) {
        // A lock whose waiters halt pauses only between bounded looks, and then goes on.
        if pauses == 0 || self.domain.halts {
            return;
        }
        judge::<M, _>(trace::waits_for_any());
        self.wait_for_a_change();
    }

    fn fence(&self, order: Ordering) {
        if order != Ordering::Relaxed {
            trace::keep(|| M::fence(order));
        }
    }

    fn ordering(&self, site: Site, order: Ordering) -> Ordering {
        trace::ordering(site, order)
    }

    /// The CPUs are on the places in turn.
    fn place(&self) -> u32 {
        self.cpu.map_or(0, |cpu| cpu.number() % self.domain.places)
    }

    /// The places are in a row.
    fn distance(&self, from: u32, to: u32) -> u32 {
        from.abs_diff(to)
    }

    fn now_ns(&self) -> u64 {
        if trace::is_late() { DEADLINE } else { FIRST + TICK * trace::clock() + 1 }
    }

    fn in_interrupt(&self) -> bool {
        self.interrupt
    }

    fn halt(&self, me: NodeId) {
        match trace::halts_in_vain() {
            Some(VainHalt::Long) => return self.await_rest(Turn::First),
            Some(VainHalt::Short) => return,
            None => {}
        }
        let kick = &self.node(me).kick;
        while kick.compare_exchange(KICKED, NOT_KICKED, Ordering::Acquire).is_err() {
            judge::<M, _>(trace::waits_for_kick(kick.id()));
            self.wait_for_a_change();
        }
    }

    fn kick(&self, node: NodeId) {
        match self.domain.find(node) {
            Some(node) => {
                node.kick.swap(KICKED, Ordering::Release);
            }
            None => {
                let message = format!("node {} was kicked, and there is none", node.number());
                judge::<M, _>(Err(Failure::new(Kind::Kick, message)))
            }
        }
    }

    fn address(&self, word: &Word<M>) -> usize {
        self.domain.sleepers.address(word.id())
    }

    fn is_preempted(&self, _: CpuId) -> bool {
        // Asked only where the tuning heeds it.
        true
    }

    fn hash(&self) -> &[Bucket<Word<M>, Address<M>>] {
        &self.domain.table
    }
}
