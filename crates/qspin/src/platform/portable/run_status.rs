//! Which thread is known not to be running: none, as no system but Linux is asked.

use qspin_core::platform::CpuId;

/// Whether anything is known without privileges: no.
#[must_use]
pub fn available() -> bool {
    false
}

/// Whether the thread of this number is known not to be running: no.
#[inline]
#[must_use]
pub fn known_not_to_run(_: CpuId) -> bool {
    false
}

/// This thread has got `number`.
pub(crate) fn enter(_: u32) {}

/// This thread is about to give `number` back.
pub(crate) fn leave(_: u32) {}
