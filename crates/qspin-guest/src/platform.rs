//! The platform of the locks: virtual CPUs, without an operating system.
//!
//! [`qspin_core::platform`] has the contract; `examples/os` of the repository shows the same in a
//! hundred lines.
//!
//! # Invariants
//! * **GUEST-1** (PLATFORM-2) A CPU is the number that its own record holds; its levels are what interrupts
//!   it: handlers and NMIs, which end before what they have interrupted goes on.
//! * **GUEST-2** (PLATFORM-4) A halt is what [`crate::kick`] says. In an NMI no CPU halts: no other NMI
//!   could end it.
//! * **GUEST-3** The settings are written once, on the first CPU while it is alone.

use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize};

use qspin_core::events::{Event, Events, NoEvents};
use qspin_core::node::{Node, NodeId};
use qspin_core::platform::{CpuId, Platform, StaticPlatform};
use qspin_core::tuning::Tuning;
use qspin_core::waiting::Bucket;

use crate::hardware::apic::{self, Message};
use crate::hardware::clock;
use crate::hardware::cpu::{self, CPUS, MAX};
use crate::hardware::entry::{KICK, TIMER};
use crate::hardware::instruction::{halt_while, interrupts_on, out8, write_msr};
use crate::kick::{self, Means};
use crate::kvm::{self, Features, StealTime};
use crate::options::{BELL_PORT, Kick, Options};
use crate::preempt::Plan;
use crate::shared_page::SharedPage;

/// Four nodes a CPU, and numbers without a CPU before them; a power of two.
const NODES: usize = ((MAX + 1) * 4).next_power_of_two();

static TABLE: [Node<AtomicU32>; NODES] = [const { Node::<AtomicU32>::UNUSED }; NODES];

const BUCKETS: usize = NODES / Bucket::<(), ()>::ENTRIES;
static HALTED: [Bucket<AtomicU32, AtomicUsize>; BUCKETS] = [const { Bucket::EMPTY }; BUCKETS];

/// Where KVM says which CPU does not run, a page for each; all zero where it does not say it.
static STEAL: [StealTime<AtomicU32>; MAX] = [const {
    StealTime { steal: [ZERO; 2], version: ZERO, flags: ZERO, preempted: ZERO, padding: [ZERO; 11] }
}; MAX];

/// What guest and host tell each other.
pub static SHARED_PAGE: SharedPage = SharedPage::EMPTY;

/// Rings for the host.
pub fn ring() {
    // SAFETY: a port; without a listener the write has no effect.
    unsafe { out8(BELL_PORT, 0) };
}

/// How long a CPU halts that yields: as long as it takes a host to run another.
const TIMED_BACKOFF_NS: u32 = 20_000;

/// What was found out about the machine, and asked for.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// What KVM offers; nothing on other hypervisors.
    pub features: Features,
    /// Kicks are hypercalls.
    pub hypercall: bool,
    /// Kicks are NMIs only.
    pub nmi_only: bool,
    /// Hypercalls are `vmmcall`, not `vmcall`.
    pub amd: bool,
    /// Places for the NUMA-aware locks.
    pub places: u32,
    /// At which acquisitions the host is asked to stop a CPU.
    pub preempt: Option<Plan>,
    /// The tunables.
    pub tuning: Tuning,
}

struct Global(UnsafeCell<Settings>);

// SAFETY: GUEST-3.
unsafe impl Sync for Global {}

static SETTINGS: Global = Global(UnsafeCell::new(Settings {
    features: Features { steal_time: false, unhalt: false, sched_yield: false, realtime: false },
    hypercall: false,
    nmi_only: false,
    amd: false,
    places: 1,
    preempt: None,
    tuning: Tuning::DEFAULT,
}));

/// The settings in force.
#[inline]
pub fn settings() -> &'static Settings {
    // SAFETY: GUEST-3.
    unsafe { &*SETTINGS.0.get() }
}

/// Puts the settings in force.
///
/// # Safety
/// GUEST-3.
pub unsafe fn configure(options: &Options, features: Features, amd: bool) {
    // A choice of how to kick is one against hypercalls: where one does not return, none does.
    let hypercalls = options.kick == Kick::Auto;
    let features = Features {
        unhalt: features.unhalt && hypercalls,
        sched_yield: features.sched_yield && hypercalls,
        ..features
    };
    let settings = Settings {
        features,
        hypercall: features.unhalt,
        nmi_only: options.kick == Kick::Nmi,
        amd,
        places: options.places,
        preempt: options.preempt,
        tuning: options.tuning,
    };
    // SAFETY: GUEST-3.
    unsafe { *SETTINGS.0.get() = settings };
}

/// Tells the host how this CPU is called, and KVM where to write whether it runs.
pub fn begin() {
    let me = cpu::this();
    SHARED_PAGE.seats[me.number() as usize].apic_id.store(me.apic_id.load(Relaxed) + 1, Relaxed);
    if settings().features.steal_time {
        let page = &raw const STEAL[cpu::this().number() as usize] as u64;
        // SAFETY: the feature says that the register is there; the page is KVM's from here on.
        unsafe { write_msr(kvm::STEAL_MSR, page | kvm::STEAL_ENABLED) };
    }
}

fn hypercall(number: u64, one: u64, two: u64) {
    // SAFETY: KVM reads the registers, and writes `rax`. (`rbx` is the compiler's own.)
    unsafe {
        if settings().amd {
            core::arch::asm!("xchg rbx, {one}", "vmmcall", "xchg rbx, {one}",
                one = inout(reg) one => _, inout("rax") number => _, in("rcx") two);
        } else {
            core::arch::asm!("xchg rbx, {one}", "vmcall", "xchg rbx, {one}",
                one = inout(reg) one => _, inout("rax") number => _, in("rcx") two);
        }
    }
}

/// Kicks this CPU by the hypercall, if that is how kicks are made: does it return? A KVM that executes its
/// guest instruction by instruction offers hypercalls, and never gets past one.
pub fn try_hypercall() {
    if settings().hypercall {
        hypercall(kvm::KICK_CPU, 0, cpu::this().apic_id.load(Relaxed).into());
    }
}

/// Templates: every use makes a new word.
#[allow(clippy::declare_interior_mutable_const)]
const ZERO: AtomicU32 = AtomicU32::new(0);
#[allow(clippy::declare_interior_mutable_const)]
const ZERO_64: AtomicU64 = AtomicU64::new(0);

/// What is counted of the halts, kicks and yields of a CPU, and of the CPUs that it has seen not running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// Halts with interrupts on.
    HaltsOn,
    /// Halts with interrupts off.
    HaltsOff,
    /// Halts that were none, since an NMI handler waited.
    HaltsInNmi,
    /// Kicks of a CPU that does not halt.
    KicksUnsent,
    /// Kicks by an interrupt.
    KicksVector,
    /// Kicks by an NMI.
    KicksNmi,
    /// Kicks by the hypercall.
    KicksHypercall,
    /// Yields by a short halt.
    Yields,
    /// Yields by the hypercall.
    YieldsHypercall,
    /// CPUs that do not run, as KVM says.
    SeenPreempted,
    /// CPUs that do not run, as the host says by the shared page.
    SeenStopped,
}

impl Count {
    /// All of them in their order, with their names in rows.
    pub const ALL: [(Self, &str); 11] = [
        (Self::HaltsOn, "halts_on"),
        (Self::HaltsOff, "halts_off"),
        (Self::HaltsInNmi, "halts_in_nmi"),
        (Self::KicksUnsent, "kicks_unsent"),
        (Self::KicksVector, "kicks_vector"),
        (Self::KicksNmi, "kicks_nmi"),
        (Self::KicksHypercall, "kicks_hypercall"),
        (Self::Yields, "yields"),
        (Self::YieldsHypercall, "yields_hypercall"),
        (Self::SeenPreempted, "seen_preempted"),
        (Self::SeenStopped, "seen_stopped"),
    ];
}

/// What a CPU has counted so far: on the platform, and of the events of the locks.
#[repr(C, align(128))]
struct Counts {
    platform: [AtomicU64; Count::ALL.len()],
    events: [AtomicU64; Event::ALL.len()],
}

static COUNTS: [Counts; MAX] = [const {
    Counts { platform: [ZERO_64; Count::ALL.len()], events: [ZERO_64; Event::ALL.len()] }
}; MAX];

/// A count of all CPUs together.
#[must_use]
pub fn sum(count: Count) -> u64 {
    COUNTS.iter().map(|counts| counts.platform[count as usize].load(Relaxed)).sum()
}

fn count(count: Count) {
    mine().platform[count as usize].fetch_add(1, Relaxed);
}

/// Nanoseconds that the host has kept from all CPUs together; 0 where it does not say.
pub fn stolen() -> u64 {
    STEAL.iter().map(|page| page.stolen().unwrap_or(0)).sum()
}

/// How often `event` was counted.
#[must_use]
pub fn events(event: Event) -> u64 {
    COUNTS.iter().map(|counts| counts.events[event as usize].load(Relaxed)).sum()
}

fn mine() -> &'static Counts {
    &COUNTS[cpu::this().number() as usize]
}

/// Event counters that are one value for the whole guest.
pub trait GuestEvents: Events + 'static {
    /// The value.
    const EVENTS: &'static Self;
}

impl GuestEvents for NoEvents {
    const EVENTS: &'static Self = &NoEvents;
}

/// Counts events, CPU by CPU.
#[derive(Debug, Clone, Copy)]
pub struct Counted;

impl Events for Counted {
    const ENABLED: bool = true;
    #[inline]
    fn add(&self, event: Event, amount: u64) {
        // A handler may come between: read-modify-write.
        mine().events[event as usize].fetch_add(amount, Relaxed);
    }
}

impl GuestEvents for Counted {
    const EVENTS: &'static Self = &Counted;
}

/// The virtual CPUs of this guest. Zero-sized.
#[derive(Debug, Clone, Copy, Default)]
pub struct Guest<E = NoEvents>(PhantomData<E>);

impl<E> Guest<E> {
    /// The platform.
    pub const NEW: Self = Self(PhantomData);
}

impl<E: GuestEvents> StaticPlatform for Guest<E> {
    const PLATFORM: Self = Self::NEW;
}

/// The node of this number.
#[inline]
#[must_use]
pub fn node(id: NodeId) -> &'static Node<AtomicU32> {
    &TABLE[id.number() as usize % NODES]
}

impl<E: GuestEvents> Platform for Guest<E> {
    type Word = AtomicU32;
    type Address = AtomicUsize;
    type Events = E;

    #[inline]
    fn events(&self) -> &E {
        E::EVENTS
    }

    #[inline]
    fn tuning(&self) -> &Tuning {
        &settings().tuning
    }

    #[inline]
    fn cpu(&self) -> Option<CpuId> {
        CpuId::new(cpu::this().number())
    }

    #[inline]
    fn node(&self, id: NodeId) -> &Node<AtomicU32> {
        node(id)
    }

    /// Also: never passed over by the NUMA-aware order, whose default asks this.
    #[inline]
    fn in_interrupt(&self) -> bool {
        cpu::this().level() > 0
    }

    fn halt(&self, me: NodeId) {
        if cpu::this().nmi.load(Relaxed) != 0 {
            count(Count::HaltsInNmi);
            return self.relax(64);
        }
        let word = &node(me).kick;
        let on = interrupts_on();
        if let Some(state) = kick::begin(word, on && !settings().nmi_only) {
            count(if on { Count::HaltsOn } else { Count::HaltsOff });
            // SAFETY: in ring 0; the word is static.
            unsafe { halt_while(word.as_ptr(), state) };
        }
        kick::end(word);
    }

    fn kick(&self, to: NodeId) {
        let name = || CPUS[to.cpu().number() as usize % MAX].apic_id.load(Relaxed);
        count(match kick::kick(&node(to).kick, settings().hypercall) {
            Means::Nothing => Count::KicksUnsent,
            Means::Vector => {
                apic::send(name(), Message::Vector(KICK));
                Count::KicksVector
            }
            Means::Nmi => {
                apic::send(name(), Message::Nmi);
                Count::KicksNmi
            }
            Means::Hypercall => {
                hypercall(kvm::KICK_CPU, 0, name().into());
                Count::KicksHypercall
            }
        });
    }

    #[inline]
    fn is_preempted(&self, cpu: CpuId) -> bool {
        let cpu = cpu.number() as usize % MAX;
        let preempted = STEAL[cpu].preempted.load(Relaxed) & kvm::PREEMPTED != 0;
        let stopped = || SHARED_PAGE.seats[cpu].stopped.load(Relaxed) != 0;
        if !preempted && !stopped() {
            return false;
        }
        count(if preempted { Count::SeenPreempted } else { Count::SeenStopped });
        true
    }

    /// Halts for a moment. No hypervisor has a call that gives the CPU to any guest that can use it, and pause instructions do not
    /// leave the CPU: a waiter that was woken would stand in line behind this very one until its slice ends.
    fn yield_cpu(&self) {
        let me = cpu::this();
        if me.level() > 0 || !interrupts_on() {
            return self.relax(1);
        }
        count(Count::Yields);
        me.dozes.store(1, Relaxed);
        apic::timer_once(TIMER, TIMED_BACKOFF_NS);
        // SAFETY: in ring 0; the word is static. The timer changes it, or any interrupt ends this.
        unsafe { halt_while(me.dozes.as_ptr(), 1) };
    }

    #[inline]
    fn yield_to(&self, holder: CpuId) {
        if settings().features.sched_yield {
            let name = CPUS[holder.number() as usize % MAX].apic_id.load(Relaxed);
            hypercall(kvm::SCHED_YIELD, name.into(), 0);
            count(Count::YieldsHypercall);
        } else {
            self.yield_cpu();
        }
    }

    #[inline]
    fn holder_enter(&self) {
        SHARED_PAGE.keep(cpu::this().number());
    }

    #[inline]
    fn holder_exit(&self) {
        SHARED_PAGE.give_up(cpu::this().number(), ring);
    }

    #[inline]
    fn place(&self) -> u32 {
        cpu::this().number() % settings().places
    }

    #[inline]
    fn now_ns(&self) -> u64 {
        clock::now_ns()
    }

    #[inline]
    fn hash(&self) -> &[Bucket<AtomicU32, AtomicUsize>] {
        &HALTED
    }
}
