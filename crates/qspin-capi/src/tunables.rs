//! The tunables of the locks, by name.
//!
//! # Invariants
//! * **CTUNABLES-1** C changes the tunables in force under `CHANGE` only, so no change of C is lost to another.
//!   (If Rust code of the same program changes them at the same time, one of the two changes holds.)

use core::ffi::{c_char, c_int};
use std::sync::{Mutex, PoisonError};

use qspin::tuning::{self, ListenError, Tunable, Tuning};

use crate::edge::guarded;
use crate::text::{passed, returned, texts};

const TUNABLES: usize = Tuning::SUPPORTED.len();
const LONGEST_NAME: usize = 32;
const LONGEST_ABOUT: usize = 320;
const MAX_VALUE_NAMES: usize = 4;

texts!(NAMES: [LONGEST_NAME; TUNABLES], at => Tuning::SUPPORTED[at].name);
texts!(ABOUTS: [LONGEST_ABOUT; TUNABLES], at => Tuning::SUPPORTED[at].about.trim_ascii());
texts!(VALUE_NAMES: [LONGEST_NAME; TUNABLES * MAX_VALUE_NAMES], at => {
    let names = Tuning::SUPPORTED[at / MAX_VALUE_NAMES].names;
    assert!(names.len() <= MAX_VALUE_NAMES);
    if at % MAX_VALUE_NAMES < names.len() { names[at % MAX_VALUE_NAMES] } else { "" }
});

/// CTUNABLES-1. The sets of tunables that have been in force. Each stays for the life of the process, since a
/// lock may be reading it. A set that recurs is not kept twice.
static CHANGE: Mutex<Vec<&'static Tuning>> = Mutex::new(Vec::new());

/// The place of the tunable of this name in the list.
///
/// # Safety
/// CAPI-4.
unsafe fn find(name: *const c_char) -> Result<usize, c_int> {
    if name.is_null() {
        return Err(libc::EINVAL);
    }
    // SAFETY: CAPI-4.
    let name = unsafe { passed(name) };
    let known = name.and_then(Tuning::named).ok_or(libc::ENOENT)?;
    Tuning::SUPPORTED.iter().position(|tunable| tunable.name == known.name).ok_or(libc::ENOENT)
}

/// Applies `change` to the tunables in force, and puts the result in force.
fn change(change: impl FnOnce(&mut Tuning)) -> c_int {
    guarded(libc::ENOMEM, || {
        let mut kept = CHANGE.lock().unwrap_or_else(PoisonError::into_inner);
        let mut new = *tuning::get();
        change(&mut new);
        let tuning = match kept.iter().find(|old| ***old == new) {
            Some(old) => old,
            None => {
                let mut one = Vec::new();
                if one.try_reserve_exact(1).is_err() || kept.try_reserve(1).is_err() {
                    return libc::ENOMEM;
                }
                one.push(new);
                let Some(tuning) = one.leak().first() else { return libc::ENOMEM };
                kept.push(tuning);
                tuning
            }
        };
        tuning::set(tuning);
        0
    })
}

/// How many tunables there are.
///
/// Thread-safe. Async-signal-safe.
#[unsafe(no_mangle)]
pub extern "C" fn qspin_tunables_count() -> usize {
    TUNABLES
}

/// The name of the tunable at `index`, or NULL if there is none. The text is the library's.
///
/// Thread-safe. Async-signal-safe.
#[unsafe(no_mangle)]
pub extern "C" fn qspin_tunables_name(index: usize) -> *const c_char {
    returned(&NAMES, Some(index))
}

/// What the tunable `name` does, or NULL if there is none of that name. The text is the library's.
///
/// Thread-safe. Async-signal-safe.
///
/// # Safety
/// `name` is NULL, or ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qspin_tunables_about(name: *const c_char) -> *const c_char {
    // SAFETY: the caller's.
    returned(&ABOUTS, unsafe { find(name) }.ok())
}

/// The name of the value `value` of the tunable `name`, as "off" and "on" of a switch; NULL if it has no
/// such value, or values that are plain numbers. The text is the library's.
///
/// Thread-safe. Async-signal-safe.
///
/// # Safety
/// `name` is NULL, or ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qspin_tunables_value_name(
    name: *const c_char,
    value: u32,
) -> *const c_char {
    // SAFETY: the caller's.
    let at = unsafe { find(name) }.ok().filter(|_| (value as usize) < MAX_VALUE_NAMES);
    returned(&VALUE_NAMES, at.map(|at| at * MAX_VALUE_NAMES + value as usize))
}

/// Writes the smallest, the largest and the default value of the tunable `name`; a pointer that is NULL
/// is not written to.
///
/// Returns 0; EINVAL if `name` is NULL; ENOENT if there is no tunable of that name.
///
/// Thread-safe. Async-signal-safe.
///
/// # Safety
/// `name` is NULL, or ends with a zero; the other pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qspin_tunables_range(
    name: *const c_char,
    least: *mut u32,
    most: *mut u32,
    standard: *mut u32,
) -> c_int {
    // SAFETY: the caller's.
    let tunable: &Tunable = match unsafe { find(name) } {
        Ok(at) => &Tuning::SUPPORTED[at],
        Err(error) => return error,
    };
    let standard_value = (tunable.get)(&Tuning::DEFAULT);
    for (to, value) in [(least, tunable.min), (most, tunable.max), (standard, standard_value)] {
        if !to.is_null() {
            // SAFETY: the caller's.
            unsafe { to.write(value) };
        }
    }
    0
}

/// Writes the value in force of the tunable `name` into `*value`: a number, or the place of a named value.
///
/// Returns 0; EINVAL if `name` or `value` is NULL; ENOENT if there is no tunable of that name.
///
/// Thread-safe. Async-signal-safe.
///
/// # Safety
/// `name` is NULL, or ends with a zero; `value` is NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qspin_tunables_get(name: *const c_char, value: *mut u32) -> c_int {
    if value.is_null() {
        return libc::EINVAL;
    }
    // SAFETY: the caller's.
    match unsafe { find(name) } {
        // SAFETY: the caller's.
        Ok(at) => unsafe { value.write((Tuning::SUPPORTED[at].get)(tuning::get())) },
        Err(error) => return error,
    }
    0
}

/// Sets the tunable `name` for all locks of the process. Waits that are under way end as they began, or by
/// the new value. Every set of values that has been in force stays in memory, a few hundred bytes; one that
/// comes again is not kept twice.
///
/// Returns 0; EINVAL if `name` is NULL or `value` is out of the tunable's range; ENOENT if there is no
/// tunable of that name; ENOMEM. On an error nothing has changed.
///
/// Thread-safe. Not async-signal-safe: it allocates, and waits for other threads in it. In the child of a
/// fork() of a process with several threads it may be called after an exec only.
///
/// # Safety
/// `name` is NULL, or ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qspin_tunables_set(name: *const c_char, value: u32) -> c_int {
    // SAFETY: the caller's.
    let tunable: &Tunable = match unsafe { find(name) } {
        Ok(at) => &Tuning::SUPPORTED[at],
        Err(error) => return error,
    };
    if !(tunable.min..=tunable.max).contains(&value) {
        return libc::EINVAL;
    }
    change(|tuning| (tunable.set)(tuning, value))
}

/// Sets every tunable to its default.
///
/// Returns 0, or ENOMEM: nothing has changed then.
///
/// Thread-safe. Not async-signal-safe, as qspin_tunables_set().
#[unsafe(no_mangle)]
pub extern "C" fn qspin_tunables_reset() -> c_int {
    change(|tuning| *tuning = Tuning::DEFAULT)
}

/// Lets other processes of the same user change the tunables of this one, by `qspin stat PID --tune NAME=VALUE`,
/// from now on; a child of fork(), too. It costs an open file, numbered 200 or higher where that is allowed, and
/// a page of memory. To call it again is allowed.
///
/// Returns 0; EPERM if QSPIN_LISTEN=off stood in the environment when the library was loaded; ENOSYS if the
/// kernel gives no file in memory. On an error nothing has changed.
///
/// Thread-safe. Not async-signal-safe: it registers a handler of fork().
#[unsafe(no_mangle)]
pub extern "C" fn qspin_tunables_listen() -> c_int {
    match tuning::listen() {
        Ok(()) => 0,
        Err(ListenError::Refused) => libc::EPERM,
        Err(ListenError::NoFile) => libc::ENOSYS,
    }
}
