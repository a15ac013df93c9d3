//! The tunables in force in this process.
//!
//! Every lock reads them on its slow path, each time anew. They may be changed at any moment; a wait in
//! progress goes on with the old values or with the new ones.
//!
//! Three can change them: the program, by [`set`]; the environment when the program is loaded,
//! `QSPIN_TUNE=NAME=VALUE,…`; and, if the program [listens](listen()), another process of the same user,
//! `qspin stat PID --tune NAME=VALUE`.

#[allow(dead_code, reason = "as `change`")]
mod environment;
#[allow(dead_code, reason = "as `change`")]
mod kept;
mod listen;

use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{AcqRel, Acquire};

use crate::platform::system;
#[allow(
    unused_imports,
    reason = "a system without `inside` and load-time functions needs neither"
)]
pub(crate) use environment::{apply, note};
pub use listen::{ListenError, listen};

pub use qspin_core::tuning::{
    Adaptive, Defer, Group, KICK_AHEAD_MAX, Part, Setting, Tunable, Tuning, kick_ahead_level,
};

static IN_FORCE: AtomicPtr<Tuning> =
    AtomicPtr::new(core::ptr::from_ref(&Tuning::DEFAULT).cast_mut());

/// The tunables in force.
#[inline]
#[must_use]
pub fn get() -> &'static Tuning {
    if system::listen::is_asked() {
        system::listen::heed();
    }
    in_force()
}

#[inline]
pub(crate) fn in_force() -> &'static Tuning {
    // SAFETY: `set` and `change` made the pointer from a `'static` reference, or it is the constant's; it is only read
    // through.
    // ORDERING: Acquire pairs with the AcqRel of `set` and `change`. (On today's processors it is a plain load.)
    unsafe { &*IN_FORCE.load(Acquire) }
}

/// Puts other tunables in force. A value outside its range (see [`Tuning::ALL`]) counts as the nearest value
/// inside it: a threshold that never passes would let waiters starve.
///
/// Allocates if there is such a value.
pub fn set(tuning: &'static Tuning) {
    let in_range = in_range(tuning);
    let tuning = if in_range == *tuning { tuning } else { Box::leak(Box::new(in_range)) };
    IN_FORCE.swap(core::ptr::from_ref(tuning).cast_mut(), AcqRel);
    system::listen::tell(tuning);
}

#[allow(dead_code, reason = "a system on which no other process asks needs it not")]
/// Changes the tunables in force as `change` says, unless there is no room for another set. Async-signal-safe.
pub(crate) fn change(change: impl Fn(&mut Tuning)) {
    let mut old = in_force();
    loop {
        let mut new = *old;
        change(&mut new);
        let Some(new) = kept::keep(&new) else { return };
        let [before, after] = [old, new].map(|tuning| core::ptr::from_ref(tuning).cast_mut());
        // ORDERING: Release pairs with the Acquire of `in_force`.
        match IN_FORCE.compare_exchange(before, after, AcqRel, Acquire) {
            Ok(_) => return system::listen::tell(new),
            // SAFETY: as in `in_force`.
            Err(other) => old = unsafe { &*other },
        }
    }
}

/// These tunables, each clamped to its range.
fn in_range(tuning: &Tuning) -> Tuning {
    let mut in_range = *tuning;
    for tunable in Tuning::ALL {
        let value = (tunable.get)(tuning);
        (tunable.set)(&mut in_range, value.clamp(tunable.min, tunable.max));
    }
    in_range
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Mutex;

    use super::*;

    /// The tunables are the process's: one test at a time that changes them.
    pub(crate) static TURN: Mutex<()> = Mutex::new(());

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
        assert_eq!(sound.kick_ahead, KICK_AHEAD_MAX as u32);
        tuning.numa_threshold_ns = u32::MAX;
        assert_eq!(in_range(&tuning).numa_threshold_ns, 1 << 30);
        let _turn = TURN.lock().unwrap();
        set(Box::leak(Box::new(tuning)));
        assert_eq!(get().numa_threshold_ns, 1 << 30);
        set(&Tuning::DEFAULT);
        assert_eq!(get().numa_threshold_ns, Tuning::DEFAULT.numa_threshold_ns);
    }
}
