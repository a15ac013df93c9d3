//! Threads as CPUs: what the locks need, from Linux.
//!
//! A thread is a CPU: its number comes from a dense table ([`cpu`]) and stays with it for life,
//! so that a node is never taken from a waiter that migrates. A signal handler is an interrupt
//! ([`interrupt`]).

pub mod cpu;
pub mod interrupt;
pub mod topology;

use core::marker::PhantomData;
use core::sync::atomic::{AtomicU32, Ordering, fence};

use qspin_core::events::Events;
use qspin_core::node::{Node, NodeId};
use qspin_core::platform::{AtomicWord, Budget, CpuId, Platform, StaticPlatform, Until};
use qspin_core::tuning::Tuning;

use crate::events::{Counted, NoEvents};

/// Every node a tail can name: 4 MiB of address space, of which only the pages of threads
/// that have queued are ever touched.
static NODES: [Node<AtomicU32>; 1 << 16] = [const { Node::<AtomicU32>::UNUSED }; 1 << 16];

/// The threads of this process, counting events in `E`, tuned by `T`. Zero-sized.
#[derive(Debug, Clone, Copy, Default)]
pub struct Threads<E, T = Defaults>(PhantomData<(E, T)>);

impl<E, T> Threads<E, T> {
    /// The platform.
    pub const NEW: Self = Self(PhantomData);
}

/// Event counters that are one value for the whole process.
pub trait StaticEvents: Events + 'static {
    /// The value.
    const EVENTS: &'static Self;
}

impl StaticEvents for NoEvents {
    const EVENTS: &'static Self = &NoEvents;
}

impl StaticEvents for Counted {
    const EVENTS: &'static Self = &Counted;
}

/// Tunables that are known at compile time.
pub trait StaticTuning: 'static {
    /// The tunables.
    const TUNING: &'static Tuning;
}

/// Every tunable at its default.
#[derive(Debug, Clone, Copy, Default)]
pub struct Defaults;

impl StaticTuning for Defaults {
    const TUNING: &'static Tuning = &Tuning::DEFAULT;
}

impl<E: StaticEvents, T: StaticTuning> StaticPlatform for Threads<E, T> {
    const PLATFORM: Self = Self::NEW;
}

impl<E: StaticEvents, T: StaticTuning> Platform for Threads<E, T> {
    type Word = AtomicU32;
    type Events = E;

    #[inline]
    fn events(&self) -> &E {
        E::EVENTS
    }

    #[inline]
    fn tuning(&self) -> &Tuning {
        T::TUNING
    }

    #[inline]
    fn cpu(&self) -> Option<CpuId> {
        cpu::current()
    }

    #[inline]
    fn node(&self, id: NodeId) -> &Node<AtomicU32> {
        // The table is as long as the number's type: no bounds check is left.
        &NODES[usize::from(id.number())]
    }

    #[inline]
    fn wait_until(&self, word: &AtomicU32, until: Until, budget: Budget, order: Ordering) -> u32 {
        let mut looks = 0;
        loop {
            let seen = AtomicWord::load(word, order);
            if until.met_by(seen) {
                return seen;
            }
            if let Budget::Looks(limit) = budget {
                looks += 1;
                if looks >= limit {
                    return seen;
                }
            }
            core::hint::spin_loop();
        }
    }

    #[inline]
    fn relax(&self, pauses: u32) {
        for _ in 0..pauses {
            core::hint::spin_loop();
        }
    }

    #[inline]
    fn fence(&self, order: Ordering) {
        if order != Ordering::Relaxed {
            fence(order);
        }
    }

    #[inline]
    fn in_interrupt(&self) -> bool {
        interrupt::active()
    }

    #[inline]
    fn yield_cpu(&self) {
        // SAFETY: a system call without arguments that touches no memory of ours.
        unsafe { libc::sched_yield() };
    }
}
