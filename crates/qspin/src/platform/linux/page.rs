//! Pages of memory: the kernel replaces, or empties in a child, whole pages only.
//!
//! # Problem
//! A page has 4 KiB on x86-64 and RISC-V. On powerpc it has 64 KiB on most systems, on ARM 4, 16 or 64 KiB, as
//! the kernel was built. Replacing a static of 4 KiB there would take its neighbours along.
//!
//! So such a static is aligned to the largest page that the processor's kernels have. If the kernel reports an
//! even larger page, the kernel is not asked to replace or empty anything.
//!
//! # Invariants
//! * **PAGE-1** What a [`Whole`] holds is alone on its pages, if [`are_whole`] says so.

use core::ops::Deref;
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::Relaxed;

/// Content that is alone on its pages (PAGE-1).
#[derive(Debug)]
#[cfg_attr(any(target_arch = "aarch64", target_arch = "powerpc64"), repr(C, align(65536)))]
#[cfg_attr(not(any(target_arch = "aarch64", target_arch = "powerpc64")), repr(C, align(4096)))]
pub struct Whole<T>(T);

impl<T> Whole<T> {
    /// The pages of `content`.
    pub const fn new(content: T) -> Self {
        Self(content)
    }
}

impl<T> Deref for Whole<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0
    }
}

/// The largest page size that is allowed for.
pub(crate) const LARGEST: usize = align_of::<Whole<()>>();

/// A pretended page size; 0 for the kernel's.
static PRETENDED: AtomicUsize = AtomicUsize::new(0);

/// Pretends that pages have this size from now on: for tests.
pub fn pretend_pages_of(bytes: usize) {
    PRETENDED.store(bytes, Relaxed);
}

/// Whether pages are small enough for the content of a [`Whole`] to be alone on its pages. Async-signal-safe.
pub fn are_whole() -> bool {
    let bytes = match PRETENDED.load(Relaxed) {
        // SAFETY: asks for a number, which every Linux provides.
        0 => unsafe { libc::getauxval(libc::AT_PAGESZ) as usize },
        pretended => pretended,
    };
    (1..=LARGEST).contains(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_whole_has_pages_of_its_own() {
        static TWO: [Whole<u8>; 2] = [Whole::new(1), Whole::new(2)];
        let place = |at: &'static Whole<u8>| (&raw const **at).addr();
        assert_eq!(place(&TWO[0]) % LARGEST, 0);
        assert_eq!(place(&TWO[1]) - place(&TWO[0]), LARGEST);
        assert_eq!((*TWO[0], *TWO[1]), (1, 2));
        assert!(are_whole(), "this kernel's pages are no larger than any that is known");
    }
}
