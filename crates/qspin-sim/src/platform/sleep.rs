//! Simulated CPUs that sleep for a lock of the sleeping family: see [`qspin_core::sleepers`].
//!
//! # Model
//! Hints, buckets and records lie in simulated memory: a release that reads a hint has to fetch its line once.
//! The light side of the asymmetric fence costs nothing; the heavy side interrupts every CPU and waits for
//! their store buffers. A thread is a simulated CPU, so a thread's place is the processor on which the
//! hypervisor runs it.
//!
//! # Limits
//! No signal handlers, no forks, no priorities.

use std::sync::atomic::Ordering;

use qspin_core::node::NodeId;
use qspin_core::platform::{AtomicWord, Until};
use qspin_core::sleepers::{
    self, PLACES, QUIET_HINT, SleepBucket, SleepPlatform, Sleeper, Throughput,
};

use super::{SimAddress, SimPlatform, SimWord, place_of};
use crate::machine::{Memory, Padded};

/// How long a CPU that cannot join the queue sleeps.
const TIMED_BACKOFF_NS: f64 = 50_000.0;

/// Records that share a line.
type Records = [Sleeper<SimWord, SimAddress>; 2];

/// What the sleeping family keeps beside its locks.
#[derive(Debug)]
pub(crate) struct Sleeping {
    hints: Box<[Padded<[SimWord; PLACES]>]>,
    buckets: Box<[SleepBucket<SimWord>]>,
    sleepers: Box<[Padded<Records>]>,
    wake_ns: Box<[Padded<SimWord>]>,
    throughput: Box<[Throughput<SimWord>]>,
}

impl Sleeping {
    /// For this many CPUs, in simulated memory.
    pub(crate) fn new(cpus: usize, memory: &mut Memory) -> Self {
        let hint = || SimWord::new(QUIET_HINT);
        let new = Self {
            hints: Box::new([Padded(core::array::from_fn(|_| hint()))]),
            buckets: (0..PLACES).map(|_| SleepBucket::new()).collect(),
            sleepers: (0..cpus.div_ceil(2)).map(|_| Padded(Records::default())).collect(),
            wake_ns: Box::new([Padded(SimWord::new(0))]),
            throughput: Box::new([Throughput::new()]),
        };
        memory.add(&new.hints);
        memory.add(&new.buckets);
        memory.add(&new.sleepers);
        memory.add(&new.wake_ns);
        memory.add(&new.throughput);
        new
    }
}

impl SleepPlatform for SimPlatform {
    fn hints(&self) -> &[SimWord] {
        &self.world.sleeping.hints[0].0
    }

    fn buckets(&self) -> &[SleepBucket<SimWord>] {
        &self.world.sleeping.buckets
    }

    fn sleeper(&self, id: NodeId) -> &Sleeper<SimWord, SimAddress> {
        let number = place_of(id);
        &self.world.sleeping.sleepers[number / 2].0[number % 2]
    }

    fn token(&self) -> u32 {
        self.number() + 1
    }

    fn asymmetric(&self) -> bool {
        true
    }

    fn light_barrier(&self, _: Ordering) {}

    fn heavy_barrier(&self, _: Ordering) {
        self.world.fence_everywhere();
    }

    fn halt_until(&self, me: NodeId, deadline_ns: u64) {
        self.world.halt_until(me.level(), Some(deadline_ns));
    }

    fn wait_briefly(&self, _: &SimWord, _: Until, attempts: u32) -> bool {
        sleepers::back_off(self, attempts)
    }

    fn rest(&self, ns: u32) {
        self.sleep(ns.into());
    }

    fn timed_backoff(&self) {
        self.sleep(TIMED_BACKOFF_NS);
    }

    fn wake_ns(&self) -> Option<&SimWord> {
        Some(&self.world.sleeping.wake_ns[0].0)
    }

    fn throughput(&self) -> Option<&Throughput<SimWord>> {
        Some(&self.world.sleeping.throughput[0])
    }
}
