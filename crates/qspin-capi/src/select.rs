//! Which lock `qspin_select_t` is.

use core::ffi::{c_char, c_int};

use qspin::select::{self, Choice, Hints};

use crate::edge::guarded;
use crate::text::{passed, returned, texts};

/// The name of a choice, as C sees it.
fn name(choice: Choice) -> *const c_char {
    texts!(NAMES: [32; Choice::ALL.len()], at => Choice::ALL[at].name());
    returned(&NAMES, Choice::ALL.iter().position(|&other| other == choice))
}

/// Chooses anew what qspin_select_t is, by what is known of the machine now and what the program says
/// here: `threads`, how many of its threads will lock, or 0 if that is not known; `dedicated`, whether the
/// CPUs are its alone: 1 if so, 0 if not, -1 if that is not known. What QSPIN_LOCK, QSPIN_THREADS and
/// QSPIN_DEDICATED say in the environment goes before.
///
/// It counts only before the first operation on a lock of this kind, which fixes the choice:
/// qspin_select_chosen() says what is in force. From then on qspin_mutex_t and qspin_rwlock_t go by the quota
/// of CPU time that was found, and the locks that prefer near waiters by where the CPUs are: call it at the
/// start of main() for these, too. Nothing of that is looked at when the library is loaded.
///
/// Returns 0; EINVAL if `dedicated` is another number; EBUSY if the choice was fixed before, to another
/// lock than the one that would be chosen now; ENOMEM if the machine could not be looked at.
///
/// Thread-safe. Not async-signal-safe: it reads files and allocates.
#[unsafe(no_mangle)]
pub extern "C" fn qspin_select_decide(threads: u32, dedicated: c_int) -> c_int {
    let dedicated = match dedicated {
        -1 => None,
        0 => Some(false),
        1 => Some(true),
        _ => return libc::EINVAL,
    };
    guarded(libc::ENOMEM, || {
        let threads = (threads > 0).then_some(threads);
        let verdict = select::decide(Hints { threads, dedicated, ..Hints::NONE });
        if select::chosen() == verdict.choice { 0 } else { libc::EBUSY }
    })
}

/// Takes the lock called `choice` for qspin_select_t, whatever the machine and the environment:
/// "native", "paravirt", "backoff", "cna" or "cna-paravirt".
///
/// Returns 0; EINVAL if `choice` is NULL; ENOENT if no lock that can be chosen is called so; EBUSY if
/// the choice was fixed before, to another lock.
///
/// Thread-safe. Async-signal-safe.
///
/// # Safety
/// `choice` is NULL, or ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qspin_select_force(choice: *const c_char) -> c_int {
    if choice.is_null() {
        return libc::EINVAL;
    }
    // SAFETY: CAPI-4.
    let Some(choice) = unsafe { passed(choice) }.and_then(Choice::named) else {
        return libc::ENOENT;
    };
    if select::force(choice).is_ok() { 0 } else { libc::EBUSY }
}

/// The name of the lock that qspin_select_t is, as of now: final if qspin_select_is_fixed(). If none was
/// chosen yet, one is chosen now, as by qspin_select_decide(0, -1). The text is the library's.
///
/// Returns NULL if the machine could not be looked at.
///
/// Thread-safe. Async-signal-safe once a lock was chosen; before, it reads files and allocates.
#[unsafe(no_mangle)]
pub extern "C" fn qspin_select_chosen() -> *const c_char {
    guarded(core::ptr::null(), || name(select::chosen()))
}

/// Whether an operation on a qspin_select_t has fixed the choice.
///
/// Thread-safe. Async-signal-safe.
#[unsafe(no_mangle)]
pub extern "C" fn qspin_select_is_fixed() -> bool {
    select::is_fixed()
}
