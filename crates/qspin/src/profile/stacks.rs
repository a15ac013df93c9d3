//! The stack of this thread, by the unwinder that the standard library is linked with.

use core::ffi::{c_int, c_void};

use crate::locks_file::FRAMES;

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

    pub(super) fn frames(&self) -> &[u64] {
        &self.frames[..self.depth]
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
