//! From the first Rust to the first work.

use core::arch::x86_64::__cpuid;
use core::ffi::CStr;
use core::sync::atomic::Ordering::{Relaxed, Release};

use qspin_core::locks::Id;

use crate::hardware::apic;
use crate::hardware::cpu::{self, CPUS};
use crate::hardware::entry::{self, SPURIOUS, TIMER};
use crate::hardware::instruction::{enable_interrupts, out8};
use crate::hardware::{clock, exit, serial, tables};
use crate::kvm::{self, Features};
use crate::locks::{Lock, Place};
use crate::options::{self, Apic, Mode};
use crate::processors::Start;
use crate::{bench, platform, processors, suite, team, watch};

/// Bytes of a CPU's stack. Handlers run on it, too.
pub const STACK: usize = 64 << 10;

/// What a PVH loader begins its start information with.
const MAGIC: u32 = 0x336e_c578;
/// Bytes of a command line that are read.
const LINE: usize = 2048;

static LINE_COPY: cell::Once<[u8; LINE]> = cell::Once::new([0; LINE]);

mod cell {
    use core::cell::UnsafeCell;

    /// Written once, on the first CPU while it is alone, and only read after that.
    pub(super) struct Once<T>(UnsafeCell<T>);

    // SAFETY: see above.
    unsafe impl<T: Sync> Sync for Once<T> {}

    impl<T> Once<T> {
        pub(super) const fn new(value: T) -> Self {
            Self(UnsafeCell::new(value))
        }
        /// # Safety
        /// On the first CPU, while it is alone.
        pub(super) unsafe fn fill(&self, fill: impl FnOnce(&mut T)) -> &T {
            // SAFETY: the caller's promise.
            unsafe { fill(&mut *self.0.get()) };
            // SAFETY: there are no more writers.
            unsafe { &*self.0.get() }
        }
    }
}

/// What the loader was told to tell.
///
/// # Safety
/// As [`first`].
unsafe fn command_line(info: usize) -> &'static str {
    // SAFETY: the caller's promise: 32 bits of magic at its start, the line's address 24 bytes on. It
    // lies where others may want to write, and is copied first.
    let line = unsafe {
        if *(info as *const u32) != MAGIC {
            return "";
        }
        let line = *((info + 24) as *const u64) as *const u8;
        LINE_COPY.fill(|copy| {
            for (index, byte) in copy.iter_mut().take(LINE - 1).enumerate() {
                if line.is_null() || line.add(index).read() == 0 {
                    break;
                }
                *byte = line.add(index).read();
            }
        })
    };
    CStr::from_bytes_until_nul(line).ok().and_then(|line| line.to_str().ok()).unwrap_or("")
}

/// The last leaf of the hypervisor's CPUID, and what KVM offers if it is KVM.
fn hypervisor() -> (u32, Option<Features>) {
    if __cpuid(1).ecx & 1 << 31 == 0 {
        return (0, None);
    }
    let said = __cpuid(kvm::FIRST_LEAF);
    let features = kvm::is_kvm(said.ebx, said.ecx, said.edx).then(|| {
        let said = __cpuid(kvm::FIRST_LEAF + 1);
        Features::of(said.eax, said.edx)
    });
    (said.eax, features)
}

fn is_amd() -> bool {
    matches!(&__cpuid(0).ebx.to_le_bytes(), b"Auth" | b"Hygo")
}

/// The first CPU.
///
/// # Safety
/// Once, with the address of the PVH start information.
pub unsafe fn first(info: usize, start: Start) -> ! {
    clock::begin();
    serial::begin();
    // SAFETY: the caller's promise.
    let line = unsafe { command_line(info) };
    let options =
        options::parse(line).unwrap_or_else(|unknown| serial::refuse("not understood", unknown.0));
    let (leaf, features) = hypervisor();
    // SAFETY: this CPU is alone; every number is given out once.
    unsafe {
        // The old interrupt controllers say nothing any more.
        out8(0x21, 0xff);
        out8(0xa1, 0xff);
        tables::write_entries();
        platform::configure(&options, features.unwrap_or_default(), is_amd());
        cpu::adopt(0);
    }
    if options.apic == Apic::X2 && !apic::has_x2() {
        serial::refuse("this CPU has no x2APIC", "apic=x2");
    }
    apic::choose(options.apic != Apic::X && apic::has_x2());
    // SAFETY: the number is this CPU's.
    unsafe { come_up(0) };
    clock::calibrate(leaf);
    CPUS[0].online.store(1, Release);
    entry::set_handler(TIMER, watch::tick);
    entry::set_nmi_handler(suite::on_nmi);
    enable_interrupts();
    watch::begin();
    processors::start_others(options.vcpus, start);
    let settings = platform::settings();
    let first_lock = first_acquisition();
    let kick = match () {
        () if settings.hypercall => "hypercall",
        () if settings.nmi_only => "nmi",
        () => "vector",
    };
    serial::line("ready", |line| {
        line.text("version", env!("CARGO_PKG_VERSION"))
            .number("vcpus", cpu::online().count() as u64)
            .text("apic", if apic::is_x2() { "x2apic" } else { "xapic" })
            .text("kick", kick)
            .flag("kvm", features.is_some())
            .flag("steal_time", settings.features.steal_time)
            .flag("sched_yield", settings.features.sched_yield)
            .flag("realtime", settings.features.realtime)
            .number("counter_khz", clock::counter_khz())
            .number("shared_page", &raw const platform::SHARED_PAGE as u64)
            .number("first_lock_us", first_lock / 1000)
            .end();
    });
    let failed = match options.mode {
        Mode::Probe => {
            bench::say_pace();
            platform::try_hypercall();
            0
        }
        Mode::Suite => suite::run(&options, start),
        Mode::Bench => bench::run(&options),
    };
    watch::end();
    let ok = failed == 0;
    serial::line("end", |line| {
        let ms = clock::now_ns() / 1_000_000;
        line.flag("ok", ok).number("failed", failed).number("ms", ms).end();
    });
    exit::exit(if ok { exit::WELL } else { exit::FAILED })
}

/// When the first lock was taken and released.
fn first_acquisition() -> u64 {
    static PLACE: Place = Place::EMPTY;
    // SAFETY: the place is known here only; it is held where it is released.
    unsafe {
        let lock = Lock::make(Id::Native as u32, &PLACE);
        lock.acquire();
        lock.release();
    }
    clock::now_ns()
}

/// Every other CPU, whenever it starts.
///
/// # Safety
/// `number` is this CPU's.
pub unsafe fn other(number: u32) -> ! {
    // SAFETY: the caller's promise.
    unsafe {
        cpu::adopt(number);
        come_up(number);
    }
    enable_interrupts();
    team::follow(cpu::this())
}

/// What each CPU does for itself.
///
/// # Safety
/// `number` is this CPU's, and adopted.
unsafe fn come_up(number: u32) {
    // SAFETY: the caller's promise.
    unsafe { tables::load(number) };
    apic::begin(SPURIOUS);
    cpu::this().apic_id.store(apic::id(), Relaxed);
    platform::begin();
}
