//! Sleepers, as the checkers have them: one bucket, in which the locks of a scenario meet, or two.
//!
//! The asymmetric fence is what it is: the light side orders nothing, and at the heavy one each context passes a full
//! fence wherever it stands ([`Machine::fence_everywhere`]). What the light side keeps is the order in which its thread
//! does its store and its load; without it the interrupt may find the load done and the store not yet, and orders neither.

use std::sync::atomic::{AtomicBool, Ordering};

use qspin_core::node::NodeId;
use qspin_core::platform::{AtomicWord, Budget, Platform, Until};
use qspin_core::sleepers::{SleepBucket, SleepPlatform, Sleeper, settle_all};

use super::{Address, Context, DEADLINE};
use crate::machine::Machine;
use crate::model::{Buckets, Traits};
use crate::trace::{self, Role};
use crate::word::{Word, judge};

/// No context has this token.
const SETTLER: u32 = u32::MAX;

/// What all sleepers share.
pub(super) struct Sleepers<M: Machine> {
    /// There is a heavy barrier.
    asymmetric: AtomicBool,
    kind: Buckets,
    /// There are forks.
    forks: bool,
    hints: Vec<Word<M>>,
    buckets: Vec<SleepBucket<Word<M>>>,
    records: Vec<Sleeper<Word<M>, Address<M>>>,
}

impl<M: Machine> Sleepers<M> {
    /// Nothing for a lock whose waiters do not sleep.
    pub(super) fn new(traits: Traits, nodes: usize) -> Self {
        let count = match traits.buckets {
            _ if !traits.sleeps => 0,
            Buckets::One => 1,
            Buckets::Two | Buckets::Swapped => 2,
        };
        let nodes = if traits.sleeps { nodes } else { 0 };
        trace::making(Role::Sleeper, || Self {
            asymmetric: AtomicBool::new(traits.asymmetric && !traits.late),
            kind: traits.buckets,
            forks: traits.inherited,
            hints: trace::making(Role::Hint, || (0..count).map(|_| Word::new(0)).collect()),
            buckets: (0..count).map(|_| SleepBucket::new()).collect(),
            // The last one is never used.
            records: (0..=nodes).map(|_| Sleeper::new()).collect(),
        })
    }
}

impl<M: Machine> Sleepers<M> {
    /// No interrupt comes while its context has a bucket locked.
    pub(super) fn must_not_be_interrupted(&self) {
        self.buckets.iter().for_each(|bucket| trace::is_uninterrupted(bucket.owner().id()));
    }

    /// Addresses that a word may have, so that one of them is in the bucket that it is to be in.
    const NEAR: usize = 64;

    /// The address of a word: not 0, and the same in every execution. Of two buckets the words of a lock are in one and
    /// the other in turns: a mutex in one, the count of waiters after it in the other. An address takes no turn.
    pub(super) fn address(&self, id: usize) -> usize {
        let first = (id + 1) * Self::NEAR;
        let wanted = match self.kind {
            Buckets::One => return id + 1,
            Buckets::Two => trace::index_in_lock(id) % 2,
            Buckets::Swapped => 1 - trace::index_in_lock(id) % 2,
        };
        // The hash of `qspin_core::sleepers`, for two buckets.
        let place = |on: usize| (on as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32 & 1;
        let fits = |&on: &usize| place(on) == wanted as u64;
        (first..first + Self::NEAR).find(fits).unwrap_or(first)
    }
}

impl<M: Machine> Context<M> {
    /// Before another context runs: releases may be plain stores, if there is a heavy barrier.
    pub(crate) fn settle(&self) {
        if self.asymmetric() {
            settle_all(self, self.token());
        }
    }

    /// There is a heavy barrier from now on. Contexts take turns, and each lets others run only within its operations.
    pub(crate) fn obtain_barrier(&self) {
        self.domain.sleepers.asymmetric.store(true, Ordering::Relaxed);
        settle_all(self, SETTLER);
    }
}

impl<M: Machine> SleepPlatform for Context<M> {
    fn hints(&self) -> &[Word<M>] {
        &self.domain.sleepers.hints
    }

    fn buckets(&self) -> &[SleepBucket<Word<M>>] {
        &self.domain.sleepers.buckets
    }

    fn sleeper(&self, id: NodeId) -> &Sleeper<Word<M>, Address<M>> {
        // The child of a fork looks at all levels of its CPU, of which there may be fewer here.
        let records = &self.domain.sleepers.records;
        let place =
            if id.level() < self.domain.levels { self.domain.place(id) } else { usize::MAX };
        &records[place.min(records.len() - 1)]
    }

    fn token(&self) -> u32 {
        match self.cpu {
            Some(cpu) => cpu.number() + 1,
            None => 1 << 31 | trace::current() as u32,
        }
    }

    fn asymmetric(&self) -> bool {
        self.domain.sleepers.asymmetric.load(Ordering::Relaxed)
    }

    fn light_barrier(&self, order: Ordering) {
        if order != Ordering::SeqCst {
            trace::lacks_light_barrier();
        }
    }

    fn heavy_barrier(&self, order: Ordering) {
        if let Some(before) = trace::at_barrier(false) {
            before();
        }
        self.fence(order);
        if order == Ordering::SeqCst && self.asymmetric() {
            trace::keep(|| M::fence_everywhere(trace::is_out_of_order, trace::has_ended));
        }
        if let Some(after) = trace::at_barrier(true) {
            after();
        }
    }

    fn halt_until(&self, me: NodeId, deadline_ns: u64) {
        if deadline_ns != DEADLINE {
            // A deadline of the lock's own: no time passes here until then, so nothing but a kick ends the halt.
            return self.halt(me);
        }
        if let Some(handler) = trace::at_halt() {
            handler();
        }
        // It may be preempted here, so this stands for a return at any later time, too, and that it was kicked meanwhile.
        if trace::oversleeps() {
            trace::keep(M::yield_now);
        }
    }

    fn generation(&self) -> u32 {
        if self.domain.sleepers.forks {
            // A fork may come before it, as before an operation.
            if let Some(handler) = judge::<M, _>(trace::before_operation()) {
                handler();
            }
        }
        trace::generation()
    }

    fn wait_briefly(&self, word: &Word<M>, until: Until, _: u32) -> bool {
        if self.domain.levels > 1 {
            // The context that has it locked may be interrupted by one that waits for this very context.
            return false;
        }
        self.wait_until(word, until, Budget::Unbounded, Ordering::Relaxed);
        true
    }

    fn timed_backoff(&self) {
        if !trace::backs_off_in_vain() {
            return trace::keep(M::yield_now);
        }
        judge::<M, _>(trace::waits_for_any());
        self.wait_for_a_change();
    }
}
