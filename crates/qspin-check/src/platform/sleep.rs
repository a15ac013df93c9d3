//! Sleepers, as the checkers have them: one bucket, in which the locks of a scenario meet.
//!
//! The heavy barrier orders all threads as if each had passed a full fence in the middle of it. Here both
//! sides of the asymmetric fence are full fences, as C++ proposal P1202 defines them with respect to each
//! other. That makes light barriers order more than they do: two of them would order each other, and a full
//! fence on one side. Neither is relied on: see SLEEP-2 of `qspin_core::sleepers`.

use std::sync::atomic::Ordering;

use qspin_core::node::NodeId;
use qspin_core::platform::{AtomicWord, Budget, Platform, Until};
use qspin_core::sleepers::{SleepBucket, SleepPlatform, Sleeper, settle_all};

use super::{Address, Context};
use crate::ledger::{self, Role};
use crate::machine::Machine;
use crate::model::Traits;
use crate::word::{Word, judge};

/// What is shared by those who sleep.
pub(super) struct Sleepers<M: Machine> {
    /// There is a heavy barrier.
    asymmetric: bool,
    hints: Vec<Word<M>>,
    buckets: Vec<SleepBucket<Word<M>>>,
    records: Vec<Sleeper<Word<M>, Address<M>>>,
}

impl<M: Machine> Sleepers<M> {
    /// Nothing for a lock whose waiters do not sleep.
    pub(super) fn new(traits: Traits, nodes: usize) -> Self {
        let count = if traits.sleeps { 1 } else { 0 };
        let nodes = nodes * count;
        ledger::making(Role::Sleeper, || Self {
            asymmetric: traits.asymmetric,
            hints: (0..count).map(|_| Word::new(0)).collect(),
            buckets: (0..count).map(|_| SleepBucket::new()).collect(),
            records: (0..nodes).map(|_| Sleeper::new()).collect(),
        })
    }
}

impl<M: Machine> Context<M> {
    /// Before anybody else runs: releases may be plain stores, if there is a heavy barrier.
    pub(crate) fn settle(&self) {
        if self.domain.sleepers.asymmetric {
            settle_all(self, self.token());
        }
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
        &self.domain.sleepers.records[self.domain.place(id)]
    }

    fn token(&self) -> u32 {
        match self.cpu {
            Some(cpu) => cpu.number() + 1,
            None => 1 << 31 | ledger::current() as u32,
        }
    }

    fn asymmetric(&self) -> bool {
        self.domain.sleepers.asymmetric
    }

    fn light_barrier(&self, order: Ordering) {
        self.fence(order);
    }

    fn heavy_barrier(&self, order: Ordering) {
        self.fence(order);
    }

    fn halt_until(&self, me: NodeId, _: u64) {
        self.halt(me);
    }

    fn wait_briefly(&self, word: &Word<M>, until: Until, _: u32) -> bool {
        if self.domain.levels > 1 {
            // Who has it locked may be interrupted by somebody who waits for this very context.
            return false;
        }
        self.wait_until(word, until, Budget::Unbounded, Ordering::Relaxed);
        true
    }

    fn doze(&self) {
        if !ledger::dozes_in_vain() {
            return ledger::keep(M::yield_now);
        }
        judge::<M, _>(ledger::waits_for_any());
        self.wait_for_a_change();
    }
}
