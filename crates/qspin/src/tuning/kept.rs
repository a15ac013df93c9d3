//! Tunables that were put in force by request: where they stay.
//!
//! A lock may be reading the tunables that were in force before, at any moment and for any time. So each set
//! stays for the life of the process; one that comes again is not kept twice. The memory is not the allocator's:
//! its locks may be the very ones that wait.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize};

use super::Tuning;
use crate::platform::system::tunables::reserve;

/// How many different sets are kept.
const MAX: usize = 4096;

struct Slot {
    /// Whether it is written, for good.
    written: AtomicU32,
    tuning: UnsafeCell<MaybeUninit<Tuning>>,
}

struct Slots {
    used: AtomicUsize,
    slots: [Slot; MAX],
}

// SAFETY: a slot is written by the thread that took its number, and read only once it is `written`.
unsafe impl Sync for Slots {}

static SLOTS: AtomicPtr<Slots> = AtomicPtr::new(ptr::null_mut());

fn slots() -> Option<&'static Slots> {
    // ORDERING: Acquire pairs with the AcqRel below. (The kernel's zeros are there anyhow.)
    // SAFETY: null, or what `reserve` returned.
    if let Some(slots) = unsafe { SLOTS.load(Acquire).as_ref() } {
        return Some(slots);
    }
    // SAFETY: zeros are a valid value: nothing is used, nothing is written.
    let reserved = unsafe { reserve::<Slots>() }?;
    let new = ptr::from_ref(reserved).cast_mut();
    match SLOTS.compare_exchange(ptr::null_mut(), new, AcqRel, Acquire) {
        Ok(_) => Some(reserved),
        // SAFETY: as above. What another thread reserved at the same time stays unused: addresses, not memory.
        Err(other) => unsafe { other.as_ref() },
    }
}

/// The same tunables for the rest of the process; `None` if there is no room. Async-signal-safe.
pub(super) fn keep(tuning: &Tuning) -> Option<&'static Tuning> {
    if *tuning == Tuning::DEFAULT {
        return Some(&Tuning::DEFAULT);
    }
    let Slots { used, slots } = slots()?;
    let taken = used.load(Relaxed).min(MAX);
    for slot in &slots[..taken] {
        // ORDERING: Acquire pairs with the Release below.
        if slot.written.load(Acquire) != 0 {
            // SAFETY: written before, and never again.
            let old = unsafe { (*slot.tuning.get()).assume_init_ref() };
            if old == tuning {
                return Some(old);
            }
        }
    }
    // Never back, so that it does not overflow: a number beyond the end is taken at most once a request.
    let slot = slots.get(used.fetch_add(1, Relaxed))?;
    // SAFETY: this thread alone has the number, and no thread reads it yet.
    let new = unsafe { (*slot.tuning.get()).write(*tuning) };
    slot.written.store(1, Release);
    Some(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_again_is_not_kept_twice_and_the_default_not_at_all() {
        assert_eq!(keep(&Tuning::DEFAULT), Some(&Tuning::DEFAULT));
        let tuning = |value| Tuning { steal_polls: value, ..Tuning::DEFAULT };
        let one = keep(&tuning(1)).unwrap();
        let two = keep(&tuning(2)).unwrap();
        assert_eq!((one.steal_polls, two.steal_polls), (1, 2));
        assert!(ptr::eq(keep(&tuning(1)).unwrap(), one));
        assert!(ptr::eq(keep(&tuning(2)).unwrap(), two));
    }
}
