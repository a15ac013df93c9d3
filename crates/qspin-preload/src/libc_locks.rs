//! The C library's own functions, for what is not served here.
//!
//! They are looked up behind this library, in today's version where a name has several (condition variables
//! changed their layout once). Looking up may allocate, and takes the dynamic linker's lock: the constructor
//! does it. The path of a lock does it only if a lock is acquired before that, which only a process-shared or
//! robust lock in an earlier library's constructor does.

use core::ffi::CStr;
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::{Acquire, Release};

use libc::{
    c_int, c_void, clockid_t, pthread_cond_t, pthread_condattr_t, pthread_mutex_t,
    pthread_mutexattr_t, pthread_rwlock_t, pthread_rwlockattr_t, pthread_t, sem_t, timespec,
};

/// A function of the C library.
struct Function {
    name: &'static CStr,
    /// Today's version, where the name has several.
    version: Option<&'static CStr>,
    /// Null until it has been looked up.
    found: AtomicPtr<c_void>,
}

/// In place of a function that does not exist: it is looked up once.
const MISSING: *mut c_void = core::ptr::without_provenance_mut(1);

impl Function {
    fn find(&self) -> *mut c_void {
        // ORDERING: Acquire pairs with the Release below.
        let mut found = self.found.load(Acquire);
        if !found.is_null() {
            return found;
        }
        let name = self.name.as_ptr();
        // SAFETY: texts that end with a zero.
        unsafe {
            if let Some(version) = self.version {
                found = libc::dlvsym(libc::RTLD_NEXT, name, version.as_ptr());
            }
            if found.is_null() {
                found = libc::dlsym(libc::RTLD_NEXT, name);
            }
        }
        if found.is_null() {
            found = MISSING;
        }
        self.found.store(found, Release);
        found
    }
}

macro_rules! functions {
    ($(fn $name:ident($($argument:ident: $type:ty),*) $(@ $version:literal)?;)*) => {
        #[allow(non_upper_case_globals, reason = "they are called as their functions")]
        mod functions {
            use super::*;
            $(pub(super) static $name: Function = Function {
                name: match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => unreachable!(),
                },
                version: {
                    let versions: &[&CStr] = &[$($version)?];
                    versions.first().copied()
                },
                found: AtomicPtr::new(core::ptr::null_mut()),
            };)*
        }

        $(
            /// The C library's function of this name; ENOSYS if it has none.
            #[cold]
            #[inline(never)]
            pub(crate) unsafe fn $name($($argument: $type),*) -> c_int {
                let found = functions::$name.find();
                if found == MISSING {
                    return libc::ENOSYS;
                }
                // SAFETY: a function of this name has this type; the rest is the caller's.
                unsafe {
                    let function: unsafe extern "C-unwind" fn($($type),*) -> c_int =
                        core::mem::transmute(found);
                    function($($argument),*)
                }
            }
        )*

        /// Looks all of them up. For the constructor.
        pub(crate) fn prepare() {
            $(functions::$name.find();)*
        }
    };
}

/// Initialises an object: a new one is zeros (PRELOAD-2). So is what the C library makes of these attributes,
/// apart from its attribute bits; or it refuses.
///
/// # Safety
/// Memory for an object, which is not in use, and attributes for it, if there are any.
pub(crate) unsafe fn init<T, A>(
    object: *mut T,
    attributes: *const A,
    by_attributes: unsafe fn(*mut T, *const A) -> c_int,
) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        if attributes.is_null() {
            object.write_bytes(0, 1);
            0
        } else {
            by_attributes(object, attributes)
        }
    }
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
    fn pthread_join(t: pthread_t, r: *mut *mut c_void);
    fn mtx_init(m: *mut pthread_mutex_t, kind: c_int);
    fn sem_clockwait(s: *mut sem_t, c: clockid_t, t: *const timespec);
}
