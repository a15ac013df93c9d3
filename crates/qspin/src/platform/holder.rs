//! The holder of a lock asks not to be preempted: remedy (b) of document 001.
//!
//! # Problem
//! A thread that is preempted while it holds a lock stops every waiter. It needs only a few microseconds more.
//! Linux's scheduler can grant them (time slice extensions, from 7.0 on); no other system is asked.
//!
//! # Limits
//! A guard that another thread drops, or that is forgotten, counts as held for ever: its thread has no hint
//! from then on. A system call inside the critical section ends a grant, so the hint is for short sections.
//! Where the kernel has no extension (before 7.0; and, from some versions on, with a C library that registers
//! the old, short area) a hint costs one load.

use core::fmt;

use super::system::holder;

/// Whether the holders of a lock ask not to be preempted.
pub trait Hint: 'static {
    /// This thread has acquired a lock.
    fn enter();
    /// This thread has released a lock.
    fn exit();
}

/// They do not: not one instruction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unhinted;

impl Hint for Unhinted {
    #[inline]
    fn enter() {}
    #[inline]
    fn exit() {}
}

/// They do, where the kernel can heed it: see [`available`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hinted;

impl Hint for Hinted {
    #[inline]
    fn enter() {
        holder::acquired();
    }

    #[inline]
    fn exit() {
        holder::released();
    }
}

/// Why a holder's hint has no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unavailable {
    /// There is no area for it.
    NoArea,
    /// The kernel does not know it.
    NotInKernel,
    /// The kernel knows it, but does not offer it to this program.
    NotOffered,
    /// The kernel refuses with another error number.
    Refused(i32),
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no time slice extension for lock holders: ")?;
        match self {
            Self::NoArea => f.write_str(
                "the C library has registered no rseq area (glibc does from 2.35 on, unless \
                 GLIBC_TUNABLES has glibc.pthread.rseq=0)",
            ),
            Self::NotInKernel => f.write_str(
                "the kernel has none (Linux has from 7.0 on, with CONFIG_RSEQ_SLICE_EXTENSION)",
            ),
            Self::NotOffered => f.write_str(
                "the kernel does not offer it (rseq_slice_ext=off at boot, or a C library that \
                 registers the old rseq area of 32 bytes)",
            ),
            Self::Refused(error) => write!(f, "the kernel refuses it with error {error}"),
        }
    }
}

impl core::error::Error for Unavailable {}

/// Whether the kernel heeds the hints of this thread. Enables the extension if possible.
///
/// # Errors
/// The reason if it does not. The locks work all the same.
pub fn available() -> Result<(), Unavailable> {
    holder::available()
}
