//! Tunables that another process changes while threads wait: `qspin stat PID --tune NAME=VALUE`.
//!
//! # Problem
//! A module parameter of Linux can be written while the system runs. A library has no such file; and it must
//! not have a thread that watches one, nor a signal of its own.
//!
//! # How
//! A process that listens offers a file in memory ([`Page`]), found among its open files. Another process of the
//! same user writes requests there, and then `asked`. Each slow path looks at that one word, when it looks for
//! the tunables. The first that finds it set takes the requests, and puts them in force. Fast paths read no
//! tunable, so they look at nothing.
//!
//! ```text
//!  another process                          a thread of this process, on a slow path
//!  requests[i] = REQUEST | value            asked != 0 ─► asked = 0, each request is taken, put in force,
//!  asked = 1                                              values, then heeded + 1
//! ```
//!
//! A child of `fork` has a file of its own, which it makes when a thread of it first waits; until then it has the
//! tunables that its parent had.
//!
//! # Invariants
//! * **LISTEN-1** Only the process that made a page takes its requests: `LISTENER` is its generation plus one,
//!   stored after the page, and each request is taken after a look at that.
//! * **LISTEN-2** What stands in a page was written by any process: a value out of its tunable's range is
//!   dropped.
//! * **LISTEN-3** `asked` is cleared before requests are taken, so a later request is seen by a later look.
//!
//! # Limits
//! The child of a bare `clone` does not know that it is one, until a request comes for its parent: it takes none,
//! and makes a file of its own then. (Where the kernel does not tell generations apart, before Linux 4.14, it
//! takes its parent's requests.)

use core::ptr;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32};

use super::generation;
use super::publish::{File, Text};
use super::syscall::say_unless_blocked;
use super::tunables::share;
use crate::tuning::{self, ListenError, Tuning};

/// Bytes that describe the page, as text.
const TEXT: usize = 3072;
/// In a request: that it is one.
const REQUEST: u32 = 1 << 31;
/// Version of the format. Lines may be added without a new one.
const FORMAT: u64 = 1;

/// What other processes see.
#[repr(C)]
struct Page {
    text: [AtomicU8; TEXT],
    /// Not 0 if there are requests.
    asked: AtomicU32,
    /// How often requests were taken.
    heeded: AtomicU32,
    /// The tunables in force.
    values: [AtomicU32; Tuning::ALL.len()],
    requests: [AtomicU32; Tuning::ALL.len()],
}

/// What slow paths look at: `asked` of the page, or one of the next two.
static ASKED: AtomicPtr<AtomicU32> = AtomicPtr::new((&raw const NEVER).cast_mut());
static NEVER: AtomicU32 = AtomicU32::new(0);
/// For what there is to be done once, at the next look.
static ONCE: AtomicU32 = AtomicU32::new(1);

static PAGE: AtomicPtr<Page> = AtomicPtr::new(ptr::null_mut());
static FILE: File = File::none();
/// Generation plus one of the process that listens (LISTEN-1); 0 if none does.
static LISTENER: AtomicU32 = AtomicU32::new(0);
/// Generation plus one of the process whose thread makes a page, or has made it.
static MAKER: AtomicU32 = AtomicU32::new(0);

/// Whether the environment forbids it, and whether what it says of tunables is wrong.
static REFUSED: AtomicBool = AtomicBool::new(false);
static MALFORMED: AtomicBool = AtomicBool::new(false);

/// See [`crate::tuning::listen()`].
pub(crate) fn listen() -> Result<(), ListenError> {
    if REFUSED.load(Relaxed) {
        return Err(ListenError::Refused);
    }
    static HANDLER: AtomicBool = AtomicBool::new(false);
    if !HANDLER.swap(true, Relaxed) {
        // SAFETY: a function that stays loaded as long as this code does.
        unsafe { libc::pthread_atfork(None, None, Some(in_the_child)) };
    }
    make();
    if PAGE.load(Relaxed).is_null() { Err(ListenError::NoFile) } else { Ok(()) }
}

/// Notes what the environment says, at load.
pub(crate) fn note(refused: bool, malformed: bool) {
    REFUSED.store(refused, Relaxed);
    if malformed {
        MALFORMED.store(true, Relaxed);
        ASKED.store((&raw const ONCE).cast_mut(), Relaxed);
    }
}

/// Whether a slow path is to call [`heed`].
#[inline(always)]
pub(crate) fn is_asked() -> bool {
    // SAFETY: a static, or part of a page that stays mapped (TUNABLES-1).
    // ORDERING: Acquire pairs with the Release of `make`: the page that it lies in.
    unsafe { (*ASKED.load(Acquire)).load(Relaxed) != 0 }
}

/// In the child of a fork: the page is its parent's.
extern "C" fn in_the_child() {
    if LISTENER.load(Relaxed) != 0 {
        ASKED.store((&raw const ONCE).cast_mut(), Relaxed);
    }
}

/// Does what was asked for. Async-signal-safe.
#[cold]
pub(crate) fn heed() {
    if MALFORMED.swap(false, Relaxed) {
        say_unless_blocked(
            b"qspin: QSPIN_TUNE is malformed, so not all of it counts: it takes NAME=VALUE,... as in `qspin locks --tunables`\n",
        );
    }
    // ORDERING: Acquire pairs with the Release of `make`.
    match LISTENER.load(Acquire) {
        0 => silence(),
        // LISTEN-1.
        listener if listener != generation::current() + 1 => make(),
        // SAFETY: null, or the page that this process made, which stays mapped.
        _ => match unsafe { PAGE.load(Relaxed).as_ref() } {
            Some(page) => take(page),
            None => silence(),
        },
    }
}

/// There is no page to look at.
fn silence() {
    ASKED.store((&raw const NEVER).cast_mut(), Relaxed);
}

/// Takes the requests, and puts them in force.
fn take(page: &'static Page) {
    // LISTEN-3. ORDERING: Acquire: the requests before it. They were written by a system call.
    if page.asked.swap(0, AcqRel) == 0 {
        // Another thread takes them, or a handler has.
        return;
    }
    let mut requests = [0; Tuning::ALL.len()];
    for (request, place) in requests.iter_mut().zip(&page.requests) {
        *request = place.swap(0, Relaxed);
    }
    tuning::change(|new| {
        for (tunable, request) in Tuning::ALL.iter().zip(requests) {
            let value = request & !REQUEST;
            // LISTEN-2.
            if request & REQUEST != 0 && (tunable.min..=tunable.max).contains(&value) {
                (tunable.set)(new, value);
            }
        }
    });
    // ORDERING: Release: the values before it.
    page.heeded.fetch_add(1, Release);
}

/// Tells other processes what is in force.
pub(crate) fn tell(tuning: &Tuning) {
    let made_here = LISTENER.load(Acquire) == MAKER.load(Relaxed);
    // SAFETY: as in `heed`.
    if let Some(page) = unsafe { PAGE.load(Relaxed).as_ref() }
        && made_here
    {
        for (tunable, place) in Tuning::ALL.iter().zip(&page.values) {
            place.store((tunable.get)(tuning), Relaxed);
        }
    }
}

/// Makes the page of this process, unless it has one or another thread makes it. Async-signal-safe.
fn make() {
    let me = generation::current() + 1;
    let maker = MAKER.load(Relaxed);
    if maker == me || MAKER.compare_exchange(maker, me, Relaxed, Relaxed).is_err() {
        return;
    }
    // The parent's file, in a child.
    FILE.close();
    // SAFETY: atomics only.
    let page = unsafe { share::<Page>("qspin-tunables\0", &FILE) };
    PAGE.store(page.map_or(ptr::null_mut(), |page| ptr::from_ref(page).cast_mut()), Relaxed);
    match page {
        Some(page) => {
            // ORDERING: Release pairs with the Acquire of `is_asked`. The first look comes before other processes
            // know of the page.
            ASKED.store((&raw const page.asked).cast_mut(), Release);
            // LISTEN-1. ORDERING: Release pairs with the Acquire of `heed`.
            LISTENER.store(me, Release);
            describe(page);
            tell(tuning::in_force());
        }
        None => {
            silence();
            LISTENER.store(me, Release);
        }
    }
}

/// Writes what the page holds, as text.
fn describe(page: &'static Page) {
    let mut text = Text::after_the_first_byte(&page.text);
    text.words(&["spin-tune"]).number(FORMAT).end_line();
    // SAFETY: a question without arguments.
    text.words(&["pid"]).number(unsafe { libc::getpid() } as u64).end_line();
    text.words(&["words"]).number(TEXT as u64).number(Tuning::ALL.len() as u64).end_line();
    for tunable in Tuning::ALL {
        text.words(&["tunable", tunable.name]).end_line();
    }
    text.words(&["end"]).end_line();
    // ORDERING: Release: a reader that sees the first letter sees the others.
    page.text[0].store(b'q', Release);
}

/// The longest text: the lines about the page, and a line a tunable.
const LONGEST: usize = {
    let mut length = 128;
    let mut index = 0;
    while index < Tuning::ALL.len() {
        length += "tunable ".len() + Tuning::ALL[index].name.len() + 1;
        index += 1;
    }
    length
};
const _: () = assert!(LONGEST < TEXT);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_out_of_range_is_dropped_and_others_are_taken() {
        let page: &'static Page = Box::leak(Box::new(Page {
            text: [const { AtomicU8::new(0) }; TEXT],
            asked: AtomicU32::new(1),
            heeded: AtomicU32::new(0),
            values: [const { AtomicU32::new(0) }; Tuning::ALL.len()],
            requests: [const { AtomicU32::new(0) }; Tuning::ALL.len()],
        }));
        let _turn = tuning::tests::TURN.lock().unwrap();
        let at = |name| Tuning::ALL.iter().position(|tunable| tunable.name == name).unwrap();
        let before = *tuning::in_force();
        for (name, value) in [("kick_ahead", 6), ("adaptive", 4), ("check_polls", 77)] {
            page.requests[at(name)].store(REQUEST | value, Relaxed);
        }
        // No request: the mark is missing.
        page.requests[at("short_divisor")].store(5, Relaxed);
        take(page);
        let after = *tuning::in_force();
        assert_eq!(after, Tuning { check_polls: 77, ..before });
        assert_eq!((page.asked.load(Relaxed), page.heeded.load(Relaxed)), (0, 1));
        assert!(page.requests.iter().all(|request| request.load(Relaxed) == 0));
        // Nothing is asked for: nothing is heeded.
        take(page);
        assert_eq!(page.heeded.load(Relaxed), 1);
        tuning::change(|new| new.check_polls = before.check_polls);
    }
}
