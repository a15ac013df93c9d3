//! A small program for GenMC: some threads, one lock, one counter that only the lock protects.
//!
//! `qspin-check emit` compiles it to LLVM IR, with a lock of the register and `threads` set by `--cfg`. It calls
//! nothing but what a model checker of C programs provides. Threads are made with GenMC's own
//! functions, which its `pthread.h` and `assert.h` turn `pthread_create` and `assert` into.

#![no_std]
// Set on the command line by `qspin-check emit`; no other build has them.
#![allow(unexpected_cfgs)]

use core::cell::UnsafeCell;
use core::ffi::{c_char, c_int, c_long, c_void};
use core::ptr;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use qspin_core::events::NoEvents;
use qspin_core::lock::ConstLock;
use qspin_core::lock::{RawLock, RawSharedLock};
use qspin_core::node::{LEVELS, Node, NodeId};
use qspin_core::platform::{Budget, CpuId, Platform, Until};
use qspin_core::tuning::Tuning;

#[cfg(threads = "4")]
const THREADS: usize = 4;
#[cfg(threads = "3")]
const THREADS: usize = 3;
#[cfg(not(any(threads = "3", threads = "4")))]
const THREADS: usize = 2;

/// The lock of the register whose `Id` is set by `--cfg`, and how it is used.
macro_rules! chosen {
    (() $($group:ident { $($id:ident: $module:ident = $lock:path, $about:literal;)* })*) => {
        $($(
            #[cfg($id)]
            use $lock as Lock;
            #[cfg($id)]
            use $group as kind;
        )*)*
    };
}

qspin_core::for_each_lock!(chosen);

#[cfg(not(chosen))]
use qspin_core::locks::queued::NativeLock as Lock;
#[cfg(not(chosen))]
use spinning as kind;

/// How a lock is used that excludes: all threads write.
#[allow(dead_code)] // One of the two kinds is used.
mod spinning {
    use super::{RawLock, Threads};

    pub(super) const READERS: usize = 0;

    #[inline(always)]
    pub(super) fn write<L: RawLock<Threads>>(lock: &L, p: &Threads, section: impl FnOnce()) {
        lock.acquire(p);
        section();
        // SAFETY: acquired above.
        unsafe { lock.release(p) };
    }

    pub(super) use write as read;
}

/// How a lock is used that readers share: the last thread only reads.
#[allow(dead_code)]
mod shared_spinning {
    use super::{RawSharedLock, Threads};

    pub(super) const READERS: usize = 1;

    #[inline(always)]
    pub(super) fn write<L: RawSharedLock<Threads>>(lock: &L, p: &Threads, section: impl FnOnce()) {
        lock.acquire_exclusive(p);
        section();
        // SAFETY: acquired above.
        unsafe { lock.release_exclusive(p) };
    }

    #[inline(always)]
    pub(super) fn read<L: RawSharedLock<Threads>>(lock: &L, p: &Threads, section: impl FnOnce()) {
        lock.acquire_shared(p);
        section();
        // SAFETY: acquired above.
        unsafe { lock.release_shared(p) };
    }
}

const WRITERS: usize = THREADS - kind::READERS;

unsafe extern "C" {
    fn __VERIFIER_thread_create(
        attributes: *const c_void,
        body: extern "C" fn(*mut c_void) -> *mut c_void,
        argument: *mut c_void,
    ) -> c_int;
    fn __VERIFIER_thread_join(thread: c_long, result: *mut *mut c_void) -> c_int;
    fn __VERIFIER_assert_fail(claim: *const c_char, file: *const c_char, line: c_int);
}

static NODES: [Node<AtomicU32>; THREADS * LEVELS as usize] =
    [const { Node::UNUSED }; THREADS * LEVELS as usize];

/// The threads of this program, as CPUs.
struct Threads {
    cpu: u32,
}

/// A bounded wait is one look long: a longer one is the same with more executions.
static TUNING: Tuning = {
    let mut tuning = Tuning::DEFAULT;
    tuning.pending_looks = 1;
    tuning.simple_looks = 1;
    tuning.yield_looks = 1;
    tuning
};

impl Platform for Threads {
    type Word = AtomicU32;
    type Address = AtomicUsize;
    type Events = NoEvents;

    #[inline(always)]
    fn events(&self) -> &NoEvents {
        &NoEvents
    }

    #[inline(always)]
    fn tuning(&self) -> &Tuning {
        &TUNING
    }

    #[inline(always)]
    fn cpu(&self) -> Option<CpuId> {
        CpuId::new(self.cpu)
    }

    #[inline(always)]
    fn node(&self, id: NodeId) -> &Node<AtomicU32> {
        // SAFETY: only numbers of this program's threads are asked for, and each has its nodes.
        // A bounds check would bring a panic, and with it half of the core library, into the IR.
        unsafe { NODES.get_unchecked((id.number() - NodeId::FIRST) as usize) }
    }

    #[inline(always)]
    fn wait_until(&self, word: &AtomicU32, until: Until, budget: Budget, order: Ordering) -> u32 {
        let mut looks = 0;
        loop {
            let seen = word.load(order);
            looks += 1;
            if until.met_by(seen) || matches!(budget, Budget::Looks(most) if looks >= most) {
                return seen;
            }
        }
    }

    #[inline(always)]
    fn relax(&self, _: u32) {}
}

struct Shared {
    lock: Lock<AtomicU32>,
    counter: UnsafeCell<u32>,
}

// SAFETY: the counter is only touched by the owner of the lock: that is what is to be checked.
unsafe impl Sync for Shared {}

static SHARED: Shared = Shared { lock: Lock::UNLOCKED, counter: UnsafeCell::new(0) };

extern "C" fn body(argument: *mut c_void) -> *mut c_void {
    let cpu = argument.addr();
    let p = Threads { cpu: cpu as u32 };
    let counter = SHARED.counter.get();
    if cpu < WRITERS {
        // SAFETY: the lock is held.
        kind::write(&SHARED.lock, &p, || unsafe { *counter += 1 });
    } else {
        // SAFETY: the lock is held for reading. Volatile, so that the read is in the program.
        kind::read(&SHARED.lock, &p, || unsafe {
            counter.read_volatile();
        });
    }
    ptr::null_mut()
}

// SAFETY: this file is not linked; the checker that loads it has no other `main`.
#[unsafe(no_mangle)]
extern "C" fn main() -> c_int {
    let mut threads = [0; THREADS];
    let mut cpu = 0;
    while cpu < THREADS {
        let argument = ptr::without_provenance_mut(cpu);
        // SAFETY: `body` takes a number, not a place.
        let thread = unsafe { __VERIFIER_thread_create(ptr::null(), body, argument) };
        threads[cpu] = c_long::from(thread);
        cpu += 1;
    }
    for thread in threads {
        // SAFETY: made above, joined once.
        unsafe { __VERIFIER_thread_join(thread, ptr::null_mut()) };
    }
    // SAFETY: every thread has ended.
    if unsafe { *SHARED.counter.get() } as usize != WRITERS {
        // SAFETY: the strings end with zero.
        unsafe { __VERIFIER_assert_fail(c"every section counts".as_ptr(), c"client".as_ptr(), 1) };
    }
    0
}
