//! A reader-writer lock of the register, in the place of the own one: chosen before the program's first instruction.
//!
//! # Problem
//! It is asked for where the own one starves writers, or collapses. Its waiters, or some of them, keep their turn: a
//! thread that reads already and reads again may wait for a writer that waits for it. POSIX allows that, and a
//! program that was written for the C library may rely on the contrary; so no such lock is the default.
//!
//! # Invariants
//! * **RWCHOSEN-1** The choice changes only in the library's constructor, as SERVED-1.
//! * **RWCHOSEN-2** A child forgets its parent's waiters before its first wait and its first release, while it has
//!   one thread, as is the rule in a child.

use core::sync::atomic::AtomicU8;
use core::sync::atomic::Ordering::Relaxed;

use lock_api::{RawRwLock as _, RawRwLockTimed as _};
use qspin_core::lock::Guard;
use qspin_core::locks::{Family, Id};

use super::object::{RwLock, Taken};
use crate::deadline::Deadline;
use crate::served::{Mode, Words, of};
use crate::{generation, thread};

/// The operations on the locks of the register that readers share, for `qspin_core::for_each_lock!`.
macro_rules! shared {
    (() sleeping { $($a:tt)* } spinning { $($b:tt)* }
        shared_sleeping { $($timed:ident: $timed_module:ident = $timed_lock:path, $c:expr;)* }
        shared_spinning { $($plain:ident: $plain_module:ident = $plain_lock:path, $d:expr;)* }) => {
        shared! {
            $($timed: $timed_module = $timed_lock;)*
            $($plain: $plain_module = $plain_lock;)*
        }

        impl Choice {
            /// Waits until the deadline at most. Returns whether the lock was acquired.
            fn acquire_until<const READS: bool>(self, words: &Words, deadline: &Deadline) -> bool {
                match self {
                    $(Self::$timed => {
                        let lock = of::<qspin::$timed_module::RawRwLock>(words);
                        deadline.wait(|time| {
                            if READS {
                                lock.try_lock_shared_for(time).is_some()
                            } else {
                                lock.try_lock_exclusive_for(time).is_some()
                            }
                        })
                    })*
                    $(Self::$plain => deadline.poll(|| self.try_acquire::<READS>(words)),)*
                }
            }
        }
    };
    ($($id:ident: $module:ident = $lock:path;)*) => {
        /// The locks that can be chosen, by their number in the register.
        #[derive(Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum Choice { $($id = Id::$id as u8,)* }

        const _: () = { $(assert!(size_of::<qspin::$module::RawRwLock>() <= size_of::<Words>());)* };

        impl Choice {
            const ALL: &'static [Self] = &[$(Self::$id,)*];

            const fn id(self) -> Id {
                match self { $(Self::$id => Id::$id,)* }
            }

            fn acquire<const READS: bool>(self, words: &Words) {
                match self { $(Self::$id => {
                    let lock = of::<qspin::$module::RawRwLock>(words);
                    if READS { lock.lock_shared(); } else { lock.lock_exclusive(); }
                })* }
            }

            #[inline]
            fn try_acquire<const READS: bool>(self, words: &Words) -> bool {
                match self { $(Self::$id => {
                    let lock = of::<qspin::$module::RawRwLock>(words);
                    if READS { lock.try_lock_shared().is_some() } else { lock.try_lock_exclusive().is_some() }
                })* }
            }

            #[inline]
            fn is_locked(self, words: &Words) -> bool {
                match self { $(Self::$id => of::<qspin::$module::RawRwLock>(words).is_locked(),)* }
            }

            #[inline]
            fn has_writer(self, words: &Words) -> bool {
                match self { $(Self::$id => of::<qspin::$module::RawRwLock>(words).is_locked_exclusive(),)* }
            }

            #[inline]
            fn release<const READS: bool>(self, words: &Words) {
                match self { $(Self::$id => {
                    let lock = of::<qspin::$module::RawRwLock>(words);
                    // SAFETY: the caller has seen the lock held so, and releases: the program promises that it is
                    // an owner. A broken promise breaks this lock, and no other.
                    unsafe {
                        if READS {
                            lock.unlock_shared(Guard::marker());
                        } else {
                            lock.unlock_exclusive(Guard::marker());
                        }
                    }
                })* }
            }

            fn forget_waiters(self, words: &Words) {
                match self { $(Self::$id => {
                    use $lock as Lock;
                    of::<Lock<core::sync::atomic::AtomicU32>>(words).forget_waiters();
                })* }
            }
        }
    };
}

qspin_core::for_each_lock!(shared);

/// The chosen one's place in `Choice::ALL`, and one; 0: the own one serves (RWCHOSEN-1).
static CHOICE: AtomicU8 = AtomicU8::new(0);

/// The lock that serves in the place of the own one.
#[inline(always)]
pub(crate) fn choice() -> Option<Choice> {
    let number = CHOICE.load(Relaxed);
    if number == 0 { None } else { Choice::ALL.get(usize::from(number) - 1).copied() }
}

/// Makes the lock of this name serve, if there is one. For the constructor.
pub(crate) fn choose(name: &[u8]) {
    let wanted = core::str::from_utf8(name).ok().and_then(Id::named);
    let place = Choice::ALL.iter().position(|choice| Some(choice.id()) == wanted);
    if let Some(place) = place {
        CHOICE.store(place as u8 + 1, Relaxed);
    }
}

/// The name of the lock that serves in the place of the own one.
pub(crate) fn name() -> Option<&'static str> {
    choice().map(|choice| choice.id().name())
}

/// A lock that the chosen one serves.
#[derive(Clone, Copy)]
pub(super) struct Chosen<'a> {
    lock: &'a RwLock,
    choice: Choice,
}

impl<'a> Chosen<'a> {
    #[inline(always)]
    pub(super) fn new(lock: &'a RwLock, choice: Choice) -> Self {
        Self { lock, choice }
    }

    /// Forgets the waiters of another process (PRELOAD-6, RWCHOSEN-2).
    #[inline]
    pub(super) fn renew(self) {
        generation::renew(&self.lock.generation, || {
            if thread::count() == Some(1) {
                self.choice.forget_waiters(self.lock.words());
            }
        });
    }

    /// Whether a reader waits for waiting writers, whatever the program wants.
    pub(super) fn writers_first(self) -> bool {
        true
    }

    /// Whether a waiter says so when it goes to sleep.
    pub(super) fn tells_of_sleep(self) -> bool {
        matches!(self.choice.id().lock().family, Family::Sleeping)
    }

    /// The number of the last acquisition that was counted.
    pub(super) fn acquisitions(self) -> u8 {
        self.lock.waiting_writers.load(Relaxed) as u8
    }

    /// The lock was acquired: the number of the acquisition, if they are counted.
    #[inline]
    fn is_taken<const READS: bool>(self) -> u8 {
        if !READS {
            self.lock.has_writer();
        }
        if Mode::now().counts() {
            (self.lock.waiting_writers.fetch_add(1, Relaxed) as u8).wrapping_add(1)
        } else {
            self.acquisitions()
        }
    }

    #[inline]
    fn try_acquire<const READS: bool>(self) -> Taken {
        let taken = self.choice.try_acquire::<READS>(self.lock.words());
        if taken { Ok(self.is_taken::<READS>()) } else { Err(libc::EBUSY) }
    }

    fn acquire<const READS: bool>(self, deadline: Option<&Deadline>) -> Taken {
        self.renew();
        let words = self.lock.words();
        if self.choice.has_writer(words) && self.lock.is_writer() {
            return Err(libc::EDEADLK);
        }
        let taken = match deadline {
            None => {
                self.choice.acquire::<READS>(words);
                true
            }
            Some(deadline) => self.choice.acquire_until::<READS>(words, deadline),
        };
        if taken { Ok(self.is_taken::<READS>()) } else { Err(libc::ETIMEDOUT) }
    }

    #[inline]
    pub(super) fn try_read(self) -> Taken {
        self.try_acquire::<true>()
    }

    #[inline]
    pub(super) fn try_write(self) -> Taken {
        self.try_acquire::<false>()
    }

    pub(super) fn read_slow(self, deadline: Option<&Deadline>) -> Taken {
        self.acquire::<true>(deadline)
    }

    pub(super) fn write_slow(self, deadline: Option<&Deadline>) -> Taken {
        self.acquire::<false>(deadline)
    }

    /// As `Own::end`.
    #[inline]
    pub(super) fn end(self) {
        self.renew();
        let words = self.lock.words();
        if self.choice.has_writer(words) {
            self.lock.has_no_writer();
            self.choice.release::<false>(words);
        } else if self.choice.is_locked(words) {
            self.choice.release::<true>(words);
        }
    }
}
