//! Threads as CPUs: what the locks need from the operating system.
//!
//! A thread is a CPU: its number comes from a dense table ([`cpu`]) and stays with it for life, so that a
//! waiter that migrates keeps its node. A signal handler is an interrupt ([`interrupt`]). Locks are slow when a
//! thread that matters is not running: a holder may ask not to be preempted ([`holder`]), and a waiter may
//! learn which thread is not running ([`run_status`]). [`topology`] tells where a thread runs, [`urgency`]
//! whether it may be passed over, and [`cpu_quota`] whether a quota leaves less CPU time than CPUs.

pub mod clock;
pub mod cpu;
pub mod cpu_quota;
pub mod holder;
pub mod interrupt;
mod nodes;
mod pause;
pub(crate) mod process;
pub(crate) mod quota;
pub(crate) mod sleep;
pub mod topology;

// The one place that chooses between the two systems. Both have the same items, and nothing else asks which it is.
cfg_select! {
    all(
        target_os = "linux",
        target_env = "gnu",
        target_pointer_width = "64",
        any(
            target_arch = "x86_64",
            target_arch = "aarch64",
            target_arch = "powerpc64",
            target_arch = "riscv64"
        ),
        not(feature = "portable")
    ) => {
        #[path = "linux/mod.rs"]
        pub(crate) mod system;
    }
    _ => {
        #[path = "portable/mod.rs"]
        pub(crate) mod system;
    }
}

pub use system::public::*;

use core::marker::PhantomData;
use core::sync::atomic::{AtomicU32, AtomicUsize};

use qspin_core::events::{Events, NoEvents};
use qspin_core::node::{Node, NodeId};
use qspin_core::platform::{CpuId, Platform, StaticPlatform};
use qspin_core::tuning::Tuning;
use qspin_core::waiting::Bucket;

use self::clock::{Clock, Monotonic};
use self::holder::{Hint, Unhinted};

/// The threads of this process. They count events in `E`; `H` says whether holders ask not to be preempted, and
/// `C` is the clock. Zero-sized.
#[derive(Debug, Clone, Copy, Default)]
pub struct Threads<E, H = Unhinted, C = Monotonic>(PhantomData<(E, H, C)>);

impl<E, H, C> Threads<E, H, C> {
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

impl<E: StaticEvents, H: Hint, C: Clock> StaticPlatform for Threads<E, H, C> {
    const PLATFORM: Self = Self::NEW;
}

impl<E: StaticEvents, H: Hint, C: Clock> Platform for Threads<E, H, C> {
    type Word = AtomicU32;
    type Address = AtomicUsize;
    type Events = E;

    #[inline]
    fn events(&self) -> &E {
        E::EVENTS
    }

    #[inline]
    fn tuning(&self) -> &Tuning {
        crate::tuning::get()
    }

    #[inline]
    fn cpu(&self) -> Option<CpuId> {
        cpu::current()
    }

    #[inline]
    fn has_cpu_quota(&self) -> bool {
        cpu_quota::has_cpu_quota()
    }

    #[inline]
    fn pause_ns(&self) -> u32 {
        pause::ns()
    }

    #[inline]
    fn runs_on(&self) -> Option<u32> {
        system::location::runs_on()
    }

    #[inline]
    fn node(&self, id: NodeId) -> &Node<AtomicU32> {
        nodes::node(id)
    }

    #[inline]
    fn in_interrupt(&self) -> bool {
        interrupt::active()
    }

    #[inline]
    fn hash(&self) -> &[Bucket<AtomicU32, AtomicUsize>] {
        nodes::halted()
    }

    #[inline]
    fn halt(&self, me: NodeId) {
        system::halt(me);
    }

    #[inline]
    fn kick(&self, node: NodeId) {
        system::kick(node);
    }

    #[inline]
    fn now_ns(&self) -> u64 {
        C::now_ns()
    }

    #[inline]
    fn holder_enter(&self) {
        H::enter();
    }

    #[inline]
    fn holder_exit(&self) {
        H::exit();
    }

    #[cfg(feature = "profile")]
    #[inline]
    fn observer(&self) -> Option<&'static dyn qspin_core::observer::Observer> {
        crate::profile::observer()
    }

    #[inline]
    fn is_preempted(&self, cpu: CpuId) -> bool {
        system::run_status::known_not_to_run(cpu)
    }

    #[inline]
    fn place(&self) -> u32 {
        topology::place(cpu::current())
    }

    #[inline]
    fn distance(&self, from: u32, to: u32) -> u32 {
        topology::distance(from, to)
    }

    #[inline]
    fn is_urgent(&self) -> bool {
        interrupt::active()
            || interrupt::interrupts_a_wait(cpu::current())
            || system::urgency::has_real_time_policy()
    }

    #[inline]
    fn yield_cpu(&self) {
        system::yield_cpu();
    }
}
