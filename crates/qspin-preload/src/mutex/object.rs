//! A `pthread_mutex_t` as it lies in the caller's memory: kinds, owners, recursion.
//!
//! ```text
//!   byte  the C library's     of a mutex that is served
//!      0  lock, count         the lock that serves, one word or two
//!      8  owner               the thread that holds it, if it is recursive or errorcheck
//!     12  users               how often that holds it beyond the first time
//!     16  kind                the same: type in bits 0 and 1, then robust, inheriting, protected, shared
//!     20  spins, elision      the generation of the process in which a thread began to wait
//!     24  list                waits of condition variables that will take it again
//!     28  list                where locks are counted: its counts that are not in the table yet
//! ```
//!
//! # Invariants
//! * **PTHREADMUTEX-1** The thread that holds the lock writes `owner`: its number after it has acquired the
//!   lock, 0 before it releases it. So a thread that reads its own number there holds the lock, and no other
//!   thread does.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

use libc::{c_int, pthread_mutex_t};

use crate::deadline::Deadline;
use crate::served::{self, Mode, Words};
use crate::statistics::{self, Begins, Kind, MEASURED, Released};
use crate::{generation, thread};

/// A mutex as it lies in the caller's memory.
#[repr(C)]
pub(crate) struct Mutex {
    pub(super) words: Words,
    owner: AtomicU32,
    again: AtomicU32,
    pub(super) kind: AtomicU32,
    pub(super) generation: AtomicU32,
    pub(super) lent: AtomicU32,
    pub(super) tally: statistics::Tally,
}

// ARM's has eight bytes more, for the list.
const _: () = assert!(size_of::<Mutex>() <= size_of::<pthread_mutex_t>());
const _: () = assert!(align_of::<Mutex>() <= align_of::<pthread_mutex_t>());

const TYPE: u32 = 3;
const RECURSIVE: u32 = 1;
const ERRORCHECK: u32 = 2;
pub(super) const ROBUST: u32 = 0x10;
pub(super) const INHERITS: u32 = 0x20;
pub(super) const PROTECTED: u32 = 0x40;
pub(super) const SHARED: u32 = 0x80;
/// Kinds that the C library serves.
const FOREIGN: u32 = ROBUST | INHERITS | PROTECTED | SHARED;
/// Kinds that do not take the usual first step.
const SPECIAL: u32 = FOREIGN | TYPE | MEASURED;

/// Whether this may be the kind of a mutex that is served, perhaps with a hold that is measured.
pub(crate) const fn is_kind(kind: u32) -> bool {
    /// What `pthread_mutexattr_settype` knows: a type, and whether it has asked for lock elision.
    const KNOWN: u32 = TYPE | 0x300;
    kind & !(KNOWN | MEASURED) == 0
}

/// What a caller's pointer points to (PRELOAD-1).
#[inline(always)]
pub(crate) unsafe fn at<'a>(mutex: *mut pthread_mutex_t) -> &'a Mutex {
    // SAFETY: PRELOAD-1.
    unsafe { &*mutex.cast::<Mutex>() }
}

impl Mutex {
    #[inline(always)]
    pub(super) fn kind(&self) -> u32 {
        self.kind.load(Relaxed)
    }

    /// Whether this library serves the mutex (PRELOAD-3).
    #[inline(always)]
    pub(crate) fn is_served(&self) -> bool {
        self.kind() & FOREIGN == 0
    }

    /// Off the fast path: first forgets the waiters of another process (PRELOAD-6), where the lock's words
    /// describe waiters.
    fn renew(&self) {
        if served::names_waiters() {
            generation::renew(&self.generation, || served::clear_waiters(&self.words));
        }
    }

    /// The first step of acquiring the lock. Returns whether that was all.
    #[inline(always)]
    fn take_at_once(&self, site: usize) -> bool {
        let mode = Mode::now();
        if !served::lock_at_once(mode, &self.words) {
            return false;
        }
        if mode.watches() {
            self.is_taken_at_once(mode, site);
        }
        true
    }

    /// That step has acquired the lock of a program that is watched.
    #[inline(always)]
    pub(super) fn is_taken_at_once(&self, mode: Mode, site: usize) -> c_int {
        if mode.tracks() {
            return self.is_tracked(mode, site);
        }
        if self.tally.is_over() { self.note(site) } else { 0 }
    }

    #[inline(never)]
    fn is_tracked(&self, mode: Mode, site: usize) -> c_int {
        if !statistics::hold_at_once(Kind::Mutex, self.address(), site) {
            return self.is_tracked_first(mode, site);
        }
        if mode.counts() && self.tally.is_over() { self.note(site) } else { 0 }
    }

    #[cold]
    #[inline(never)]
    fn is_tracked_first(&self, mode: Mode, site: usize) -> c_int {
        statistics::hold(Kind::Mutex, self.address(), site);
        if mode.counts() && self.tally.is_over() { self.note(site) } else { 0 }
    }

    /// Notes this acquisition, if it is the last of a period.
    #[inline(always)]
    fn note_if_due(&self, site: usize) {
        if self.tally.is_over() {
            self.note(site);
        }
    }

    #[cold]
    #[inline(never)]
    fn note(&self, site: usize) -> c_int {
        self.tally.note(&self.kind, self.address(), site);
        0
    }

    /// Acquires the lock itself, whatever the type.
    #[inline(always)]
    fn take(&self, site: usize) {
        if !self.take_at_once(site) {
            self.take_specially(site, served::lock_slow);
        }
    }

    /// The same for a thread that has just been woken by a thread that most likely still holds the lock.
    #[inline]
    pub(super) fn take_notified(&self, site: usize) {
        if !self.take_at_once(site) {
            self.take_specially(site, served::lock_notified);
        }
    }

    #[inline(never)]
    pub(super) fn take_specially(&self, site: usize, wait: fn(&Words)) {
        if statistics::watches() {
            self.take_watched(site, wait);
        } else if !served::try_fast(&self.words) {
            self.wait(wait);
        }
    }

    #[cold]
    #[inline(never)]
    fn wait(&self, wait: fn(&Words)) {
        self.renew();
        wait(&self.words);
    }

    #[cold]
    #[inline(never)]
    fn take_watched(&self, site: usize, wait: fn(&Words)) {
        if served::try_fast(&self.words) {
            self.is_taken(site);
        } else {
            let begins = Begins::new(Kind::Mutex, self.address(), site);
            self.waits(&begins, || {
                self.wait(wait);
                true
            });
        }
    }

    /// The lock was acquired without waiting.
    #[inline]
    fn is_taken(&self, site: usize) {
        if statistics::is_on() {
            self.note_if_due(site);
        }
        if statistics::tracks() {
            statistics::hold(Kind::Mutex, self.address(), site);
        }
    }

    /// Makes the wait visible to other processes while it lasts. Returns whether this thread now holds the
    /// lock.
    fn waits(&self, begins: &Begins, wait: impl FnOnce() -> bool) -> bool {
        let begins = Begins { tells_of_sleep: served::tells_of_sleep(), ..*begins };
        let mut waits = self.tally.begins_to_wait(&self.kind, &begins);
        waits.listen();
        let taken = wait();
        self.tally.stops_waiting(self.address(), &mut waits);
        if taken {
            self.tally.has_waited(&self.kind, self.address(), begins.site, &mut waits);
            if statistics::tracks() {
                statistics::hold(Kind::Mutex, self.address(), begins.site);
            }
        }
        taken
    }

    /// Acquires the lock itself if that takes no waiting.
    #[inline(always)]
    pub(super) fn try_take(&self, site: usize) -> bool {
        if self.take_at_once(site) {
            return true;
        }
        let taken = served::try_fast(&self.words) || self.try_again();
        if taken {
            self.is_taken(site);
        }
        taken
    }

    /// After a first attempt that has failed, perhaps because of stale waiters of another process.
    #[cold]
    #[inline(never)]
    fn try_again(&self) -> bool {
        self.renew();
        served::names_waiters() && served::try_fast(&self.words)
    }

    /// Acquires the lock itself before the deadline, or returns the reason why not.
    pub(super) fn take_until(&self, deadline: &Deadline, site: usize) -> c_int {
        if self.try_take(site) {
            return 0;
        }
        if !deadline.is_valid() {
            return libc::EINVAL;
        }
        let begins = Begins { timed: true, ..Begins::new(Kind::Mutex, self.address(), site) };
        if self.waits(&begins, || served::lock_until(&self.words, deadline)) {
            0
        } else {
            libc::ETIMEDOUT
        }
    }

    #[inline(always)]
    fn release(&self) {
        let mode = Mode::now();
        if self.kind() & MEASURED != 0 || !self.release_at_once(mode) {
            self.release_specially();
        }
    }

    /// The first step of a release, of a hold that is not measured. Returns whether that was all.
    #[inline(always)]
    pub(super) fn release_at_once(&self, mode: Mode) -> bool {
        if !served::releases_at_once(mode) {
            return false;
        }
        if mode.counts() {
            self.tally.count();
        }
        served::unlock_at_once(mode, &self.words) || self.release_counted()
    }

    /// The same where that step does not release it.
    #[cold]
    #[inline(never)]
    fn release_counted(&self) -> bool {
        served::unlock(&self.words, || self.renew());
        true
    }

    /// Of the default type, with a hold that is not measured.
    #[inline(never)]
    pub(super) fn release_tracked(&self) -> c_int {
        let mode = Mode::now();
        if mode.tracks() && !statistics::release_at_once(self.address()) {
            statistics::release(self.address());
        }
        if mode.counts() {
            self.tally.count();
        }
        if !served::unlock_tracked(mode, &self.words) {
            self.release_counted();
        }
        0
    }

    #[inline(never)]
    pub(super) fn release_specially(&self) {
        let address = self.address();
        if Mode::now().counts() {
            self.tally.count();
        }
        let released = if self.kind() & MEASURED != 0 {
            self.tally.note_release(&self.kind, address)
        } else {
            Released::default()
        };
        if statistics::tracks() {
            statistics::release(address);
        }
        served::unlock(&self.words, || self.renew());
        // The lock is released: no thread waits for this bookkeeping.
        statistics::has_released(address, released);
    }

    pub(super) fn address(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }

    /// For a type that knows its owner: acquires by `take`, unless this thread already holds the lock.
    pub(super) fn take_owned(&self, busy: c_int, take: impl FnOnce() -> c_int) -> c_int {
        let me = thread::number();
        if self.owner.load(Relaxed) == me {
            // PTHREADMUTEX-1: no other thread writes here.
            if self.kind() & TYPE == ERRORCHECK {
                return busy;
            }
            let again = self.again.load(Relaxed);
            if again == u32::MAX - 1 {
                return libc::EAGAIN;
            }
            self.again.store(again + 1, Relaxed);
            return 0;
        }
        let result = take();
        if result == 0 {
            self.owner.store(me, Relaxed);
            self.again.store(0, Relaxed);
        }
        result
    }

    /// Whether this library serves the mutex, it is of the default type, and this hold is not measured.
    #[inline(always)]
    pub(super) fn is_plain(&self) -> bool {
        self.kind() & SPECIAL == 0
    }

    #[inline(always)]
    pub(super) fn knows_owner(&self) -> bool {
        matches!(self.kind() & TYPE, RECURSIVE | ERRORCHECK)
    }

    #[inline(never)]
    pub(super) fn lock_owned(&self, site: usize) -> c_int {
        self.take_owned(libc::EDEADLK, || {
            self.take(site);
            0
        })
    }

    pub(super) fn is_owned(&self) -> bool {
        self.owner.load(Relaxed) == thread::number()
    }

    #[inline(never)]
    pub(super) fn unlock_owned(&self) -> c_int {
        if !self.is_owned() {
            return libc::EPERM;
        }
        let again = self.again.load(Relaxed);
        if again > 0 {
            self.again.store(again - 1, Relaxed);
            return 0;
        }
        // PTHREADMUTEX-1.
        self.owner.store(0, Relaxed);
        self.release();
        0
    }

    /// The count of waits that will reacquire the mutex: here, or where the C library counts its users. It
    /// counts those of kinds that always know their owner.
    pub(super) fn lent(&self) -> Option<&AtomicU32> {
        if self.is_served() {
            Some(&self.lent)
        } else {
            (self.kind() & (ROBUST | INHERITS) != 0).then_some(&self.again)
        }
    }
}
