//! What this library does when the program is loaded: it registers handlers, and nothing else that the program, or the
//! machine, could notice.
//!
//! # Problem
//! A program that links a library has not asked it for anything yet, and perhaps never will. Files that are read
//! before `main`, memory and system calls are then a cost without a use; in a sandbox they are its end.
//!
//! But handlers of `fork` and the key whose destructor ends a thread must not be registered on the path of a lock,
//! since that may allocate. And the environment may be read only while nobody changes it.
//!
//! # Invariants
//! * **LOAD-1** No system call is made here but those of the C library's allocator, nothing is said, and `errno` stays.
//! * **LOAD-2** Handlers are registered once, in this order: in a child they are called in it. Threads' numbers come
//!   first, since those who slept are forgotten by them.
//!
//! # Limits
//! A lock for which somebody waits in a function that runs at load time, before this one, registers the handlers
//! itself. A loader that does not hand over the environment leaves it to the C library's `getenv`.

use core::ffi::{c_char, c_int};
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

use super::environment::Environment;
use super::errno::Errno;
use super::{barrier, cpu, rseq, sleep};
use crate::{events, select};

static REGISTERED: AtomicU32 = AtomicU32::new(0);

/// Registers what may allocate (LOAD-2), if that was not done before.
#[inline]
pub(crate) fn register() {
    if REGISTERED.load(Relaxed) == 0 {
        register_once();
    }
}

#[cold]
fn register_once() {
    // A thread that finds it begun by another one goes on, perhaps before there is a key: then its number is not given
    // back. That takes two threads that wait before this library's own load-time call.
    if REGISTERED.swap(1, Relaxed) != 0 {
        return;
    }
    let errno = Errno::keep();
    rseq::find();
    cpu::register();
    sleep::register();
    events::register();
    errno.restore();
}

/// The arguments or the environment of the program.
type Texts = *const *const c_char;

#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: unsafe extern "C" fn(c_int, Texts, Texts) = at_load;

unsafe extern "C" fn at_load(_: c_int, _: Texts, environment: Texts) {
    // Only this C library hands over something.
    let environment = if cfg!(target_env = "gnu") { environment } else { core::ptr::null() };
    // SAFETY: the C library hands over the process's, and nobody changes it meanwhile.
    begin(&unsafe { Environment::new(environment) });
}

/// What is done at load.
pub(crate) fn begin(environment: &Environment) {
    register();
    barrier::note(environment);
    select::note(environment);
}
