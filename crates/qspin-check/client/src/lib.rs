//! A small program for GenMC: some threads, one lock, one counter that only the lock protects.
//!
//! `qspin-check emit` compiles it to LLVM IR for a lock of its catalogue. It calls nothing but what a model checker of C
//! programs provides. Threads are made with GenMC's own functions, which its `pthread.h` and `assert.h` turn
//! `pthread_create` and `assert` into.

// Set on the command line by `qspin-check emit`; no other build has them.
#![allow(unexpected_cfgs)]

mod checker;
mod subject;
mod threads;
mod word;

// The same files as the other checkers use. A client needs a part of each.
#[allow(dead_code, unreachable_pub)]
#[path = "../../src/subject/beside.rs"]
mod beside;
#[allow(dead_code, unreachable_pub)]
#[path = "../../src/contend.rs"]
mod contend;
#[allow(dead_code, unreachable_pub)]
#[path = "../../src/subject/convert.rs"]
mod convert;
#[allow(dead_code, unreachable_pub)]
#[path = "../../src/subject/no_pending.rs"]
mod no_pending;

use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr;

use contend::Contend;
use scenario::Mode;
use subject::{READERS, SECTIONS, Subject, THREADS};
use threads::Threads;

/// What the files above name.
mod scenario {
    /// How a lock is acquired.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum Mode {
        /// Alone.
        Write,
        /// With other readers.
        Read,
        /// The same, and it may become the writer.
        #[allow(dead_code)]
        Upgradable,
    }
}

/// What the checkers that record an execution hold against each other: what a notification counts, and how a wait ends.
mod trace {
    pub(crate) fn notified(_: u32) {}
    pub(crate) fn wait_ended(_: bool) {}
}

const WRITERS: usize = THREADS - READERS;

struct Shared {
    /// All words of a free lock are zero, and so is a static without an initialiser: stores to it at run time might be
    /// merged to a wider one, which no checker understands.
    lock: MaybeUninit<Subject>,
    counter: UnsafeCell<u32>,
}

// SAFETY: the counter is only touched by the owner of the lock: that is what is to be checked.
unsafe impl Sync for Shared {}

static SHARED: Shared = Shared { lock: MaybeUninit::zeroed(), counter: UnsafeCell::new(0) };

extern "C" fn body(argument: *mut c_void) -> *mut c_void {
    let cpu = argument.addr();
    // SAFETY: it is zeroed, which is a free lock.
    let lock = unsafe { SHARED.lock.assume_init_ref() };
    let p = Threads::new(cpu as u32, ptr::from_ref(lock).cast());
    let mode = if cpu < WRITERS { Mode::Write } else { Mode::Read };
    let mut section = 0;
    while section < SECTIONS {
        Contend::<Threads>::enter(lock, &p, mode);
        let counter = SHARED.counter.get();
        // SAFETY: the lock is held in this mode. Volatile, so that the accesses are in the program.
        unsafe {
            let seen = counter.read_volatile();
            if mode == Mode::Write {
                counter.write_volatile(seen + 1);
            }
        }
        // SAFETY: acquired above.
        unsafe { Contend::<Threads>::leave(lock, &p, mode) };
        section += 1;
    }
    ptr::null_mut()
}

// SAFETY: this file is not linked; the checker that loads it has no other `main`.
#[unsafe(no_mangle)]
extern "C" fn main() -> c_int {
    let mut threads = [0; THREADS];
    let mut cpu = 0;
    while cpu < THREADS {
        threads[cpu] = checker::start(body, ptr::without_provenance_mut(cpu));
        cpu += 1;
    }
    for thread in threads {
        checker::join(thread);
    }
    // SAFETY: every thread has ended.
    if unsafe { *SHARED.counter.get() } as usize != WRITERS * SECTIONS {
        checker::fail();
    }
    0
}
