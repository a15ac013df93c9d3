//! The tunables in force in this process.
//!
//! Every lock reads them, on its slow path, each time anew. They may be changed at any moment;
//! waits that are under way end as they began or by the new values.

use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Acquire, Release};

pub use qspin_core::tuning::{
    Adaptive, Defer, KICK_AHEAD_MOST, Part, Setting, Tunable, Tuning, kick_ahead_level,
    kick_ahead_level_by_4,
};

static IN_FORCE: AtomicPtr<Tuning> =
    AtomicPtr::new(core::ptr::from_ref(&Tuning::DEFAULT).cast_mut());

/// The tunables in force.
#[inline]
#[must_use]
pub fn get() -> &'static Tuning {
    // SAFETY: the pointer was made of a reference for the whole program by `set`, or of the
    // constant's; it is only read through.
    // ORDERING: Acquire pairs with the Release of `set`. (A load on the processors of today.)
    unsafe { &*IN_FORCE.load(Acquire) }
}

/// Puts other tunables in force.
pub fn set(tuning: &'static Tuning) {
    IN_FORCE.store(core::ptr::from_ref(tuning).cast_mut(), Release);
}
