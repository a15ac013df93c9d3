//! What this library does when the program is loaded: it registers handlers, and does nothing else that the
//! program or the machine could notice.
//!
//! # Problem
//! A program that merely links the library has not asked it for anything yet, and perhaps never will. Files
//! read before `main`, memory and system calls are then a cost without a use; in a sandbox they kill the
//! program.
//!
//! But the handlers of `fork`, and the key whose destructor runs when a thread ends, must not be registered on
//! the path of a lock, since that may allocate. And the environment may be read only while no thread changes
//! it.
//!
//! # Invariants
//! * **LOAD-1** This code makes no system call but those of the C library's allocator, prints nothing, and
//!   leaves `errno` as it was.
//! * **LOAD-2** Handlers are registered once, in this order, and a child calls them in this order. Those of
//!   threads' numbers come first, since forgetting the parent's sleepers relies on the numbers.
//!
//! # Limits
//! A lock with a waiter in a load-time function that runs before this one registers the handlers itself. A
//! loader that does not hand over the environment leaves it to the C library's `getenv`.

use core::ffi::{CStr, c_char, c_int};
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

use super::environment::{self, Environment};
use super::errno::Errno;
use super::{barrier, publish, rseq, threads};
use crate::{select, tuning};

static REGISTERED: AtomicU32 = AtomicU32::new(0);

/// Registers what may allocate (LOAD-2), unless that was done before.
#[inline]
pub(crate) fn register() {
    if REGISTERED.load(Relaxed) == 0 {
        register_once();
    }
}

#[cold]
fn register_once() {
    // A thread that finds another one registering goes on, perhaps before there is a key: then its number is
    // not given back. That takes two threads that wait before this library's own load-time call.
    if REGISTERED.swap(1, Relaxed) != 0 {
        return;
    }
    let errno = Errno::keep();
    rseq::find();
    threads::register();
    publish::register();
    errno.restore();
}

/// The arguments or the environment of the program.
type Texts = *const *const c_char;

#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: unsafe extern "C" fn(c_int, Texts, Texts) = at_load;

unsafe extern "C" fn at_load(_: c_int, _: Texts, environment: Texts) {
    // Only this C library hands over the environment.
    let environment = if cfg!(target_env = "gnu") { environment } else { core::ptr::null() };
    // SAFETY: the C library hands over the environment of the process, and no thread changes it meanwhile.
    begin(&unsafe { Environment::new(environment) });
}

/// The environment was noted at load time.
#[inline]
pub(crate) fn before_the_first_choice() {}

/// The work at load time.
pub(crate) fn begin(environment: &Environment) {
    register();
    barrier::note(environment);
    if environment::counts() {
        let value_of = |name| environment.value_of(name).map(CStr::to_bytes);
        if let Some(name) = value_of(c"QSPIN_LOCK") {
            select::note(name);
        }
        tuning::note(
            value_of(c"QSPIN_LISTEN") == Some(b"off"),
            value_of(c"QSPIN_TUNE").unwrap_or_default(),
        );
    }
    #[cfg(feature = "profile")]
    crate::profile::begin(environment);
}
