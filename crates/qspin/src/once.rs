//! Something that is done once.

use core::fmt;
use core::sync::atomic::AtomicU32;

use qspin_core::once::OnceWord;

use crate::events::NoEvents;
use crate::platform::Threads;

/// Something that is done once, by the first who comes: four bytes, `const`.
///
/// The others wait until it is done. There is no poisoning: if it panics, it counts as never begun, and the
/// next who comes does it. Who comes again while doing it waits for itself. See [`qspin_core::once`].
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
    /// Not done.
    #[must_use]
    pub const fn new() -> Self {
        Self { word: OnceWord::NEW }
    }

    /// Calls `f`, if that was not done before; when it returns, it was.
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

    /// Whether it was done. If so, what was done is visible.
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
