//! `pthread_mutex_t`: kinds, owners, recursion.
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

use libc::{c_int, pthread_mutex_t, pthread_mutexattr_t, timespec};

use crate::deadline::Deadline;
use crate::libc_locks as real;
use crate::served::{self, Mode, Words};
use crate::statistics::{self, Begins, Kind, LeftToLibc, MEASURED, Released};
use crate::{generation, thread};

/// A mutex as it lies in the caller's memory.
#[repr(C)]
pub(crate) struct Mutex {
    words: Words,
    owner: AtomicU32,
    again: AtomicU32,
    kind: AtomicU32,
    generation: AtomicU32,
    lent: AtomicU32,
    tally: statistics::Tally,
}

// ARM's has eight bytes more, for the list.
const _: () = assert!(size_of::<Mutex>() <= size_of::<pthread_mutex_t>());
const _: () = assert!(align_of::<Mutex>() <= align_of::<pthread_mutex_t>());

const TYPE: u32 = 3;
const RECURSIVE: u32 = 1;
const ERRORCHECK: u32 = 2;
const ROBUST: u32 = 0x10;
const INHERITS: u32 = 0x20;
const PROTECTED: u32 = 0x40;
const SHARED: u32 = 0x80;
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
    fn kind(&self) -> u32 {
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
    fn is_taken_at_once(&self, mode: Mode, site: usize) -> c_int {
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
    fn take_notified(&self, site: usize) {
        if !self.take_at_once(site) {
            self.take_specially(site, served::lock_notified);
        }
    }

    #[inline(never)]
    fn take_specially(&self, site: usize, wait: fn(&Words)) {
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
    fn try_take(&self, site: usize) -> bool {
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
    fn take_until(&self, deadline: &Deadline, site: usize) -> c_int {
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
    fn release_at_once(&self, mode: Mode) -> bool {
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
    fn release_tracked(&self) -> c_int {
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
    fn release_specially(&self) {
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

    fn address(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }

    /// For a type that knows its owner: acquires by `take`, unless this thread already holds the lock.
    fn take_owned(&self, busy: c_int, take: impl FnOnce() -> c_int) -> c_int {
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
    fn is_plain(&self) -> bool {
        self.kind() & SPECIAL == 0
    }

    #[inline(always)]
    fn knows_owner(&self) -> bool {
        matches!(self.kind() & TYPE, RECURSIVE | ERRORCHECK)
    }

    #[inline(never)]
    fn lock_owned(&self, site: usize) -> c_int {
        self.take_owned(libc::EDEADLK, || {
            self.take(site);
            0
        })
    }

    fn is_owned(&self) -> bool {
        self.owner.load(Relaxed) == thread::number()
    }

    #[inline(never)]
    fn unlock_owned(&self) -> c_int {
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
}

/// `pthread_mutex_lock`.
#[inline(always)]
pub(crate) unsafe fn lock(mutex: *mut pthread_mutex_t, site: usize) -> c_int {
    // SAFETY: PRELOAD-1.
    let this = unsafe { at(mutex) };
    let mode = Mode::now();
    if this.is_plain() && served::lock_at_once(mode, &this.words) {
        // Calls in tail position only, so that nothing has to be saved across them.
        return if mode.watches() { this.is_taken_at_once(mode, site) } else { 0 };
    }
    // SAFETY: the caller's.
    unsafe { lock_special(mutex, site) }
}

#[cold]
#[inline(never)]
unsafe fn lock_special(mutex: *mut pthread_mutex_t, site: usize) -> c_int {
    // SAFETY: PRELOAD-1.
    let this = unsafe { at(mutex) };
    if !this.is_served() {
        // SAFETY: PRELOAD-3: the C library's.
        return unsafe { real::pthread_mutex_lock(mutex) };
    }
    if this.knows_owner() {
        return this.lock_owned(site);
    }
    this.take_specially(site, served::lock_slow);
    0
}

/// `pthread_mutex_unlock`.
#[inline(always)]
pub(crate) unsafe fn unlock(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: PRELOAD-1.
    let this = unsafe { at(mutex) };
    if this.is_plain() {
        if this.release_at_once(Mode::now()) {
            return 0;
        }
        return this.release_tracked();
    }
    // SAFETY: the caller's.
    unsafe { unlock_special(mutex) }
}

#[cold]
#[inline(never)]
unsafe fn unlock_special(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: PRELOAD-1.
    let this = unsafe { at(mutex) };
    if !this.is_served() {
        // SAFETY: PRELOAD-3: the C library's.
        return unsafe { real::pthread_mutex_unlock(mutex) };
    }
    if this.knows_owner() {
        return this.unlock_owned();
    }
    this.release_specially();
    0
}

impl Mutex {
    /// The count of waits that will reacquire the mutex: here, or where the C library counts its users. It
    /// counts those of kinds that always know their owner.
    fn lent(&self) -> Option<&AtomicU32> {
        if self.is_served() {
            Some(&self.lent)
        } else {
            (self.kind() & (ROBUST | INHERITS) != 0).then_some(&self.again)
        }
    }
}

/// As [`unlock`], for a wait after which this thread reacquires the mutex: until then it cannot be destroyed.
pub(crate) unsafe fn lend(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: PRELOAD-1.
    let this = unsafe { at(mutex) };
    // Not if the unlock would be refused.
    if (this.is_served() && !this.knows_owner()) || this.is_owned() {
        this.lent().inspect(|lent| {
            lent.fetch_add(1, Relaxed);
        });
    }
    // SAFETY: the caller's.
    unsafe { unlock(mutex) }
}

/// As [`lock`], after [`lend`].
pub(crate) unsafe fn take_back(mutex: *mut pthread_mutex_t, site: usize) -> c_int {
    // SAFETY: PRELOAD-1, the caller's.
    unsafe {
        let this = at(mutex);
        let result = if this.is_served() && !this.knows_owner() {
            this.take_notified(site);
            0
        } else {
            lock(mutex, site)
        };
        if result == 0 || result == libc::EOWNERDEAD {
            this.lent().inspect(|lent| {
                lent.fetch_sub(1, Relaxed);
            });
        }
        result
    }
}

/// `pthread_mutex_trylock`.
#[inline(always)]
pub(crate) unsafe fn try_lock(mutex: *mut pthread_mutex_t, site: usize) -> c_int {
    // SAFETY: PRELOAD-1.
    let this = unsafe { at(mutex) };
    if !this.is_served() {
        // SAFETY: PRELOAD-3: the C library's.
        return unsafe { real::pthread_mutex_trylock(mutex) };
    }
    let take = || if this.try_take(site) { 0 } else { libc::EBUSY };
    if this.knows_owner() { this.take_owned(libc::EBUSY, take) } else { take() }
}

/// `pthread_mutex_timedlock`, and `pthread_mutex_clocklock` for a clock that is served.
pub(crate) unsafe fn lock_until(
    mutex: *mut pthread_mutex_t,
    clock: Option<libc::clockid_t>,
    time: *const timespec,
    site: usize,
) -> c_int {
    // SAFETY: PRELOAD-1.
    let this = unsafe { at(mutex) };
    if !this.is_served() {
        // SAFETY: PRELOAD-3: the C library's.
        return unsafe {
            match clock {
                None => real::pthread_mutex_timedlock(mutex, time),
                Some(clock) => real::pthread_mutex_clocklock(mutex, clock, time),
            }
        };
    }
    let clock = clock.unwrap_or(libc::CLOCK_REALTIME);
    if !served::serves_clock(clock) {
        return libc::EINVAL;
    }
    // SAFETY: the caller's time is valid.
    let take = || unsafe { this.take_until(&Deadline::of(clock, time), site) };
    if this.knows_owner() { this.take_owned(libc::EDEADLK, take) } else { take() }
}

/// `pthread_mutex_init`.
pub(crate) unsafe fn init(
    mutex: *mut pthread_mutex_t,
    attributes: *const pthread_mutexattr_t,
) -> c_int {
    // SAFETY: the caller's.
    let result = unsafe { real::init(mutex, attributes, real::pthread_mutex_init) };
    if result != 0 {
        return result;
    }
    // SAFETY: PRELOAD-1.
    let kind = unsafe { at(mutex) }.kind();
    for (bit, why) in [
        (ROBUST, LeftToLibc::RobustMutex),
        (INHERITS, LeftToLibc::InheritingMutex),
        (PROTECTED, LeftToLibc::ProtectedMutex),
        // Last, since the C library sets this bit in robust ones, too.
        (SHARED, LeftToLibc::SharedMutex),
    ] {
        if kind & bit != 0 {
            statistics::left_to_libc(why);
            return 0;
        }
    }
    // SAFETY: PRELOAD-1.
    unsafe { begin(mutex) };
    0
}

/// A mutex is new: what it says of waiters is of this process.
pub(crate) unsafe fn begin(mutex: *mut pthread_mutex_t) {
    // SAFETY: PRELOAD-1.
    let this = unsafe { at(mutex) };
    if this.is_served() && served::names_waiters() {
        this.generation.store(generation::current(), Relaxed);
    }
}

/// `pthread_mutex_destroy`.
pub(crate) unsafe fn destroy(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: PRELOAD-1.
    let this = unsafe { at(mutex) };
    if !this.is_served() {
        // SAFETY: PRELOAD-3: the C library's.
        return unsafe { real::pthread_mutex_destroy(mutex) };
    }
    if served::is_locked(&this.words) || this.lent.load(Relaxed) != 0 {
        return libc::EBUSY;
    }
    this.tally.end(this.address());
    // As the C library does: a use after this is detected.
    this.kind.store(u32::MAX, Relaxed);
    0
}
