//! A platform for a kernel, in a hundred lines: copy it, and give it your machine.
//!
//! `docs/porting.md` says what each method must guarantee and what happens without it; the crate
//! `qspin-guest` is the same for a real (virtual) machine, with its interrupts, NMIs and hypercalls.

#![no_std]

use core::marker::PhantomData;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering, fence};

use qspin_core::events::NoEvents;
use qspin_core::node::{Node, NodeId};
use qspin_core::platform::{Budget, CpuId, Platform, StaticPlatform, Until};
use qspin_core::raw::Raw;
use qspin_core::waiting::Bucket;

/// A mutex of your kernel: the paravirt lock, four bytes. With [`qspin_core::locks::queued::NativeLock`] it spins.
pub type Mutex<M, T> =
    lock_api::Mutex<Raw<qspin_core::locks::queued::ParavirtLock<AtomicU32>, Kernel<M>>, T>;

/// What your kernel already has.
pub trait Machine: 'static {
    /// The number of this CPU, dense from 0. It must not change while a lock is waited for: a kernel that
    /// preempts switches preemption off around an acquisition (and, as ever, while a lock is held).
    fn cpu() -> u32;
    /// In an interrupt or an NMI.
    fn in_interrupt() -> bool;
    /// May this context halt? Not in an NMI, which nothing could wake.
    fn may_halt() -> bool;
    /// Halts while the word is `value`, until any interrupt. *Nothing may be lost between the look and the
    /// halt*: on x86, `sti; hlt` in one go, or a window that interrupt entries step over.
    fn halt_while(word: &AtomicU32, value: u32);
    /// Makes that CPU look at its word again: an interrupt, an NMI where its interrupts may be off, or a
    /// hypercall. Called after the word was changed, which must be visible there first.
    fn wake(cpu: u32);
    /// A monotonic clock.
    fn now_ns() -> u64;
}

/// Most CPUs here; a tail can name 16 382.
pub const CPUS: usize = 64;
/// Four nodes a CPU (task, soft interrupt, interrupt, NMI), and the four numbers of no CPU; a power of two.
const NODES: usize = ((CPUS + 1) * 4).next_power_of_two();
static TABLE: [Node<AtomicU32>; NODES] = [const { Node::<AtomicU32>::UNUSED }; NODES];

/// The CPUs that are halted, by lock: at least as many entries as nodes, and a power of two of buckets.
const BUCKETS: usize = NODES / Bucket::<(), ()>::ENTRIES;
static HALTED: [Bucket<AtomicU32, AtomicUsize>; BUCKETS] = [const { Bucket::EMPTY }; BUCKETS];

/// The states of a node's word for kicks.
const NONE: u32 = 0;
const KICKED: u32 = 1;
const ASLEEP: u32 = 2;

/// Your kernel, as the locks see it. Zero-sized.
#[derive(Debug)]
pub struct Kernel<M>(PhantomData<fn() -> M>);

impl<M: Machine> StaticPlatform for Kernel<M> {
    const PLATFORM: Self = Self(PhantomData);
}

impl<M: Machine> Platform for Kernel<M> {
    type Word = AtomicU32;
    type Address = AtomicUsize;
    type Events = NoEvents;

    fn events(&self) -> &NoEvents {
        &NoEvents
    }

    fn cpu(&self) -> Option<CpuId> {
        // A CPU without a number still locks: without a node, exclusive but not fair.
        CpuId::new(M::cpu()).filter(|cpu| cpu.number() < CPUS as u32)
    }

    fn node(&self, id: NodeId) -> &Node<AtomicU32> {
        &TABLE[id.number() as usize % NODES]
    }

    fn wait_until(&self, word: &AtomicU32, until: Until, budget: Budget, order: Ordering) -> u32 {
        let mut looks = 0;
        loop {
            let seen = word.load(order);
            looks += 1;
            if until.met_by(seen) || matches!(budget, Budget::Polls(most) if looks >= most) {
                return seen;
            }
            core::hint::spin_loop();
        }
    }

    fn relax(&self, pauses: u32) {
        (0..pauses).for_each(|_| core::hint::spin_loop());
    }

    fn fence(&self, order: Ordering) {
        if order != Ordering::Relaxed {
            fence(order);
        }
    }

    fn in_interrupt(&self) -> bool {
        M::in_interrupt()
    }

    fn halt(&self, me: NodeId) {
        if !M::may_halt() {
            return self.relax(64);
        }
        let word = &self.node(me).kick;
        // C4: a kick that came first is found here, and consumed below.
        if word.compare_exchange(NONE, ASLEEP, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            M::halt_while(word, ASLEEP);
        }
        word.swap(NONE, Ordering::Acquire);
    }

    fn kick(&self, node: NodeId) {
        // First the word, then the interrupt; only a CPU that halts is interrupted.
        if self.node(node).kick.swap(KICKED, Ordering::Release) == ASLEEP {
            M::wake(node.cpu().number());
        }
    }

    fn now_ns(&self) -> u64 {
        M::now_ns()
    }

    fn hash(&self) -> &[Bucket<AtomicU32, AtomicUsize>] {
        &HALTED
    }
}
