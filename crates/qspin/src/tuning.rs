//! The tunables in force in this process.
//!
//! Every lock reads them on its slow path, each time anew. They may be changed at any moment; a wait in
//! progress goes on with the old values or with the new ones.

use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Acquire, Release};

pub use qspin_core::tuning::{
    Adaptive, Defer, Group, KICK_AHEAD_MOST, Part, Setting, Tunable, Tuning, kick_ahead_level,
};

static IN_FORCE: AtomicPtr<Tuning> =
    AtomicPtr::new(core::ptr::from_ref(&Tuning::DEFAULT).cast_mut());

/// The tunables in force.
#[inline]
#[must_use]
pub fn get() -> &'static Tuning {
    // SAFETY: `set` made the pointer from a `'static` reference, or it is the constant's; it is only read
    // through.
    // ORDERING: Acquire pairs with the Release of `set`. (On today's processors it is a plain load.)
    unsafe { &*IN_FORCE.load(Acquire) }
}

/// Puts other tunables in force. A value outside its range (see [`Tuning::ALL`]) counts as the nearest value
/// inside it: a threshold that never passes would let waiters starve.
///
/// Allocates if there is such a value.
pub fn set(tuning: &'static Tuning) {
    let in_range = in_range(tuning);
    let tuning = if in_range == *tuning { tuning } else { Box::leak(Box::new(in_range)) };
    IN_FORCE.store(core::ptr::from_ref(tuning).cast_mut(), Release);
}

/// These tunables, each clamped to its range.
fn in_range(tuning: &Tuning) -> Tuning {
    let mut in_range = *tuning;
    for tunable in Tuning::ALL {
        let value = (tunable.get)(tuning);
        (tunable.set)(&mut in_range, value.clamp(tunable.least, tunable.most));
    }
    in_range
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absurd_values_count_as_the_nearest_that_make_sense() {
        assert_eq!(in_range(&Tuning::DEFAULT), Tuning::DEFAULT);
        let mut tuning = Tuning::DEFAULT;
        tuning.numa_threshold_ns = 0;
        tuning.numa_skip_bits = 32;
        tuning.kick_ahead = u32::MAX;
        let sound = in_range(&tuning);
        assert_eq!(sound.numa_threshold_ns, 1);
        assert_eq!(sound.numa_skip_bits, 16);
        assert_eq!(sound.kick_ahead, KICK_AHEAD_MOST as u32);
        tuning.numa_threshold_ns = u32::MAX;
        assert_eq!(in_range(&tuning).numa_threshold_ns, 1 << 30);
        // No other test of this process changes the tunables in force.
        set(Box::leak(Box::new(tuning)));
        assert_eq!(get().numa_threshold_ns, 1 << 30);
        set(&Tuning::DEFAULT);
        assert_eq!(get(), &Tuning::DEFAULT);
    }
}
