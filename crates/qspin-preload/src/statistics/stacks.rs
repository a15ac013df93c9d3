//! Stacks that wait for a lock, or keep others waiting for it: how long, in a table of their own.
//!
//! A stack is found by what it is: the lock and its frames. So what many waits have in common is kept once. Two sums
//! stand with it: what its waits took (the waiter's view), and how long others waited until its releases (the owner's).
//!
//! # Invariants
//! * **STACKS-1** The frames of a stack are written by the thread that has put its key there; `depth` is written after
//!   them, and is 0 until then.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Relaxed, Release};

use super::SLOT;
use super::unwind::{FRAMES, capture};

pub(super) const STACKS: usize = 4096;
/// Places that are looked at for a stack.
const PROBES: usize = 32;

#[repr(C, align(256))]
pub(crate) struct Stack {
    key: AtomicU64,
    address: AtomicU64,
    depth: AtomicU64,
    waited_ns: AtomicU64,
    waits: AtomicU64,
    delayed_ns: AtomicU64,
    releases: AtomicU64,
    /// Measured holds that ended here, with what they stand for: so a lock that nobody waits for has a stack, too.
    holds: AtomicU64,
    frames: [AtomicU64; FRAMES],
}

/// A stack as it was found, which may have no place in the table.
pub(crate) struct Captured {
    pub(super) frames: [u64; FRAMES],
    pub(super) depth: usize,
}

impl Captured {
    /// This thread's.
    #[inline(never)]
    pub(crate) fn now() -> Self {
        let mut frames = [0; FRAMES];
        let depth = capture(&mut frames);
        Self { frames, depth }
    }

    /// Its place, for the lock at `address`: 0 if there is none, else one more than its number.
    pub(super) fn place(&self, address: usize) -> u32 {
        if self.depth == 0 {
            return 0;
        }
        let mix = |hash: u64, word: u64| {
            (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
        };
        let key = self.frames[..self.depth]
            .iter()
            .fold(mix(1, address as u64), |key, frame| mix(key, *frame))
            | 1;
        for step in 0..PROBES {
            let place = (key >> 40) as usize % STACKS;
            let place = (place + step) % STACKS;
            let stack = &SLOT.stacks[place];
            match stack.key.load(Relaxed) {
                seen if seen == key => return place as u32 + 1,
                0 => match stack.key.compare_exchange(0, key, Relaxed, Relaxed) {
                    Ok(_) => {
                        stack.address.store(address as u64, Relaxed);
                        for (to, frame) in stack.frames.iter().zip(self.frames) {
                            to.store(frame, Relaxed);
                        }
                        // STACKS-1. ORDERING: Release: a reader that sees the depth sees the frames.
                        stack.depth.store(self.depth as u64, Release);
                        return place as u32 + 1;
                    }
                    Err(other) if other == key => return place as u32 + 1,
                    Err(_) => {}
                },
                _ => {}
            }
        }
        SLOT.head.stacks_lost.fetch_add(1, Relaxed);
        0
    }
}

/// The stack at this place waited so long, which stands for `weight` waits.
pub(super) fn has_waited(place: u32, nanoseconds: u64, weight: u32) {
    if let Some(stack) = place.checked_sub(1).and_then(|place| SLOT.stacks.get(place as usize)) {
        stack.waited_ns.fetch_add(nanoseconds * u64::from(weight), Relaxed);
        stack.waits.fetch_add(weight.into(), Relaxed);
    }
}

/// What is noted of a release, when it is over.
#[derive(Clone, Copy, Default)]
pub(crate) struct Released {
    /// How long others have waited for it meanwhile, all together.
    pub(crate) delayed_ns: u64,
    /// How many holds this one stands for; 0 if it was not measured.
    pub(crate) holds: u64,
}

/// This thread has released the lock at `address`.
#[inline]
pub(crate) fn has_released(address: usize, released: Released) {
    if released.delayed_ns != 0 || released.holds != 0 {
        note(address, released);
    }
}

#[cold]
#[inline(never)]
fn note(address: usize, Released { delayed_ns, holds }: Released) {
    let place = Captured::now().place(address);
    if let Some(stack) = place.checked_sub(1).and_then(|place| SLOT.stacks.get(place as usize)) {
        if delayed_ns > 0 {
            stack.delayed_ns.fetch_add(delayed_ns, Relaxed);
            stack.releases.fetch_add(1, Relaxed);
        }
        stack.holds.fetch_add(holds, Relaxed);
    }
}
