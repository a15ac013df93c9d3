//! The area that a thread and the kernel share: rseq.
//!
//! glibc registers one for every thread from version 2.35 on, at `__rseq_offset` from the thread
//! pointer. It says where, and on which CPU the thread runs; on newer kernels there is more in it.
//!
//! # Source
//! Linux, `include/uapi/linux/rseq.h` and `Documentation/userspace-api/rseq.rst`; glibc's manual,
//! "Restartable Sequences".
//!
//! # Invariants
//! * **RSEQ-1** The area of a thread lies in its thread control block: it is there as long as the
//!   thread, and no longer. In the block of a thread that runs it may be used by that thread.
//! * **RSEQ-2** Kernel and threads access its words whole; here they are atomics.

use core::ffi::CStr;
use core::mem::offset_of;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicBool, AtomicIsize, AtomicU8, AtomicU16, AtomicU32, AtomicU64};

use super::processor::{thread_pointer, word_of_thread};

/// `struct rseq` of the kernel.
#[repr(C)]
pub(crate) struct Area {
    cpu_id_start: AtomicU32,
    /// The CPU on which the thread runs, or ran last; [`Area::cpu`] reads it.
    cpu_id: AtomicU32,
    rseq_cs: AtomicU64,
    flags: AtomicU32,
    node_id: AtomicU32,
    mm_cid: AtomicU32,
    /// Since Linux 7.0.
    pub(crate) slice: Slice,
}

/// `struct rseq_slice_ctrl` of the kernel. Only this thread and the kernel, on its behalf, access
/// it: nothing here needs to be ordered for other CPUs.
#[repr(C)]
#[derive(Default)]
pub(crate) struct Slice {
    /// Set by the thread that wants its time slice extended; cleared by that thread, and by the kernel.
    pub(crate) request: AtomicU8,
    /// Set and cleared by the kernel, when it extends the slice and when that has ended.
    pub(crate) granted: AtomicU8,
    reserved: AtomicU16,
}

// The smallest area that was ever registered has 32 bytes.
const _: () = assert!(size_of::<Area>() == 32 && offset_of!(Area, slice) == 28);

/// `RSEQ_CS_FLAG_SLICE_EXT_AVAILABLE`, in `flags`; written by the kernel.
const SLICE_EXT_AVAILABLE: u32 = 1 << 4;

impl Area {
    /// The CPU on which the thread runs, or ran last; `None` before it is known.
    #[inline]
    pub(crate) fn cpu(&self) -> Option<u32> {
        // -1 before the kernel has written it, -2 after it refused to.
        let cpu = self.cpu_id.load(Relaxed);
        (cpu <= i32::MAX as u32).then_some(cpu)
    }

    /// Whether the kernel would extend a time slice of this thread.
    pub(crate) fn offers_slices(&self) -> bool {
        self.flags.load(Relaxed) & SLICE_EXT_AVAILABLE != 0
    }

    #[cfg(test)]
    pub(crate) fn on_cpu(cpu: u32) -> Self {
        Self {
            cpu_id_start: AtomicU32::new(cpu),
            cpu_id: AtomicU32::new(cpu),
            rseq_cs: AtomicU64::new(0),
            flags: AtomicU32::new(0),
            node_id: AtomicU32::new(0),
            mm_cid: AtomicU32::new(0),
            slice: Slice::default(),
        }
    }
}

/// `__rseq_offset`; 0 if there is no area. (On x86-64 the thread pointer points to itself there; on others it does
/// not, and an area just there would count as none.)
static OFFSET: AtomicIsize = AtomicIsize::new(0);

/// Asks the C library where the area is. By name, so that this links with a C library that has none.
pub(crate) fn find() {
    let symbol = |name: &CStr| {
        // SAFETY: a valid name; what it names is not touched here.
        unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
    };
    let size = symbol(c"__rseq_size").cast::<u32>();
    let offset = symbol(c"__rseq_offset").cast::<isize>();
    if size.is_null() || offset.is_null() {
        return;
    }
    // SAFETY: constants of the C library, of these types. The size is 0 if the kernel has refused
    // the area, or a tunable has.
    unsafe {
        if *size != 0 {
            OFFSET.store(*offset, Relaxed);
        }
    }
    // SAFETY: asks for a number. Before Linux 6.3 it is 0.
    let written = unsafe { libc::getauxval(AT_RSEQ_FEATURE_SIZE) } as usize;
    TELLS_NODE.store(written >= offset_of!(Area, mm_cid), Relaxed);
}

/// How much of the area the kernel writes: of `<linux/auxvec.h>`.
const AT_RSEQ_FEATURE_SIZE: libc::c_ulong = 27;

/// Whether the kernel writes the node into the area.
static TELLS_NODE: AtomicBool = AtomicBool::new(false);

/// The node on which this thread runs; `None` where the area does not tell.
pub(crate) fn node() -> Option<u32> {
    // SAFETY: this thread's own area, if it has one.
    let area = unsafe { mine().as_ref() }.filter(|_| TELLS_NODE.load(Relaxed))?;
    area.cpu().map(|_| area.node_id.load(Relaxed))
}

/// The area of this thread; null if there is none. It goes with the thread (RSEQ-1).
#[inline]
pub(crate) fn mine() -> *const Area {
    let offset = OFFSET.load(Relaxed);
    if offset == 0 {
        return core::ptr::null();
    }
    thread_pointer().wrapping_offset(offset).cast()
}

/// The CPU on which this thread runs; `None` if there is no area. As [`mine`] and [`Area::cpu`], in fewer
/// instructions: it is on the path of every lock.
#[inline]
pub(crate) fn cpu() -> Option<u32> {
    let offset = OFFSET.load(Relaxed);
    if offset == 0 {
        return None;
    }
    // SAFETY: RSEQ-1. Only the kernel on behalf of this thread writes it.
    let cpu = unsafe { word_of_thread::<{ offset_of!(Area, cpu_id) }>(offset) };
    Some(cpu)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_area_says_on_which_cpu_this_thread_runs() {
        find();
        let area = mine();
        if area.is_null() {
            println!("skipped: the C library has registered no rseq area");
            return;
        }
        // SAFETY: plain calls on a valid place; RSEQ-1.
        let (one, area) = unsafe {
            let mut all: libc::cpu_set_t = core::mem::zeroed();
            let size = size_of::<libc::cpu_set_t>();
            assert_eq!(libc::sched_getaffinity(0, size, &mut all), 0);
            let last = (0..libc::CPU_SETSIZE as usize).rfind(|cpu| libc::CPU_ISSET(*cpu, &all));
            let mut one: libc::cpu_set_t = core::mem::zeroed();
            libc::CPU_SET(last.unwrap(), &mut one);
            assert_eq!(libc::sched_setaffinity(0, size, &one), 0);
            (last.unwrap(), &*area)
        };
        assert_eq!(area.cpu(), Some(one as u32));
    }

    #[test]
    fn a_cpu_that_is_not_known_is_none() {
        assert_eq!(Area::on_cpu(-1i32 as u32).cpu(), None);
        assert_eq!(Area::on_cpu(-2i32 as u32).cpu(), None);
        assert_eq!(Area::on_cpu(0).cpu(), Some(0));
    }
}
