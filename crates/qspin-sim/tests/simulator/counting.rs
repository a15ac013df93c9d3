//! The instrument costs nothing: a run that counts events, or that is written down, is the run without.
//!
//! Every lock of the register runs once as it is simulated, and once on a platform that is the same simulated CPU but
//! for its counters, which are [`NoEvents`]. What a lock does only because it is counted would be in one digest and not
//! in the other: counting the NUMA order's hand-overs was once a transfer of a line under the lock.

use std::sync::atomic::Ordering;

use crate::fixtures;
use qspin_core::events::NoEvents;
use qspin_core::for_each_lock;
use qspin_core::lock::{RawLock, RawSharedLock};
use qspin_core::node::{Node, NodeId};
use qspin_core::platform::{Budget, CpuId, Platform, Until};
use qspin_core::sleepers::{SleepBucket, SleepPlatform, Sleeper, Throughput};
use qspin_core::tuning::Tuning;
use qspin_core::waiting::Bucket;
use qspin_sim::platform::{SimAddress, SimPlatform, SimWord};
use qspin_sim::workload::{ReadersWriters, Workload};
use qspin_sim::{
    Lock, Outcome, Scenario, simulate, simulate_lock, simulate_shared_lock, simulate_traced,
};

/// A simulated CPU on which nothing is counted.
struct Uncounted<'a>(&'a SimPlatform);

impl Platform for Uncounted<'_> {
    type Word = SimWord;
    type Address = SimAddress;
    type Events = NoEvents;

    fn events(&self) -> &NoEvents {
        &NoEvents
    }
    fn tuning(&self) -> &Tuning {
        self.0.tuning()
    }
    fn cpu(&self) -> Option<CpuId> {
        self.0.cpu()
    }
    fn node(&self, id: NodeId) -> &Node<SimWord> {
        self.0.node(id)
    }
    fn wait_until(&self, word: &SimWord, until: Until, budget: Budget, order: Ordering) -> u32 {
        self.0.wait_until(word, until, budget, order)
    }
    fn relax(&self, pauses: u32) {
        self.0.relax(pauses);
    }
    fn pause_ns(&self) -> u32 {
        self.0.pause_ns()
    }
    fn fence(&self, order: Ordering) {
        self.0.fence(order);
    }
    fn yield_cpu(&self) {
        self.0.yield_cpu();
    }
    fn yield_to(&self, holder: CpuId) {
        self.0.yield_to(holder);
    }
    fn halt(&self, me: NodeId) {
        self.0.halt(me);
    }
    fn kick(&self, node: NodeId) {
        self.0.kick(node);
    }
    fn address(&self, word: &SimWord) -> usize {
        self.0.address(word)
    }
    fn holder_enter(&self) {
        self.0.holder_enter();
    }
    fn holder_exit(&self) {
        self.0.holder_exit();
    }
    fn runs_on(&self) -> Option<u32> {
        self.0.runs_on()
    }
    fn is_preempted(&self, cpu: CpuId) -> bool {
        self.0.is_preempted(cpu)
    }
    fn place(&self) -> u32 {
        self.0.place()
    }
    fn distance(&self, from: u32, to: u32) -> u32 {
        self.0.distance(from, to)
    }
    fn now_ns(&self) -> u64 {
        self.0.now_ns()
    }
    fn hash(&self) -> &[Bucket<SimWord, SimAddress>] {
        self.0.hash()
    }
}

impl SleepPlatform for Uncounted<'_> {
    fn hints(&self) -> &[SimWord] {
        self.0.hints()
    }
    fn buckets(&self) -> &[SleepBucket<SimWord>] {
        self.0.buckets()
    }
    fn sleeper(&self, id: NodeId) -> &Sleeper<SimWord, SimAddress> {
        self.0.sleeper(id)
    }
    fn token(&self) -> u32 {
        self.0.token()
    }
    fn asymmetric(&self) -> bool {
        self.0.asymmetric()
    }
    fn light_barrier(&self, order: Ordering) {
        self.0.light_barrier(order);
    }
    fn heavy_barrier(&self, order: Ordering) {
        self.0.heavy_barrier(order);
    }
    fn halt_until(&self, me: NodeId, deadline_ns: u64) {
        self.0.halt_until(me, deadline_ns);
    }
    fn wait_briefly(&self, word: &SimWord, until: Until, rounds: u32) -> bool {
        self.0.wait_briefly(word, until, rounds)
    }
    fn timed_backoff(&self) {
        self.0.timed_backoff();
    }
    fn wake_ns(&self) -> Option<&SimWord> {
        self.0.wake_ns()
    }
    fn throughput(&self) -> Option<&Throughput<SimWord>> {
        self.0.throughput()
    }
}

/// A lock of the register, on such a CPU.
struct Silent<L>(L);

// SAFETY: the lock excludes on every platform.
unsafe impl<L> RawLock<SimPlatform> for Silent<L>
where
    L: for<'a> RawLock<Uncounted<'a>>,
{
    fn new() -> Self {
        Self(L::new())
    }
    fn acquire(&self, p: &SimPlatform) {
        self.0.acquire(&Uncounted(p));
    }
    fn try_acquire(&self, p: &SimPlatform) -> bool {
        self.0.try_acquire(&Uncounted(p))
    }
    unsafe fn release(&self, p: &SimPlatform) {
        // SAFETY: the caller's.
        unsafe { self.0.release(&Uncounted(p)) };
    }
    fn is_locked(&self, p: &SimPlatform) -> bool {
        self.0.is_locked(&Uncounted(p))
    }
}

// SAFETY: the lock shares and excludes on every platform.
unsafe impl<L> RawSharedLock<SimPlatform> for Silent<L>
where
    L: for<'a> RawSharedLock<Uncounted<'a>>,
{
    fn new() -> Self {
        Self(L::new())
    }
    fn acquire_shared(&self, p: &SimPlatform) {
        self.0.acquire_shared(&Uncounted(p));
    }
    fn try_acquire_shared(&self, p: &SimPlatform) -> bool {
        self.0.try_acquire_shared(&Uncounted(p))
    }
    unsafe fn release_shared(&self, p: &SimPlatform) {
        // SAFETY: the caller's.
        unsafe { self.0.release_shared(&Uncounted(p)) };
    }
    fn acquire_exclusive(&self, p: &SimPlatform) {
        self.0.acquire_exclusive(&Uncounted(p));
    }
    fn try_acquire_exclusive(&self, p: &SimPlatform) -> bool {
        self.0.try_acquire_exclusive(&Uncounted(p))
    }
    unsafe fn release_exclusive(&self, p: &SimPlatform) {
        // SAFETY: the caller's.
        unsafe { self.0.release_exclusive(&Uncounted(p)) };
    }
    fn is_locked(&self, p: &SimPlatform) -> bool {
        self.0.is_locked(&Uncounted(p))
    }
    fn is_locked_exclusive(&self, p: &SimPlatform) -> bool {
        self.0.is_locked_exclusive(&Uncounted(p))
    }
}

fn uncounted(scenario: &Scenario, seed: u64) -> Outcome {
    macro_rules! silent {
        (
            () sleeping { $($sleeps:ident: $smodule:ident = $slock:path, $sabout:literal;)* }
            spinning { $($id:ident: $module:ident = $lock:path, $about:literal;)* }
            shared_sleeping { $($rsleeps:ident: $rsmodule:ident = $rslock:path, $rsabout:literal;)* }
            shared_spinning { $($rid:ident: $rmodule:ident = $rlock:path, $rabout:literal;)* }
        ) => {
            match scenario.lock {
                $(Lock::$id => {
                    use $lock as Chosen;
                    simulate_lock::<Silent<Chosen<SimWord>>>(scenario, seed)
                })*
                $(Lock::$sleeps => {
                    use $slock as Chosen;
                    simulate_lock::<Silent<Chosen<SimWord>>>(scenario, seed)
                })*
                $(Lock::$rsleeps => {
                    use $rslock as Chosen;
                    simulate_shared_lock::<Silent<Chosen<SimWord>>>(scenario, seed)
                })*
                $(Lock::$rid => {
                    use $rlock as Chosen;
                    simulate_shared_lock::<Silent<Chosen<SimWord>>>(scenario, seed)
                })*
            }
        };
    }
    for_each_lock!(silent).unwrap()
}

/// With a queue on both sockets, and with CPUs that are taken away; a waiter is passed over for so long that
/// queues are flushed.
fn scenarios(lock: Lock) -> Vec<Scenario> {
    let crowded = |hogs, count| {
        let mut scenario = Scenario { hogs, ..fixtures::counting(lock, 8, count) };
        scenario.tuning.insert("numa_threshold_ns".to_owned(), 5000);
        scenario
    };
    let mut read = Scenario { duration_ns: 5e4, ..crowded(8, 0) };
    read.workload = Workload::ReadersWriters(ReadersWriters {
        inside_ns: 50.0,
        outside_ns: 100.0,
        written: 0.3,
    });
    vec![crowded(0, 100), crowded(8, 40), read]
}

#[test]
fn what_is_simulated_is_the_same_whether_it_is_counted_or_not() {
    for &lock in Lock::ALL {
        for scenario in scenarios(lock) {
            for seed in 1..=3 {
                let counted = simulate(&scenario, seed).unwrap();
                let uncounted = uncounted(&scenario, seed);
                let name = lock.name();
                assert!(uncounted.events.is_empty(), "{name}: {:?}", uncounted.events);
                // All of it, the digest of everything that happened first.
                assert_eq!(counted.hash, uncounted.hash, "{name}, {} hogs", scenario.hogs);
                let without = Outcome { events: uncounted.events.clone(), ..counted };
                assert_eq!(without, uncounted, "{name}, {} hogs", scenario.hogs);
            }
        }
    }
}

#[test]
fn what_is_simulated_is_the_same_whether_it_is_written_down_or_not() {
    for &lock in Lock::ALL {
        for scenario in scenarios(lock) {
            let (traced, timeline) = simulate_traced(&scenario, 1);
            assert_eq!(traced.unwrap(), simulate(&scenario, 1).unwrap(), "{}", lock.name());
            drop(timeline);
        }
    }
}

/// Else the first test could not fail for it.
#[test]
fn hand_overs_of_the_numa_order_are_counted_here() {
    for scenario in scenarios(Lock::Cna) {
        let counted = simulate(&scenario, 1).unwrap();
        for event in ["cna_local_handoff", "cna_remote_handoff", "cna_splice", "cna_flush"] {
            assert!(counted.events.contains_key(event), "{event}: {:?}", counted.events);
        }
    }
}
