//! Time: the time stamp counter, measured once against the timer of the APIC.
//!
//! QEMU and KVM let that timer run at 1 GHz, unless the leaf 0x40000010 of CPUID says otherwise
//! (KVM, when asked to); the same leaf then tells the counter's frequency.

use core::arch::x86_64::__cpuid;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use super::apic;
use super::instruction::time_stamp;

/// Nanoseconds a tick, times 2^32.
static SCALE: AtomicU64 = AtomicU64::new(1 << 32);
/// The count at the start.
static START: AtomicU64 = AtomicU64::new(0);

/// Ticks of the APIC's timer in a nanosecond times 1000: 1000 unless the hypervisor says otherwise.
fn timer_mhz(hypervisor: u32) -> u64 {
    if hypervisor >= 0x4000_0010 {
        let bus_khz = u64::from(__cpuid(0x4000_0010).ebx);
        if bus_khz >= 1000 {
            return bus_khz / 1000;
        }
    }
    1000
}

/// Writes down the moment of the start.
pub fn begin() {
    START.store(time_stamp(), Relaxed);
}

/// The timer and the counter at one moment: of some tries the one in which least time went by between the
/// two, for the host may take the CPU away there. A pair torn apart would make every time wrong for good.
fn moment() -> (u32, u64) {
    const TRIES: u32 = 16;
    let (mut best, mut shortest) = ((0, 0), u64::MAX);
    for _ in 0..TRIES {
        let before = time_stamp();
        let left = apic::timer_left();
        let took = time_stamp().wrapping_sub(before);
        if took < shortest {
            (best, shortest) = ((left, before.wrapping_add(took / 2)), took);
        }
    }
    best
}

/// Measures the counter. `hypervisor` is the last leaf of the hypervisor's CPUID, or 0.
pub fn calibrate(hypervisor: u32) {
    /// 2 ms.
    const TICKS: u64 = 2_000_000;
    apic::timer_once_unheard(u32::MAX);
    let (first, start) = moment();
    let (mut last, mut end) = (first, start);
    while u64::from(first.wrapping_sub(last)) < TICKS {
        core::hint::spin_loop();
        (last, end) = moment();
        if end.wrapping_sub(start) > 1 << 36 {
            // A timer that stands still: the counter is taken for one of 1 GHz.
            return;
        }
    }
    apic::timer_once_unheard(0);
    let ns = u64::from(first.wrapping_sub(last)) * 1000 / timer_mhz(hypervisor);
    let ticks = end.wrapping_sub(start).max(1);
    SCALE.store(((u128::from(ns) << 32) / u128::from(ticks)) as u64, Relaxed);
}

/// Nanoseconds since the start.
#[inline]
#[must_use]
pub fn now_ns() -> u64 {
    let ticks = time_stamp().wrapping_sub(START.load(Relaxed));
    ((u128::from(ticks) * u128::from(SCALE.load(Relaxed))) >> 32) as u64
}

/// Waits.
pub fn pause(ns: u64) {
    let end = now_ns() + ns;
    while now_ns() < end {
        core::hint::spin_loop();
    }
}

/// Frequency of the counter, in kHz.
#[must_use]
pub fn counter_khz() -> u64 {
    (1_000_000 << 32) / SCALE.load(Relaxed).max(1)
}
