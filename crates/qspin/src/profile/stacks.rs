//! Stacks that wait for a lock, or keep others waiting.

use core::ffi::{c_int, c_void};
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Relaxed, Release};

use super::file::Slot;

pub(super) const STACKS: usize = 4096;
/// How many frames of a stack are kept.
pub(super) const FRAMES: usize = 24;
/// How many places are tried for a stack.
const PROBES: usize = 32;

#[repr(C, align(256))]
pub(super) struct Stack {
    key: AtomicU64,
    address: AtomicU64,
    /// Written after the frames; 0 until then.
    depth: AtomicU64,
    waited_ns: AtomicU64,
    waits: AtomicU64,
    delayed_ns: AtomicU64,
    releases: AtomicU64,
    holds: AtomicU64,
    frames: [AtomicU64; FRAMES],
}

/// Return addresses, the innermost first.
#[derive(Default)]
pub(super) struct Captured {
    frames: [u64; FRAMES],
    depth: usize,
}

impl Captured {
    /// Where the first call was made.
    pub(super) fn first(&self) -> u64 {
        self.frames[0]
    }
}

type Step = extern "C" fn(*mut c_void, *mut c_void) -> c_int;

unsafe extern "C" {
    /// Of the unwinder that the standard library is linked with: calls `step` for each frame, until that says
    /// that it is enough.
    fn _Unwind_Backtrace(step: Step, state: *mut c_void) -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
}

extern "C" fn step(context: *mut c_void, state: *mut c_void) -> c_int {
    const ENOUGH: c_int = 5;
    // SAFETY: what `capture` has handed over, for the time of the walk.
    let stack = unsafe { &mut *state.cast::<Captured>() };
    // SAFETY: the unwinder's own context.
    let place = unsafe { _Unwind_GetIP(context) };
    if place == 0 || stack.depth == FRAMES {
        return ENOUGH;
    }
    stack.frames[stack.depth] = place as u64;
    stack.depth += 1;
    0
}

/// The stack of this thread. The command passes over the functions of this library.
#[inline(never)]
pub(super) fn capture() -> Captured {
    let mut stack = Captured::default();
    // SAFETY: the function of this name has this type; the state lives as long as the call.
    unsafe { _Unwind_Backtrace(step, (&raw mut stack).cast()) };
    stack
}

impl Slot {
    /// The place of a stack for a lock: 0 if there is no room, else one more than its number.
    pub(super) fn place_of_stack(&self, lock: usize, captured: &Captured) -> u32 {
        if captured.depth == 0 {
            return 0;
        }
        let mix = |hash: u64, word: u64| {
            (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
        };
        let frames = &captured.frames[..captured.depth];
        let key = frames.iter().fold(mix(1, lock as u64), |key, frame| mix(key, *frame)) | 1;
        for step in 0..PROBES {
            let place = ((key >> 40) as usize + step) % STACKS;
            let stack = &self.stacks[place];
            match stack.key.compare_exchange(0, key, Relaxed, Relaxed) {
                Ok(_) => {
                    stack.address.store(lock as u64, Relaxed);
                    for (to, frame) in stack.frames.iter().zip(frames) {
                        to.store(*frame, Relaxed);
                    }
                    // ORDERING: Release: a reader that sees the depth sees the frames.
                    stack.depth.store(captured.depth as u64, Release);
                    return place as u32 + 1;
                }
                Err(other) if other == key => return place as u32 + 1,
                Err(_) => {}
            }
        }
        self.head.stacks_lost.fetch_add(1, Relaxed);
        0
    }

    fn stack(&self, place: u32) -> Option<&Stack> {
        self.stacks.get(place.checked_sub(1)? as usize)
    }

    pub(super) fn note_wait(&self, place: u32, waited: u64) {
        if let Some(stack) = self.stack(place) {
            stack.waited_ns.fetch_add(waited, Relaxed);
            stack.waits.fetch_add(1, Relaxed);
        }
    }

    pub(super) fn note_release(&self, place: u32, delayed: u64, holds: u64) {
        if let Some(stack) = self.stack(place) {
            stack.delayed_ns.fetch_add(delayed, Relaxed);
            stack.releases.fetch_add(u64::from(delayed > 0), Relaxed);
            stack.holds.fetch_add(holds, Relaxed);
        }
    }
}
