//! The locks among which is chosen: the only place that knows which they are.
//!
//! # Problem
//! A lock that is chosen when the program starts must be one type, and one word, whatever is chosen.
//! It can be, since all candidates are one word that is 0 while nobody holds it.
//!
//! # Invariants
//! * **K1** Every candidate is a `repr(transparent)` lock over one word, free exactly when the word
//!   is 0. So the fields of [`SelectedLock`] are views of one word, each valid whatever its value,
//!   and a lock that nobody has touched is a free lock of every candidate.
//! * **K2** All operations on all words of the process go to the same candidate: [`decided`] says
//!   which, and never changes what it has once said. (Whether a lock is held says the same bit in
//!   each; that look fixes no choice.)
//! * **K3** A guard of any candidate may be sent to another thread: `Guard` is `GuardSend`.
//!
//! # Limits
//! The choice is one for the process: words that processes share need a lock of their own kind.

use core::fmt;
use core::mem::ManuallyDrop;

use qspin_core::backoff::BackoffLock;
use qspin_core::lock::{ConstLock, RawLock};
use qspin_core::platform::{ConstWord, Platform};
use qspin_core::queued::{CnaLock, CnaParavirtLock, NativeLock, ParavirtLock};

use super::decided::{decided, glance};

/// The candidates, as input of the macro `$make`. Those of most machines stand *here*, where the lock is
/// used, the others *behind a call*: a table to jump through at each use would be slower for all.
macro_rules! candidates {
    ($make:ident $($what:tt)*) => {
        $make! {
            $($what)*
            here {
                /// Spins on its own cache line, first come, first served: every thread has a CPU.
                Native native "native": NativeLock;
                /// Spins, then halts: threads do not always run.
                Paravirt paravirt "paravirt": ParavirtLock;
            }
            behind a call {
                /// Test-and-set, pausing ever longer: threads do not always run, and cannot halt.
                Backoff backoff "backoff": BackoffLock;
                /// As native, preferring waiters that are near the holder: every thread has a CPU, on
                /// several nodes.
                Cna cna "cna": CnaLock;
                /// As paravirt, preferring waiters that are near the holder: threads on several nodes that
                /// do not always run.
                CnaParavirt cna_paravirt "cna-paravirt": CnaParavirtLock;
            }
        }
    };
}

macro_rules! choices {
    (
        here { $($(#[$near_doc:meta])* $near:ident $near_field:ident $near_name:literal: $near_lock:ident;)* }
        behind a call {
            $($(#[$far_doc:meta])* $far:ident $far_field:ident $far_name:literal: $far_lock:ident;)*
        }
    ) => {
        /// What can be chosen.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Choice {
            $($(#[$near_doc])* $near,)*
            $($(#[$far_doc])* $far,)*
        }

        impl Choice {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$near,)* $(Self::$far,)*];

            /// The name, as `QSPIN_LOCK` has it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$near => $near_name,)*
                    $(Self::$far => $far_name,)*
                }
            }

            /// The choice of this number.
            #[inline]
            pub(super) const fn numbered(number: u8) -> Option<Self> {
                $(if number == Self::$near as u8 {
                    return Some(Self::$near);
                })*
                $(if number == Self::$far as u8 {
                    return Some(Self::$far);
                })*
                None
            }
        }

        /// The lock that was chosen: see [`select`](crate::select).
        #[repr(C)]
        pub union SelectedLock<W> {
            $($near_field: ManuallyDrop<$near_lock<W>>,)*
            $($far_field: ManuallyDrop<$far_lock<W>>,)*
        }

        $(const _: () = assert!(size_of::<$near_lock<core::sync::atomic::AtomicU32>>() == 4);)*
        $(const _: () = assert!(size_of::<$far_lock<core::sync::atomic::AtomicU32>>() == 4);)*
    };
}

/// An operation on the lock that is chosen, in three steps: the likely choices, the others, and
/// whatever it is for the operation that fixes it.
macro_rules! operation {
    (
        $name:ident, $chosen:ident, $other:ident, $first:ident, $result:ty;
        here { $($(#[$near_doc:meta])* $near:ident $near_field:ident $near_name:literal: $near_lock:ident;)* }
        behind a call {
            $($(#[$far_doc:meta])* $far:ident $far_field:ident $far_name:literal: $far_lock:ident;)*
        }
    ) => {
        impl<W> SelectedLock<W> {
            /// # Safety
            /// As the operation.
            #[inline]
            unsafe fn $chosen<P: Platform<Word = W>>(&self, p: &P) -> $result {
                let choice = glance();
                $(if choice == Choice::$near as u8 {
                    // SAFETY: K1; by K2 it is the view that all others use, too. The caller's
                    // promise is the operation's.
                    return unsafe { RawLock::<P>::$name(&*self.$near_field, p) };
                })*
                // SAFETY: the caller's promise.
                unsafe { self.$other(p, choice) }
            }

            /// # Safety
            /// As the operation.
            #[inline(never)]
            unsafe fn $other<P: Platform<Word = W>>(&self, p: &P, choice: u8) -> $result {
                $(if choice == Choice::$far as u8 {
                    // SAFETY: as above.
                    return unsafe { RawLock::<P>::$name(&*self.$far_field, p) };
                })*
                // SAFETY: the caller's promise.
                unsafe { self.$first(p) }
            }

            /// # Safety
            /// As the operation.
            #[cold]
            #[inline(never)]
            unsafe fn $first<P: Platform<Word = W>>(&self, p: &P) -> $result {
                match decided() {
                    // SAFETY: as above.
                    $(Choice::$near => unsafe {
                        RawLock::<P>::$name(&*self.$near_field, p)
                    },)*
                    // SAFETY: as above.
                    $(Choice::$far => unsafe {
                        RawLock::<P>::$name(&*self.$far_field, p)
                    },)*
                }
            }
        }
    };
}

candidates!(choices);
candidates!(operation acquire, acquire_chosen, acquire_other, acquire_first, (););
candidates!(operation try_acquire, try_acquire_chosen, try_acquire_other, try_acquire_first, bool;);
candidates!(operation release, release_chosen, release_other, release_first, (););

impl Choice {
    /// The choice of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|choice| choice.name() == name)
    }

    /// All names, for a message: "native, paravirt, … or …".
    #[must_use]
    pub fn names() -> String {
        let names: Vec<&str> = Self::ALL.iter().map(|choice| choice.name()).collect();
        let (last, others) = names.split_last().unwrap_or((&"", &[]));
        format!("{} or {last}", others.join(", "))
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl<W> fmt::Debug for SelectedLock<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SelectedLock").finish_non_exhaustive()
    }
}

// SAFETY: by K2 it is one lock of the candidates, all the time; each of them excludes.
unsafe impl<P: Platform> RawLock<P> for SelectedLock<P::Word> {
    #[inline]
    fn new() -> Self {
        Self { native: ManuallyDrop::new(RawLock::<P>::new()) }
    }

    #[inline]
    fn acquire(&self, p: &P) {
        // SAFETY: this operation asks for nothing.
        unsafe { self.acquire_chosen(p) };
    }

    #[inline]
    fn try_acquire(&self, p: &P) -> bool {
        // SAFETY: this operation asks for nothing.
        unsafe { self.try_acquire_chosen(p) }
    }

    #[inline]
    unsafe fn release(&self, p: &P) {
        // SAFETY: the caller holds the lock.
        unsafe { self.release_chosen(p) };
    }

    #[inline]
    fn is_locked(&self, p: &P) -> bool {
        // SAFETY: K1, K2.
        unsafe { RawLock::<P>::is_locked(&*self.native, p) }
    }
}

impl<W: ConstWord> ConstLock for SelectedLock<W> {
    #[allow(clippy::declare_interior_mutable_const)]
    const UNLOCKED: Self = Self { native: ManuallyDrop::new(NativeLock::UNLOCKED) };
    // K3.
    type Guard = lock_api::GuardSend;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_bit_says_that_a_lock_is_held_in_each() {
        use crate::events::NoEvents;
        use crate::platform::Threads;
        use core::sync::atomic::AtomicU32;

        fn check<L: RawLock<Threads<NoEvents>>>(view: fn(&SelectedLock<AtomicU32>) -> &L) {
            let p = Threads::<NoEvents>::NEW;
            let lock = SelectedLock::<AtomicU32>::UNLOCKED;
            let held =
                || (view(&lock).is_locked(&p), RawLock::<Threads<NoEvents>>::is_locked(&lock, &p));
            assert_eq!(held(), (false, false));
            view(&lock).acquire(&p);
            assert_eq!(held(), (true, true));
            // SAFETY: acquired above.
            unsafe { view(&lock).release(&p) };
            assert_eq!(held(), (false, false));
        }
        // SAFETY: K1.
        check(|lock| unsafe { &*lock.native });
        // SAFETY: K1.
        check(|lock| unsafe { &*lock.paravirt });
        // SAFETY: K1.
        check(|lock| unsafe { &*lock.backoff });
        // SAFETY: K1.
        check(|lock| unsafe { &*lock.cna });
        // SAFETY: K1.
        check(|lock| unsafe { &*lock.cna_paravirt });
    }

    #[test]
    fn choices_have_names() {
        for &choice in Choice::ALL {
            assert_eq!(Choice::named(choice.name()), Some(choice));
        }
        assert_eq!(Choice::named("nativ"), None);
        assert_eq!(Choice::named(""), None);
        assert_eq!(Choice::names(), "native, paravirt, backoff, cna or cna-paravirt");
    }
}
