//! The platform of the client: each thread is a CPU, and its waits are GenMC's.
//!
//! A bounded wait is one poll long: a longer one is the same with more executions. A waiter that has polled one value of
//! one word as often as its lock lets it, and has not halted since, waits for another value: what it would do until then
//! it has done before.

use core::cell::Cell;
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

use qspin_core::events::NoEvents;
use qspin_core::node::{LEVELS, Node, NodeId};
use qspin_core::platform::{AtomicWord, Budget, ConstWord, CpuId, Platform, Until};
use qspin_core::site::Site;
use qspin_core::sleepers::{SleepBucket, SleepPlatform, Sleeper};
use qspin_core::tuning::Tuning;
use qspin_core::waiting::Bucket;

use crate::checker::spin;
use crate::subject::{FLAG, LOOKS, PLACES, THREADS, TUNING, WEAK};
use crate::word::Word;

const NODES: usize = THREADS * LEVELS as usize;
/// As many entries as there are threads: a waiter halts with one node.
const BUCKETS: usize = THREADS.div_ceil(Bucket::<Word, AtomicUsize>::ENTRIES).next_power_of_two();

/// The state of a node's `kick` while it was not kicked since its last halt.
const NOT_KICKED: u32 = 0;
/// Kicked: the next halt returns.
const KICKED: u32 = 1;

static NODE: [Node<Word>; NODES] = [const { Node::UNUSED }; NODES];
static HALTED: [Bucket<Word, AtomicUsize>; BUCKETS] = [const { Bucket::EMPTY }; BUCKETS];
static SLEEPER: [Sleeper<Word, AtomicUsize>; NODES] = [const { Sleeper::UNUSED }; NODES];
static SLEEPERS: [SleepBucket<Word>; 1] = [SleepBucket::EMPTY];
static HINTS: [Word; 1] = [ConstWord::ZERO];

/// A thread of this program, as a CPU.
pub(crate) struct Threads {
    cpu: u32,
    /// The word of the lock.
    lock: *const Word,
    /// What was polled last in vain, what was seen, and how often.
    vain: Cell<(*const Word, u32, u32)>,
}

impl Threads {
    #[inline(always)]
    pub(crate) fn new(cpu: u32, lock: *const Word) -> Self {
        Self { cpu, lock, vain: Cell::new((ptr::null(), 0, 0)) }
    }

    /// Where the node of this number stands.
    #[inline(always)]
    fn place(id: NodeId) -> usize {
        (id.number() - NodeId::FIRST) as usize
    }

    /// Whether a context that has seen `seen` has now polled that as often as its lock lets it.
    #[inline(always)]
    fn looked_in_vain(&self, word: &Word, seen: u32) -> bool {
        let times = match self.vain.get() {
            (last, value, times) if ptr::eq(last, word) && value == seen => times + 1,
            _ => 1,
        };
        self.vain.set((word, seen, times));
        times > LOOKS
    }

    /// A waiter of a lock of one flag pauses until the flag is clear.
    #[inline(always)]
    fn pause(&self) {
        if FLAG {
            // SAFETY: the word of the lock that this thread was made for, which is static.
            let word = unsafe { &*self.lock };
            spin(|| (word.load(Ordering::Relaxed) == 0).then_some(()));
        }
    }
}

impl Platform for Threads {
    type Word = Word;
    type Address = AtomicUsize;
    type Events = NoEvents;

    #[inline(always)]
    fn events(&self) -> &NoEvents {
        &NoEvents
    }

    #[inline(always)]
    fn tuning(&self) -> &Tuning {
        &TUNING
    }

    #[inline(always)]
    fn cpu(&self) -> Option<CpuId> {
        CpuId::new(self.cpu)
    }

    #[inline(always)]
    fn node(&self, id: NodeId) -> &Node<Word> {
        // SAFETY: only numbers of this program's threads are asked for, and each has its nodes.
        // A bounds check would bring a panic, and with it half of the core library, into the IR.
        unsafe { NODE.get_unchecked(Self::place(id)) }
    }

    #[inline(always)]
    fn wait_until(&self, word: &Word, until: Until, budget: Budget, order: Ordering) -> u32 {
        if budget == Budget::Unbounded {
            return spin(|| {
                let seen = word.load(order);
                until.met_by(seen).then_some(seen)
            });
        }
        let seen = word.load(order);
        if until.met_by(seen) || !self.looked_in_vain(word, seen) {
            return seen;
        }
        spin(|| {
            let now = word.load(order);
            (now != seen).then_some(now)
        })
    }

    #[inline(always)]
    fn relax(&self, _: u32) {
        self.pause();
    }

    #[inline(always)]
    fn pause_ns(&self) -> u32 {
        0
    }

    #[inline(always)]
    fn ordering(&self, site: Site, order: Ordering) -> Ordering {
        match WEAK {
            Some((weak, to)) if weak as u8 == site as u8 => to,
            _ => order,
        }
    }

    #[inline(always)]
    fn halt(&self, me: NodeId) {
        self.vain.set((ptr::null(), 0, 0));
        let kick = &self.node(me).kick;
        // ORDERING: Acquire pairs with the Release of `kick` (PLATFORM-4).
        spin(|| kick.compare_exchange(KICKED, NOT_KICKED, Ordering::Acquire).ok());
    }

    #[inline(always)]
    fn kick(&self, node: NodeId) {
        // ORDERING: Release pairs with the Acquire of `halt` (PLATFORM-4).
        self.node(node).kick.swap(KICKED, Ordering::Release);
    }

    #[inline(always)]
    fn runs_on(&self) -> Option<u32> {
        Some(self.cpu % 2)
    }

    #[inline(always)]
    fn is_preempted(&self, _: CpuId) -> bool {
        // Asked only where the tuning heeds it.
        true
    }

    /// The threads are on the places in turn.
    #[inline(always)]
    fn place(&self) -> u32 {
        self.cpu % PLACES
    }

    /// The places are in a row.
    #[inline(always)]
    fn distance(&self, from: u32, to: u32) -> u32 {
        from.abs_diff(to)
    }

    /// The clock stands still.
    #[inline(always)]
    fn now_ns(&self) -> u64 {
        1
    }

    #[inline(always)]
    fn hash(&self) -> &[Bucket<Word, AtomicUsize>] {
        &HALTED
    }
}

/// There is no heavy barrier: GenMC has no interrupt that passes a fence in another thread.
impl SleepPlatform for Threads {
    #[inline(always)]
    fn hints(&self) -> &[Word] {
        &HINTS
    }

    #[inline(always)]
    fn buckets(&self) -> &[SleepBucket<Word>] {
        &SLEEPERS
    }

    #[inline(always)]
    fn sleeper(&self, id: NodeId) -> &Sleeper<Word, AtomicUsize> {
        // SAFETY: as in `node`.
        unsafe { SLEEPER.get_unchecked(Self::place(id)) }
    }

    #[inline(always)]
    fn token(&self) -> u32 {
        self.cpu + 1
    }

    #[inline(always)]
    fn asymmetric(&self) -> bool {
        false
    }

    #[inline(always)]
    fn light_barrier(&self, _: Ordering) {}

    #[inline(always)]
    fn heavy_barrier(&self, order: Ordering) {
        self.fence(order);
    }

    #[inline(always)]
    fn halt_until(&self, me: NodeId, _: u64) {
        // No time passes until a deadline of the lock's own, so nothing but a kick ends the halt.
        self.halt(me);
    }

    #[inline(always)]
    fn wait_briefly(&self, word: &Word, until: Until, _: u32) -> bool {
        self.wait_until(word, until, Budget::Unbounded, Ordering::Relaxed);
        true
    }

    #[inline(always)]
    fn timed_backoff(&self) {}
}
