//! The micro benchmark behind the backoff patch: sections made of small units of work.
//!
//! A unit is a call that computes 12 and a copy of that many bytes between two buffers of 512
//! bytes, shared ones under the lock and ones on the stack outside. A length of L is L+1 units.

use std::cell::UnsafeCell;
use std::hint::black_box;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::bench::station::count;

use super::Work;

const BUFFER: usize = 512;

/// Lengths of the two sections, in units less one.
#[derive(Debug, Clone, Copy)]
pub struct KernelLockBench {
    /// Length of the critical section.
    pub critical: u32,
    /// Length of the non-critical section.
    pub non_critical: u32,
}

/// The shared buffers; the counter lies in the line that the copies write anyway.
#[repr(C)]
pub struct Buffers {
    counter: AtomicU64,
    to: UnsafeCell<[u8; BUFFER]>,
    from: UnsafeCell<[u8; BUFFER]>,
}

// SAFETY: the buffers are touched under the measured lock only, and nothing but bytes is in them.
unsafe impl Sync for Buffers {}

/// A sum over the two preceding values, which begin at 11 and 12; never inlined, so that its cost
/// stays a call.
#[inline(never)]
fn fibonacci(i: u32) -> usize {
    let i = black_box(i);
    if i > 2 {
        return fibonacci(i - 1) + fibonacci(i - 2);
    }
    10 + i as usize
}

/// One unit of work.
///
/// # Safety
///
/// `to` and `from` are valid for [`BUFFER`] bytes each and no other thread writes them now.
#[inline(always)]
unsafe fn unit(to: *mut u8, from: *const u8) {
    let length = fibonacci(2);
    // SAFETY: 12 bytes fit into buffers that the caller may write and that do not overlap.
    unsafe { ptr::copy_nonoverlapping(from, to, length) };
}

impl Work for KernelLockBench {
    type Shared = Buffers;
    type Local = ();

    fn shared(&self) -> Buffers {
        Buffers {
            counter: AtomicU64::new(0),
            to: UnsafeCell::new([0; BUFFER]),
            from: UnsafeCell::new([0; BUFFER]),
        }
    }

    fn local(&self, _: usize, _: usize) {}

    #[inline(always)]
    fn critical(&self, shared: &Buffers, (): &mut ()) {
        count(&shared.counter);
        for _ in 0..=self.critical {
            // SAFETY: the lock is held, so the shared buffers are this thread's.
            unsafe { unit(shared.to.get().cast(), shared.from.get().cast()) };
        }
    }

    #[inline(always)]
    fn outside(&self, (): &mut ()) {
        let (mut to, from) = ([0_u8; 16], [0_u8; 16]);
        for _ in 0..=self.non_critical {
            // SAFETY: both lie on this stack, and 16 bytes hold the 12 that are copied.
            unsafe { unit(black_box(to.as_mut_ptr()), black_box(from.as_ptr())) };
        }
    }

    fn counted(&self, shared: &Buffers) -> u64 {
        shared.counter.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_copies_twelve_bytes() {
        assert_eq!(fibonacci(2), 12);
        let mut to = [0; BUFFER];
        let from = [7; BUFFER];
        // SAFETY: both buffers are this test's.
        unsafe { unit(to.as_mut_ptr(), from.as_ptr()) };
        assert_eq!(to[..12], [7; 12]);
        assert_eq!(to[12..16], [0; 4]);
    }
}
