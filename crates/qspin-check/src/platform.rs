//! The platform of the checkers: a context, its CPU number, and the nodes of all CPUs.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use qspin_core::events::{Event, Events};
use qspin_core::node::{LEVELS, Node, NodeId};
use qspin_core::platform::{AtomicWord, Budget, CpuId, Platform, Until};
use qspin_core::site::Site;
use qspin_core::tuning::Tuning;

use crate::ledger::{self, Role};
use crate::machine::{Loom, Machine, Shuttle};
use crate::word::{Word, judge};

/// Locks on this platform are checked by loom.
pub type LoomPlatform = Context<Loom>;
/// Locks on this platform are checked by shuttle.
pub type ShuttlePlatform = Context<Shuttle>;

/// What all contexts share: the nodes of every CPU.
pub struct Domain<M: Machine> {
    nodes: Vec<Node<Word<M>>>,
}

impl<M: Machine> Domain<M> {
    /// The nodes of this many CPUs.
    #[must_use]
    pub fn new(cpus: u32) -> Self {
        let nodes = (0..cpus * LEVELS).map(|_| ledger::making(Role::Node, Node::new)).collect();
        Self { nodes }
    }

    /// The node that a number names.
    #[must_use]
    pub fn node(&self, id: NodeId) -> &Node<Word<M>> {
        &self.nodes[usize::from(id.number() - NodeId::FIRST)]
    }
}

/// One execution context: a CPU at one nesting level, or a context without a number.
pub struct Context<M: Machine> {
    cpu: Option<CpuId>,
    interrupt: bool,
    domain: Arc<Domain<M>>,
}

impl<M: Machine> Context<M> {
    /// A context that interrupts nobody.
    #[must_use]
    pub fn new(cpu: Option<u32>, domain: Arc<Domain<M>>) -> Self {
        Self { cpu: cpu.and_then(CpuId::new), interrupt: false, domain }
    }

    /// A context on the same CPU that interrupts this one.
    #[must_use]
    pub fn interrupting(&self) -> Self {
        Self { cpu: self.cpu, interrupt: true, domain: Arc::clone(&self.domain) }
    }

    /// Waits until the wait that the ledger holds for this context may have ended.
    ///
    /// Executions that differ only in looks of a waiter that fail are equal: a failed look
    /// changes nothing, and what it may order can only hide a bug. Of equal executions one is
    /// explored.
    fn wait_for_a_change(&self) {
        if !ledger::saw_latest() {
            // The look returned an old value. One that returns the latest is explored, too.
            M::prune();
        }
        loop {
            ledger::keep(M::yield_now);
            if ledger::may_look() {
                return;
            }
            if ledger::woke_in_vain() {
                M::prune();
            }
        }
    }
}

/// Counts events in the coverage of the check.
#[derive(Debug, Clone, Copy)]
pub struct Recorded;

impl Events for Recorded {
    const ENABLED: bool = true;
    fn count(&self, event: Event) {
        ledger::add_event(event);
    }
}

/// Bounded waits are one look long: a longer one is the same with more executions.
const TUNING: Tuning = {
    let mut tuning = Tuning::DEFAULT;
    // One look, and no pause before it: a pause waits here until something changes, which this
    // bounded wait does not.
    tuning.owner_looks = 1;
    tuning.owner_pauses = 0;
    tuning.pending_looks = 1;
    tuning.simple_looks = 1;
    tuning.yield_looks = 1;
    tuning
};

impl<M: Machine> Platform for Context<M> {
    type Word = Word<M>;
    type Events = Recorded;

    fn events(&self) -> &Recorded {
        &Recorded
    }

    fn tuning(&self) -> &Tuning {
        &TUNING
    }

    fn cpu(&self) -> Option<CpuId> {
        self.cpu
    }

    fn node(&self, id: NodeId) -> &Node<Word<M>> {
        self.domain.node(id)
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
                Budget::Looks(most) if looks >= most => return value,
                Budget::Looks(_) => ledger::keep(M::yield_now),
                Budget::Unbounded => {
                    judge::<M, _>(ledger::waits_for(word.id()));
                    self.wait_for_a_change();
                }
            }
        }
    }

    fn relax(&self, pauses: u32) {
        if pauses == 0 {
            return;
        }
        judge::<M, _>(ledger::waits_for_any());
        self.wait_for_a_change();
    }

    fn fence(&self, order: Ordering) {
        if order != Ordering::Relaxed {
            ledger::keep(|| M::fence(order));
        }
    }

    fn ordering(&self, site: Site, order: Ordering) -> Ordering {
        ledger::ordering(site, order)
    }

    fn in_interrupt(&self) -> bool {
        self.interrupt
    }
}
