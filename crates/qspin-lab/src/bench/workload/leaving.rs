//! Critical sections whose holder now and then leaves its CPU: it sleeps, or yields.
//!
//! That is what a page fault, a write to a log or a full pipe does to a section of any program. The
//! lengths are those of [`Lengths`].

use std::time::Duration;

use crate::bench::busy::busy;

use super::Work;
use super::lengths::{Lengths, Line};

/// How a holder leaves its CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leave {
    /// It sleeps for this many nanoseconds (and as long again, or more, as the kernel's timers need).
    Sleep(u32),
    /// It yields to whoever is ready to run.
    Yield,
}

/// Sections of given lengths, in one of so many of which the holder leaves its CPU.
#[derive(Debug, Clone, Copy)]
pub struct Leaving {
    /// The lengths.
    pub lengths: Lengths,
    /// How the holder leaves.
    pub leave: Leave,
    /// One section in so many of each thread.
    pub every: u32,
}

/// What a thread keeps for itself.
pub struct Local {
    value: u64,
    sections: u32,
}

impl Work for Leaving {
    type Shared = Box<[Line]>;
    type Local = Local;

    fn shared(&self) -> Self::Shared {
        self.lengths.shared()
    }

    fn local(&self, index: usize, threads: usize) -> Local {
        // Threads do not leave all at once.
        let sections = (index as u32).wrapping_mul(self.every) / (threads.max(1) as u32);
        Local { value: self.lengths.local(index, threads), sections }
    }

    #[inline(always)]
    fn critical(&self, shared: &Self::Shared, local: &mut Local) {
        self.lengths.critical(shared, &mut local.value);
        local.sections += 1;
        if local.sections >= self.every {
            local.sections = 0;
            leave(self.leave);
        }
    }

    #[inline(always)]
    fn outside(&self, local: &mut Local) {
        local.value = busy(local.value, self.lengths.outside);
    }

    fn counted(&self, shared: &Self::Shared) -> u64 {
        self.lengths.counted(shared)
    }
}

#[cold]
fn leave(how: Leave) {
    match how {
        Leave::Sleep(ns) => std::thread::sleep(Duration::from_nanos(u64::from(ns))),
        Leave::Yield => std::thread::yield_now(),
    }
}
