//! The locks of pthread and of C11, served by qspin: a library to preload.
//!
//! # Problem
//! Most programs with a hot lock are in C or C++, and cannot be changed. The dynamic linker binds the names of
//! functions to a preloaded library first; so this library has the functions by which programs lock, and does
//! the same by other means.
//!
//! The caller's object is all the memory that there is: a `pthread_mutex_t` that the compiler has initialised
//! is a lock. So the state lies in it, and the C library's attribute bits stay where the C library has put
//! them. What is not served (robust, priority-inheriting, priority-protected and process-shared objects) is
//! passed on to the C library, object by object.
//!
//! # Invariants
//! * **PRELOAD-1** A pointer that a caller passes is valid, aligned, and points to an initialised object of its
//!   type: initialised statically, by a function of this library, or by the C library. All its words are used
//!   as atomics here, so shared references to the types of this library may be made of it.
//! * **PRELOAD-2** The kind of a mutex, the process-shared bit of a condition variable or of a reader-writer
//!   lock, and its preference, lie where the C library has them and mean what they mean there. They change in
//!   an initialisation only, but for one bit of a mutex's kind that means nothing there (TALLY-1 of
//!   `statistics::tally`). All other bytes of a new object that is served are zeros.
//! * **PRELOAD-3** An object that is served is never passed to the C library, nor the other way round.
//! * **PRELOAD-4** A thread that has released an object does not access it again, but for the address of a
//!   wake-up, which may come too late: every sleeper checks again.
//! * **PRELOAD-5** Frames that a cancellation may unwind have nothing to drop (`condvar`).
//! * **PRELOAD-6** A word that describes waiters is valid in the process in which it was written: see
//!   `generation`.
//! * **PRELOAD-7** Nothing here prints, panics or allocates, or changes `errno`. The exception: in a program
//!   that was run by hand, the counts are printed at the end (`statistics::print`).
//!
//! # Limits
//! x86-64 and ARM (64 bits), and the GNU C library from 2.25 on, whose layouts these are; tested with 2.36, on ARM
//! by an emulator, with 2.41. A process-shared condition variable that is used with a process-private mutex is
//! served by waking up from time to time.
//! Programs with more rights than the user that starts them are not reached: the dynamic linker ignores
//! preloaded libraries there. Statically linked programs have no dynamic linker.
//!
//! An object must be used by this library's functions only, or by the C library's only. A program that reaches
//! the latter behind this library's back, and uses both for one object, breaks it: a library opened with
//! `RTLD_DEEPBIND` that shares locks with its opener; `dlsym` with the handle of the C library itself; a second
//! copy of the C library (`dlmopen`). An object that is used on one side alone works on either.
//!
//! This library uses one of the process's 1024 thread-specific keys.

#![cfg(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
// These functions have their contracts from elsewhere: PRELOAD-1.
#![allow(clippy::missing_safety_doc)]

mod c11;
mod condvar;
mod deadline;
mod entry;
mod generation;
mod join;
mod libc_locks;
mod mutex;
mod processor;
mod quit;
mod rwlock;
mod served;
mod sleep;
mod spin;
mod start;
mod statistics;
mod thread;
