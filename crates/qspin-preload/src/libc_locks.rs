//! The C library's own functions, for what is not served here.
//!
//! They are looked up behind this library, in the version of today where a name has several
//! (condition variables changed their form once). Looking up may allocate, and takes the dynamic
//! linker's lock: it is done in the constructor, and on the path of a lock only if something locks
//! before that, which nothing but a process-shared or robust lock in an earlier library's constructor does.

use core::ffi::CStr;
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::{Acquire, Release};

use libc::{
    c_int, c_void, clockid_t, pthread_cond_t, pthread_condattr_t, pthread_mutex_t,
    pthread_mutexattr_t, pthread_rwlock_t, pthread_rwlockattr_t, sem_t, timespec,
};

/// Looks up `name`, in `version` if it has one.
fn look_up(name: &CStr, version: Option<&CStr>) -> *mut c_void {
    if let Some(version) = version {
        // SAFETY: texts that end with a zero.
        let found = unsafe { libc::dlvsym(libc::RTLD_NEXT, name.as_ptr(), version.as_ptr()) };
        if !found.is_null() {
            return found;
        }
    }
    // SAFETY: as above.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }
}

macro_rules! functions {
    ($(fn $name:ident($($argument:ident: $type:ty),*) $(@ $version:literal)?;)*) => {
        $(
            /// The C library's function of this name; ENOSYS if it has none.
            #[cold]
            #[inline(never)]
            pub(crate) unsafe fn $name($($argument: $type),*) -> c_int {
                static FOUND: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
                // ORDERING: Acquire pairs with the Release below.
                let mut found = FOUND.load(Acquire);
                if found.is_null() {
                    let name = concat!(stringify!($name), "\0").as_bytes();
                    // SAFETY: it ends with its only zero.
                    let name = unsafe { CStr::from_bytes_with_nul_unchecked(name) };
                    found = look_up(name, None$(.or(Some($version)))?);
                    if found.is_null() {
                        found = MISSING;
                    }
                    FOUND.store(found, Release);
                }
                if found == MISSING {
                    return libc::ENOSYS;
                }
                if PREPARING.load(Acquire) {
                    return 0;
                }
                type Function = unsafe extern "C-unwind" fn($($type),*) -> c_int;
                // SAFETY: a function of this name has this type; the rest is the caller's.
                unsafe {
                    let function: Function = core::mem::transmute(found);
                    function($($argument),*)
                }
            }
        )*

        /// Looks all of them up. For the constructor.
        pub(crate) fn prepare() {
            PREPARING.store(true, Release);
            // SAFETY: while preparing, nothing is called: the arguments are not looked at.
            $(let _ = unsafe { $name($(<$type as Nothing>::NOTHING),*) };)*
            PREPARING.store(false, Release);
        }
    };
}

/// In the place of a function that there is not: it is looked for once.
const MISSING: *mut c_void = core::ptr::without_provenance_mut(1);

static PREPARING: core::sync::atomic::AtomicBool = core::sync::atomic::AtomicBool::new(false);

/// An argument of a call that is not made.
trait Nothing {
    const NOTHING: Self;
}
impl<T> Nothing for *mut T {
    const NOTHING: Self = core::ptr::null_mut();
}
impl<T> Nothing for *const T {
    const NOTHING: Self = core::ptr::null();
}
impl Nothing for c_int {
    const NOTHING: Self = 0;
}

functions! {
    fn pthread_mutex_init(m: *mut pthread_mutex_t, a: *const pthread_mutexattr_t);
    fn pthread_mutex_destroy(m: *mut pthread_mutex_t);
    fn pthread_mutex_lock(m: *mut pthread_mutex_t);
    fn pthread_mutex_trylock(m: *mut pthread_mutex_t);
    fn pthread_mutex_unlock(m: *mut pthread_mutex_t);
    fn pthread_mutex_timedlock(m: *mut pthread_mutex_t, t: *const timespec);
    fn pthread_mutex_clocklock(m: *mut pthread_mutex_t, c: clockid_t, t: *const timespec);
    fn pthread_cond_init(c: *mut pthread_cond_t, a: *const pthread_condattr_t) @ c"GLIBC_2.3.2";
    fn pthread_cond_destroy(c: *mut pthread_cond_t) @ c"GLIBC_2.3.2";
    fn pthread_cond_signal(c: *mut pthread_cond_t) @ c"GLIBC_2.3.2";
    fn pthread_cond_broadcast(c: *mut pthread_cond_t) @ c"GLIBC_2.3.2";
    fn pthread_cond_wait(c: *mut pthread_cond_t, m: *mut pthread_mutex_t) @ c"GLIBC_2.3.2";
    fn pthread_cond_timedwait(c: *mut pthread_cond_t, m: *mut pthread_mutex_t, t: *const timespec)
        @ c"GLIBC_2.3.2";
    fn pthread_cond_clockwait(
        c: *mut pthread_cond_t, m: *mut pthread_mutex_t, k: clockid_t, t: *const timespec);
    fn pthread_rwlock_init(l: *mut pthread_rwlock_t, a: *const pthread_rwlockattr_t);
    fn pthread_rwlock_destroy(l: *mut pthread_rwlock_t);
    fn pthread_rwlock_rdlock(l: *mut pthread_rwlock_t);
    fn pthread_rwlock_tryrdlock(l: *mut pthread_rwlock_t);
    fn pthread_rwlock_timedrdlock(l: *mut pthread_rwlock_t, t: *const timespec);
    fn pthread_rwlock_clockrdlock(l: *mut pthread_rwlock_t, c: clockid_t, t: *const timespec);
    fn pthread_rwlock_wrlock(l: *mut pthread_rwlock_t);
    fn pthread_rwlock_trywrlock(l: *mut pthread_rwlock_t);
    fn pthread_rwlock_timedwrlock(l: *mut pthread_rwlock_t, t: *const timespec);
    fn pthread_rwlock_clockwrlock(l: *mut pthread_rwlock_t, c: clockid_t, t: *const timespec);
    fn pthread_rwlock_unlock(l: *mut pthread_rwlock_t);
    fn mtx_init(m: *mut pthread_mutex_t, kind: c_int);
    fn sem_clockwait(s: *mut sem_t, c: clockid_t, t: *const timespec);
}
