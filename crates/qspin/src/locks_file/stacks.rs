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

use super::Slot;

/// How many stacks find a place.
pub const STACKS: usize = 4096;
/// How many frames of a stack are kept.
pub const FRAMES: usize = 24;
/// How many places are tried for a stack.
const PROBES: usize = 32;

#[repr(C, align(256))]
pub struct Stack {
    key: AtomicU64,
    pub address: AtomicU64,
    pub depth: AtomicU64,
    /// From here to `holds`, what `qspin stat --reset` sets to zero.
    pub waited_ns: AtomicU64,
    pub waits: AtomicU64,
    pub delayed_ns: AtomicU64,
    pub releases: AtomicU64,
    /// Measured holds that ended here, and the holds that they stand for: so an uncontended lock has a stack,
    /// too.
    pub holds: AtomicU64,
    pub frames: [AtomicU64; FRAMES],
}

impl Slot {
    /// The place of the stack of these return addresses, for the lock at `address`: 0 if there is none, else one
    /// more than its number.
    pub fn place_of_stack(&self, address: usize, frames: &[u64]) -> u32 {
        if frames.is_empty() {
            return 0;
        }
        let mix = |hash: u64, word: u64| {
            (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
        };
        let key = frames.iter().fold(mix(1, address as u64), |key, frame| mix(key, *frame)) | 1;
        for step in 0..PROBES {
            let place = ((key >> 40) as usize + step) % STACKS;
            let stack = &self.stacks[place];
            match stack.key.load(Relaxed) {
                seen if seen == key => return place as u32 + 1,
                0 => match stack.key.compare_exchange(0, key, Relaxed, Relaxed) {
                    Ok(_) => {
                        stack.address.store(address as u64, Relaxed);
                        for (to, frame) in stack.frames.iter().zip(frames) {
                            to.store(*frame, Relaxed);
                        }
                        // STACKS-1. ORDERING: Release: a reader that sees the depth sees the frames.
                        stack.depth.store(frames.len() as u64, Release);
                        return place as u32 + 1;
                    }
                    Err(other) if other == key => return place as u32 + 1,
                    Err(_) => {}
                },
                _ => {}
            }
        }
        self.head.stacks_lost.fetch_add(1, Relaxed);
        0
    }

    /// The stack at `place`, as [`Self::place_of_stack`] returns it.
    fn stack(&self, place: u32) -> Option<&Stack> {
        self.stacks.get(place.checked_sub(1)? as usize)
    }

    /// The stack at this place waited this long, which stands for `weight` waits.
    pub fn note_wait(&self, place: u32, nanoseconds: u64, weight: u32) {
        if let Some(stack) = self.stack(place) {
            stack.waited_ns.fetch_add(nanoseconds * u64::from(weight), Relaxed);
            stack.waits.fetch_add(weight.into(), Relaxed);
        }
    }

    /// The stack at this place has released the lock, for which other threads have waited so long meanwhile; that
    /// stands for so many holds.
    pub fn note_release(&self, place: u32, delayed_ns: u64, holds: u64) {
        if let Some(stack) = self.stack(place) {
            stack.delayed_ns.fetch_add(delayed_ns, Relaxed);
            stack.releases.fetch_add(u64::from(delayed_ns > 0), Relaxed);
            stack.holds.fetch_add(holds, Relaxed);
        }
    }
}
