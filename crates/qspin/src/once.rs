//! One-time initialization.

use core::fmt;
use core::sync::atomic::AtomicU32;

pub use qspin_core::once::OnceState;
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
        self.call_once_force(|_| f());
    }

    /// As [`call_once`](Self::call_once), and tells `f` whether an earlier closure has panicked, and may have left
    /// something half done: [`OnceState::Poisoned`], otherwise [`OnceState::New`].
    ///
    /// Since nothing is refused after a panic, it forces nothing that `call_once` would not do; the name is that
    /// of the standard library and of `parking_lot`.
    ///
    /// ```
    /// use qspin::{Once, OnceState};
    ///
    /// static ONCE: Once = Once::new();
    ///
    /// let failed = std::thread::spawn(|| ONCE.call_once(|| panic!("the file is not there yet")));
    /// assert!(failed.join().is_err());
    /// assert_eq!(ONCE.state(), OnceState::Poisoned);
    /// ONCE.call_once_force(|state| assert!(state.poisoned()));
    /// assert!(ONCE.state().done());
    /// ```
    ///
    /// # Panics
    /// If `f` does.
    #[inline]
    pub fn call_once_force(&self, f: impl FnOnce(OnceState)) {
        let p = &Threads::<NoEvents>::NEW;
        if !self.word.is_done(p)
            && let Some(running) = self.word.begin(p)
        {
            f(running.after());
            running.done();
        }
    }

    /// How far it is at this moment. If it is [`OnceState::Done`], the closure's effects are visible to this thread;
    /// if it is [`OnceState::InProgress`], that may have changed when the caller looks at the answer.
    #[inline]
    #[must_use]
    pub fn state(&self) -> OnceState {
        self.word.state(&Threads::<NoEvents>::NEW)
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
        f.debug_struct("Once").field("state", &self.state()).finish()
    }
}
