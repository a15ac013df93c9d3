//! Stacks that wait for a lock, or delay its waiters: for how long, in a table of their own.
//!
//! A stack is found by its content: the lock and its frames. So what many waits have in common is kept once. It
//! has two sums: the time that its waits took (the waiter's view), and the time that other threads waited until
//! its releases (the owner's).
//!
//! # Invariants
//! * **STACKS-1** The thread that has put the key of a stack there writes its frames; `depth` is written after
//!   them, and is 0 until then.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Relaxed, Release};

use super::SLOT;
use super::unwind::{FRAMES, capture};

pub(super) const STACKS: usize = 4096;
/// How many places are tried for a stack.
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
    /// Measured holds that ended here, and the holds that they stand for: so an uncontended lock has a stack,
    /// too.
    holds: AtomicU64,
    frames: [AtomicU64; FRAMES],
}

/// A captured stack, which may have no place in the table.
pub(crate) struct Captured {
    pub(super) frames: [u64; FRAMES],
    pub(super) depth: usize,
}

impl Captured {
    /// The stack of this thread.
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

/// The stack at this place waited this long, which stands for `weight` waits.
pub(super) fn has_waited(place: u32, nanoseconds: u64, weight: u32) {
    if let Some(stack) = place.checked_sub(1).and_then(|place| SLOT.stacks.get(place as usize)) {
        stack.waited_ns.fetch_add(nanoseconds * u64::from(weight), Relaxed);
        stack.waits.fetch_add(weight.into(), Relaxed);
    }
}

/// What is recorded of a release, once it is over.
#[derive(Clone, Copy, Default)]
pub(crate) struct Released {
    /// How long the other threads together have waited for it meanwhile.
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
