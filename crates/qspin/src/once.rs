//! One-time initialization.

use core::fmt;
use core::sync::atomic::AtomicU32;

use qspin_core::once::OnceWord;

use crate::events::NoEvents;
use crate::platform::Threads;

/// Runs a closure once, in the first thread that calls it: four bytes, `const`.
///
/// Other callers wait until the closure has returned. There is no poisoning: if the closure panics, it counts
/// as not run, and the next caller runs its own. A thread that calls [`call_once`](Self::call_once) again from
/// inside the closure deadlocks. See [`qspin_core::once`].
///
/// ```
/// use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
///
/// use qspin::Once;
///
/// static ONCE: Once = Once::new();
/// static DONE: AtomicU32 = AtomicU32::new(0);
///
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         scope.spawn(|| {
///             ONCE.call_once(|| {
///                 DONE.fetch_add(1, Relaxed);
///             });
///             assert_eq!(DONE.load(Relaxed), 1);
///         });
///     }
/// });
/// assert!(ONCE.is_completed());
/// ```
pub struct Once {
    word: OnceWord<AtomicU32>,
}

impl Once {
    /// A `Once` whose closure has not run.
    #[must_use]
    pub const fn new() -> Self {
        Self { word: OnceWord::NEW }
    }

    /// Calls `f` unless a closure has already run to its end. On return, one has.
    #[inline]
    pub fn call_once(&self, f: impl FnOnce()) {
        let p = &Threads::<NoEvents>::NEW;
        if !self.word.is_done(p)
            && let Some(running) = self.word.begin(p)
        {
            f();
            running.done();
        }
    }

    /// Whether a closure has run to its end. If so, its effects are visible to this thread.
    #[inline]
    #[must_use]
    pub fn is_completed(&self) -> bool {
        self.word.is_done(&Threads::<NoEvents>::NEW)
    }
}

impl Default for Once {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Once {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Once").field("done", &self.is_completed()).finish()
    }
}
