//! The C library's locks, called as a C program calls them.

use std::cell::UnsafeCell;

use libc::c_int;

use super::{Contender, RwContender};

/// A pthread call on a valid lock fails only for misuse that the loop does not commit; a failure
/// would void the measurement, so it ends it.
#[inline(always)]
fn must_succeed(code: c_int) {
    if code != 0 {
        refused(code);
    }
}

/// What a try returned: the lock, or that it is held.
#[inline(always)]
fn taken(code: c_int) -> Option<()> {
    if code == libc::EBUSY {
        return None;
    }
    must_succeed(code);
    Some(())
}

#[cold]
fn refused(code: c_int) -> ! {
    panic!("the C library refused a lock: {}", std::io::Error::from_raw_os_error(code));
}

/// A contender out of a pthread mutex with a static initialiser.
macro_rules! pthread_mutex {
    ($(#[$doc:meta])* $name:ident, $init:expr) => {
        $(#[$doc])*
        pub struct $name(UnsafeCell<libc::pthread_mutex_t>);

        // SAFETY: a pthread mutex is made to be used from many threads.
        unsafe impl Sync for $name {}

        impl Contender for $name {
            const TRIES: bool = true;
            type Held<'a> = ();

            fn new() -> Self {
                Self(UnsafeCell::new($init))
            }

            #[inline(always)]
            fn lock(&self) {
                // SAFETY: the mutex was initialised statically and is not moved once in use.
                must_succeed(unsafe { libc::pthread_mutex_lock(self.0.get()) });
            }

            #[inline(always)]
            fn try_lock(&self) -> Option<()> {
                // SAFETY: as above.
                taken(unsafe { libc::pthread_mutex_trylock(self.0.get()) })
            }

            #[inline(always)]
            unsafe fn unlock(&self, (): ()) {
                // SAFETY: this thread holds the mutex, as the trait demands.
                must_succeed(unsafe { libc::pthread_mutex_unlock(self.0.get()) });
            }
        }
    };
}

pthread_mutex!(
    /// `pthread_mutex_t`, default kind.
    PthreadMutex,
    libc::PTHREAD_MUTEX_INITIALIZER
);

pthread_mutex!(
    /// `pthread_mutex_t`, adaptive kind: spins a little before it sleeps.
    PthreadAdaptive,
    libc::PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP
);

/// `pthread_spinlock_t`.
pub struct PthreadSpin(UnsafeCell<libc::pthread_spinlock_t>);

// SAFETY: a pthread spinlock is made to be used from many threads.
unsafe impl Sync for PthreadSpin {}

impl Contender for PthreadSpin {
    const TRIES: bool = true;
    type Held<'a> = ();

    fn new() -> Self {
        Self(UnsafeCell::new(0))
    }

    fn settle(&mut self) {
        // SAFETY: the lock lies at its final address and is not used yet.
        must_succeed(unsafe {
            libc::pthread_spin_init(self.0.get(), libc::PTHREAD_PROCESS_PRIVATE)
        });
    }

    #[inline(always)]
    fn lock(&self) {
        // SAFETY: `settle` initialised the lock.
        must_succeed(unsafe { libc::pthread_spin_lock(self.0.get()) });
    }

    #[inline(always)]
    fn try_lock(&self) -> Option<()> {
        // SAFETY: `settle` initialised the lock.
        taken(unsafe { libc::pthread_spin_trylock(self.0.get()) })
    }

    #[inline(always)]
    unsafe fn unlock(&self, (): ()) {
        // SAFETY: this thread holds the lock, as the trait demands.
        must_succeed(unsafe { libc::pthread_spin_unlock(self.0.get()) });
    }
}

/// A contender out of a pthread reader-writer lock.
macro_rules! pthread_rwlock {
    ($(#[$doc:meta])* $name:ident, $init:expr) => {
        $(#[$doc])*
        pub struct $name(UnsafeCell<libc::pthread_rwlock_t>);

        // SAFETY: a pthread rwlock is made to be used from many threads.
        unsafe impl Sync for $name {}

        impl RwContender for $name {
            type Reading<'a> = ();
            type Writing<'a> = ();

            fn new() -> Self {
                Self(UnsafeCell::new($init))
            }

            #[inline(always)]
            fn read(&self) {
                // SAFETY: the lock was initialised by `new` and is not moved once in use.
                must_succeed(unsafe { libc::pthread_rwlock_rdlock(self.0.get()) });
            }

            #[inline(always)]
            unsafe fn read_unlock(&self, (): ()) {
                // SAFETY: this thread reads under the lock, as the trait demands.
                must_succeed(unsafe { libc::pthread_rwlock_unlock(self.0.get()) });
            }

            #[inline(always)]
            fn write(&self) {
                // SAFETY: the lock was initialised by `new` and is not moved once in use.
                must_succeed(unsafe { libc::pthread_rwlock_wrlock(self.0.get()) });
            }

            #[inline(always)]
            unsafe fn write_unlock(&self, (): ()) {
                // SAFETY: this thread writes under the lock, as the trait demands.
                must_succeed(unsafe { libc::pthread_rwlock_unlock(self.0.get()) });
            }
        }
    };
}

pthread_rwlock!(
    /// `pthread_rwlock_t`, default kind (glibc's prefers readers).
    PthreadRw,
    libc::PTHREAD_RWLOCK_INITIALIZER
);

pthread_rwlock!(
    /// `pthread_rwlock_t` that prefers writers: the kind that does.
    PthreadRwWriters,
    preferring_writers()
);

/// glibc's kind under which a reader waits for waiting writers. The one that is called
/// `PREFER_WRITER` does what the default does.
const PREFER_WRITER_NONRECURSIVE: c_int = 2;

fn preferring_writers() -> libc::pthread_rwlock_t {
    let mut lock = libc::PTHREAD_RWLOCK_INITIALIZER;
    // SAFETY: attributes are plain memory until they are initialised, two lines below.
    let mut kind: libc::pthread_rwlockattr_t = unsafe { std::mem::zeroed() };
    // SAFETY: `kind` and `lock` are this thread's alone; an unused lock is words that may be
    // moved, as those of the static initialiser are.
    unsafe {
        must_succeed(libc::pthread_rwlockattr_init(&raw mut kind));
        must_succeed(libc::pthread_rwlockattr_setkind_np(
            &raw mut kind,
            PREFER_WRITER_NONRECURSIVE,
        ));
        must_succeed(libc::pthread_rwlock_init(&raw mut lock, &raw const kind));
        must_succeed(libc::pthread_rwlockattr_destroy(&raw mut kind));
    }
    lock
}
