//! What a lock tells an observer: when a thread waits for it, acquires and releases it.
//!
//! A platform has an observer while a user looks at its locks
//! ([`Platform::observer`](crate::platform::Platform::observer)). One that never has is one for which none of
//! this is compiled.

/// Is told what the locks of a platform do; by their addresses, at which there may be another lock later.
pub trait Observer: Sync {
    /// A thread is about to wait. Returns what [`has_waited`](Self::has_waited) is to be told, as the time.
    fn waits(&self, lock: usize) -> u64;

    /// The wait that began at `since` is over, and the thread has `acquired` the lock or given up.
    fn has_waited(&self, lock: usize, since: u64, acquired: bool);

    /// The lock was acquired, with or without a wait, by a reader if it is `shared`.
    fn acquired(&self, lock: usize, shared: bool);

    /// The lock is about to be released. Returns what [`has_released`](Self::has_released) is to be told.
    fn releases(&self, lock: usize) -> [u64; 2];

    /// The lock was released; it may no longer exist.
    fn has_released(&self, lock: usize, what: [u64; 2]);
}

/// Acquires a lock by `at_once`, or else by `wait`, which may give up. Returns whether it did.
#[cold]
pub(crate) fn acquire(
    observer: &dyn Observer,
    lock: usize,
    shared: bool,
    at_once: impl FnOnce() -> bool,
    wait: impl FnOnce() -> bool,
) -> bool {
    let mut acquired = at_once();
    if !acquired {
        let since = observer.waits(lock);
        acquired = wait();
        observer.has_waited(lock, since, acquired);
    }
    if acquired {
        observer.acquired(lock, shared);
    }
    acquired
}

/// Releases a lock by `release`.
#[cold]
pub(crate) fn release(observer: &dyn Observer, lock: usize, release: impl FnOnce()) {
    let what = observer.releases(lock);
    release();
    observer.has_released(lock, what);
}
