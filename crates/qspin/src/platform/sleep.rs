//! Threads that sleep for a lock, found by the lock's address: see [`qspin_core::sleepers`].
//!
//! In a child no thread sleeps but, perhaps, its own one, if it forked in a signal handler. The child is
//! another [generation](super::system::generation): state bits that its parent's waiters have left in locks do not
//! count.

use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use qspin_core::events::NoEvents;
use qspin_core::node::NodeId;
use qspin_core::platform::{TimedPlatform, Until};
use qspin_core::processor::compiler_barrier;
use qspin_core::sleepers::{self, PLACES, SleepBucket, SleepPlatform, Sleeper, Throughput};

use super::clock::Clock;
use super::holder::Hint;
use super::nodes::{self, FIRST_NODES};
use super::system::clock::{self, Instant};
use super::system::{barrier, generation, halt_until, load, sleep_ns, stranger, urgency};
use super::{StaticEvents, Threads, cpu};

static HINTS: [AtomicU32; PLACES] = [const { AtomicU32::new(0) }; PLACES];
static BUCKETS: [SleepBucket<AtomicU32>; PLACES] = [const { SleepBucket::EMPTY }; PLACES];

/// One record for each node of the first threads: 32 KiB.
static SLEEPERS: [Sleeper<AtomicU32, AtomicUsize>; FIRST_NODES] =
    [const { Sleeper::<AtomicU32, AtomicUsize>::UNUSED }; FIRST_NODES];

/// From which waiters learn how often to poll. 8 KiB.
static THROUGHPUT: Throughput<AtomicU32> = Throughput::ZERO;
/// How long a thread takes to wake on this machine, as sleepers have measured; 0 before the first.
static WAKE_NS: AtomicU32 = AtomicU32::new(0);

/// The sleep of a timed backoff, if a single context without a node backs off. With several, each sleeps that
/// many times longer, so that all of them together poll as often.
const TIMED_BACKOFF_NS: u32 = 50_000;
/// More contexts do not make it longer: a fifth of a second.
const MAX_BACKING_OFF: u32 = 4000;
/// How many contexts are in a timed backoff.
pub(super) static DOZING: AtomicU32 = AtomicU32::new(0);

/// The token of a thread that makes all buckets quiet. It belongs to no thread: such a thread may have no
/// number, and must not get one by this.
const SETTLER: u32 = u32::MAX;

/// Asks for the barrier and for the generation, as otherwise the first release and the first wait do.
pub(crate) fn prepare() {
    let _ = generation::current();
    let _ = settled();
}

/// Asks whether there is a barrier. If so, every bucket without a sleeper is quiet from now on.
#[cold]
fn settled() -> bool {
    let available = barrier::ask();
    if available {
        sleepers::settle_all(&Threads::<NoEvents>::NEW, SETTLER);
    }
    available
}

impl<E: StaticEvents, H: Hint, C: Clock> SleepPlatform for Threads<E, H, C> {
    #[inline]
    fn hints(&self) -> &[AtomicU32] {
        &HINTS
    }

    #[inline]
    fn buckets(&self) -> &[SleepBucket<AtomicU32>] {
        &BUCKETS
    }

    #[inline]
    fn sleeper(&self, id: NodeId) -> &Sleeper<AtomicU32, AtomicUsize> {
        let number = id.number() as usize;
        if let Some(sleeper) = SLEEPERS.get(number) {
            return sleeper;
        }
        // NODES-1 of `nodes`: the part exists. The first record of the table belongs to no thread.
        nodes::part(number).map_or(&SLEEPERS[0], |part| &part.sleepers[nodes::within(number)])
    }

    fn token(&self) -> u32 {
        load::register();
        // In a child that no handler has noticed, a thread that comes to a bucket must not meet the parent's
        // sleepers.
        let _ = generation::current();
        match cpu::current() {
            Some(cpu) => cpu.number() + 1,
            None => 1 << 31 | stranger(),
        }
    }

    #[inline]
    fn asymmetric(&self) -> bool {
        barrier::available() || barrier::is_unknown() && settled()
    }

    #[inline]
    fn light_barrier(&self, _: Ordering) {
        compiler_barrier();
    }

    fn heavy_barrier(&self, _: Ordering) {
        barrier::pass();
    }

    fn halt_until(&self, me: NodeId, deadline_ns: u64) {
        halt_until(me, deadline_ns);
    }

    fn wait_briefly(&self, _: &AtomicU32, _: Until, attempts: u32) -> bool {
        sleepers::back_off(self, attempts)
    }

    #[cold]
    fn rest(&self, ns: u32) {
        sleep_ns(ns);
    }

    #[cold]
    fn timed_backoff(&self) {
        let others = DOZING.fetch_add(1, Relaxed);
        sleep_ns(TIMED_BACKOFF_NS * (others.min(MAX_BACKING_OFF) + 1));
        // In a child forked by a handler that interrupted this, it is not counted.
        let _ = DOZING.fetch_update(Relaxed, Relaxed, |count| count.checked_sub(1));
    }

    fn priority(&self) -> u32 {
        urgency::priority()
    }

    #[inline]
    fn wake_ns(&self) -> Option<&AtomicU32> {
        Some(&WAKE_NS)
    }

    #[inline]
    fn throughput(&self) -> Option<&Throughput<AtomicU32>> {
        Some(&THROUGHPUT)
    }

    #[inline]
    fn generation(&self) -> u32 {
        generation::current()
    }
}

impl<E: StaticEvents, H: Hint, C: Clock> TimedPlatform for Threads<E, H, C> {
    type Instant = Instant;

    fn until(instant: Instant) -> Duration {
        clock::until(instant)
    }

    fn after(duration: Duration) -> Option<Instant> {
        clock::after(duration)
    }
}
