//! The stacks of this process's threads, and what is recorded with them.

use super::SLOT;
use super::unwind::capture;
use qspin::locks_file::FRAMES;

/// A captured stack, which may have no place in the table.
pub(crate) struct Captured {
    frames: [u64; FRAMES],
    depth: usize,
}

impl Captured {
    /// The stack of this thread.
    #[inline(never)]
    pub(crate) fn now() -> Self {
        let mut frames = [0; FRAMES];
        let depth = capture(&mut frames);
        Self { frames, depth }
    }

    pub(super) fn frames(&self) -> &[u64] {
        &self.frames[..self.depth]
    }

    /// Its place, for the lock at `address`: 0 if there is none, else one more than its number.
    pub(super) fn place(&self, address: usize) -> u32 {
        SLOT.place_of_stack(address, self.frames())
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
    SLOT.note_release(Captured::now().place(address), delayed_ns, holds);
}
