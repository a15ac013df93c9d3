//! Tunables by the environment: `QSPIN_TUNE=numa_threshold_ns=2000000,heed_preempted=on`.
//!
//! Read when the program is loaded, without a system call and without memory of the allocator (LOAD-1 of
//! `platform::load`). What is wrong in it does not count, and is told when a thread first waits for a lock.

use core::cell::UnsafeCell;
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;

use super::{Tunable, Tuning};
use crate::platform::system;

/// Written once, at load, before it is in force.
struct Tuned(UnsafeCell<Tuning>);

// SAFETY: written by the one call that swaps `NOTED`, before it is read.
unsafe impl Sync for Tuned {}

static TUNED: Tuned = Tuned(UnsafeCell::new(Tuning::DEFAULT));

/// Puts in force what the environment says of tunables, and notes whether it forbids other processes to change
/// them. Only the first call in the process does.
pub(crate) fn note(refused: bool, text: &[u8]) {
    static NOTED: AtomicBool = AtomicBool::new(false);
    if NOTED.swap(true, Relaxed) {
        return;
    }
    let mut tuning = Tuning::DEFAULT;
    system::listen::note(refused, !apply(&mut tuning, text));
    if tuning != Tuning::DEFAULT {
        // SAFETY: no other call comes here, and nothing is read yet.
        let tuned = unsafe {
            *TUNED.0.get() = tuning;
            &*TUNED.0.get()
        };
        super::set(tuned);
    }
}

/// Sets what `text` says, `NAME=VALUE` with commas between; a value is a number or its name. Returns whether all
/// of it is right; what is not sets nothing. Async-signal-safe.
pub(crate) fn apply(tuning: &mut Tuning, text: &[u8]) -> bool {
    let mut right = true;
    for one in text.split(|byte| *byte == b',').filter(|one| !one.is_empty()) {
        match pair(one) {
            Some((tunable, value)) => (tunable.set)(tuning, value),
            None => right = false,
        }
    }
    right
}

fn pair(text: &[u8]) -> Option<(&'static Tunable, u32)> {
    let at = text.iter().position(|byte| *byte == b'=')?;
    let (name, value) = (&text[..at], &text[at + 1..]);
    let tunable = Tuning::named(core::str::from_utf8(name).ok()?)?;
    let named = tunable.names.iter().position(|name| name.as_bytes() == value);
    let value = match named {
        Some(place) => place as u32,
        None => core::str::from_utf8(value).ok()?.parse().ok()?,
    };
    (tunable.min..=tunable.max).contains(&value).then_some((tunable, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_right_counts_beside_what_is_wrong() {
        let said = |text: &str| {
            let mut tuning = Tuning::DEFAULT;
            (apply(&mut tuning, text.as_bytes()), tuning)
        };
        assert_eq!(said(""), (true, Tuning::DEFAULT));
        let two = Tuning { heed_preempted: true, numa_threshold_ns: 5, ..Tuning::DEFAULT };
        assert_eq!(said("heed_preempted=on,numa_threshold_ns=5"), (true, two));
        assert_eq!(said("heed_preempted=1,,numa_threshold_ns=5,"), (true, two));
        for wrong in ["x=1", "numa_threshold_ns=0", "steal_polls", "steal_polls=", "defer=3", "=1"]
        {
            assert_eq!(said(wrong), (false, Tuning::DEFAULT), "{wrong}");
            let beside = said(&format!("heed_preempted=on,{wrong},numa_threshold_ns=5"));
            assert_eq!(beside, (false, two), "{wrong}");
        }
    }
}
