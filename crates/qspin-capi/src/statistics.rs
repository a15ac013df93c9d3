//! Event counters: names, a snapshot, a reset.

use core::ffi::{c_char, c_int};

use qspin::events::{Counted, CounterGroup, Event};

use crate::counting;
use crate::text::{passed, returned, texts};

const COUNTERS: usize = Event::ALL.len();
const LONGEST: usize = 32;

texts!(NAMES: [LONGEST; COUNTERS], at => Event::ALL[at].name());
texts!(ALIASES: [LONGEST; COUNTERS], at => match Event::ALL[at].alias() {
    Some(alias) => alias,
    None => "",
});

/// Lets the locks count their events from now on, all of the process together; until then they do not.
/// The first event opens a file in memory, by which `qspin stat` of another process sees the counters;
/// without a file descriptor to be had for it, no other process sees them. Cannot fail.
///
/// Thread-safe. Async-signal-safe.
#[unsafe(no_mangle)]
pub extern "C" fn qspin_statistics_start() {
    counting::switch(true);
}

/// Lets the locks count no more. What was counted stays. Cannot fail.
///
/// Thread-safe. Async-signal-safe.
#[unsafe(no_mangle)]
pub extern "C" fn qspin_statistics_stop() {
    counting::switch(false);
}

/// Whether the locks count.
///
/// Thread-safe. Async-signal-safe.
#[unsafe(no_mangle)]
pub extern "C" fn qspin_statistics_is_on() -> bool {
    counting::is_on()
}

/// How many counters there are. It may grow with the library's version; an index never changes its
/// meaning while the number in the library's soname stays.
///
/// Thread-safe. Async-signal-safe.
#[unsafe(no_mangle)]
pub extern "C" fn qspin_statistics_count() -> usize {
    COUNTERS
}

/// The name of the counter at `index`, or NULL if there is none. The text is the library's.
///
/// Thread-safe. Async-signal-safe.
#[unsafe(no_mangle)]
pub extern "C" fn qspin_statistics_name(index: usize) -> *const c_char {
    returned(&NAMES, Some(index))
}

/// The name that Linux has for the counter at `index`, or NULL if it has no other. The text is the
/// library's.
///
/// Thread-safe. Async-signal-safe.
#[unsafe(no_mangle)]
pub extern "C" fn qspin_statistics_alias(index: usize) -> *const c_char {
    returned(&ALIASES, Some(index))
}

/// Writes what was counted since the last reset into the first `capacity` elements of `counts`, in the
/// order of the names; what has no counter is left as it is. Each count is exact once the threads that
/// count are done; their relation is approximate before. Cannot fail.
///
/// Returns the number of counters, which may be more than `capacity`. `counts` may be NULL if `capacity`
/// is 0.
///
/// Thread-safe, if no two calls write to the same array. Async-signal-safe.
///
/// # Safety
/// `counts` points to `capacity` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qspin_statistics_snapshot(counts: *mut u64, capacity: usize) -> usize {
    if !counts.is_null() {
        for (at, count) in Counted::group().counts().into_iter().take(capacity).enumerate() {
            // SAFETY: the caller's; `at` is below `capacity`.
            unsafe { counts.add(at).write(count) };
        }
    }
    COUNTERS
}

/// Writes the counter `name` (or Linux's name for it) into `*count`.
///
/// Returns 0; EINVAL if `name` or `count` is NULL; ENOENT if there is no such counter. On an error
/// `*count` is left as it is.
///
/// Thread-safe. Async-signal-safe.
///
/// # Safety
/// The pointers are NULL or valid; `name` ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qspin_statistics_get(name: *const c_char, count: *mut u64) -> c_int {
    if name.is_null() || count.is_null() {
        return libc::EINVAL;
    }
    // SAFETY: CAPI-4.
    let name = unsafe { passed(name) };
    let named = |event: &Event| name == Some(event.name()) || name == event.alias();
    let Some(event) = Event::ALL.into_iter().find(|event| name.is_some() && named(event)) else {
        return libc::ENOENT;
    };
    // SAFETY: the caller's.
    unsafe { count.write(Counted::count_of(event)) };
    0
}

/// Lets every counter begin at zero again. Cannot fail.
///
/// Thread-safe. Async-signal-safe.
#[unsafe(no_mangle)]
pub extern "C" fn qspin_statistics_reset() {
    Counted::reset();
}
