//! The holder of a lock asks not to be preempted, by the kernel's time slice extensions.
//!
//! # Source
//! Linux's scheduler time slice extensions, from 7.0 on (Thomas Gleixner, Peter Zijlstra). A thread sets
//! `slice_ctrl.request` in its rseq area. An interrupt that would preempt it may then grant it a little more
//! time (5 to 50 µs), and sets `granted`; after the release the thread gives the rest back by
//! `rseq_slice_yield`. `Documentation/userspace-api/rseq.rst`, `include/uapi/linux/{rseq,prctl}.h`, and number
//! 471 in `arch/x86/entry/syscalls`.
//!
//! # States of a thread
//! ```text
//!             the first release                     acquire
//!  UNKNOWN ──────────────────────► WILLING + 0 ◄───────────────► WILLING + n
//!     └────────────────────────►  UNABLE             release
//! ```
//! Enabling is a system call: it comes after the first release of a thread rather than inside its first
//! critical section, which goes without the hint.
//!
//! # Invariants
//! * **HOLDER-1** In WILLING + n the thread holds n locks, not counting those acquired before it became
//!   WILLING. The step from 0 to 1 sets the request; the step back to 0 withdraws it and gives back what was
//!   granted.
//! * **HOLDER-2** A signal handler may come between any two steps, and leaves the state as it found it. The
//!   count changes before the request does: a handler that finds 1 or more leaves the request alone; one that
//!   finds 0 has set and withdrawn the request before the interrupted step goes on.
//! * **HOLDER-3** The request is withdrawn only after the release: giving the CPU back earlier would be the
//!   very preemption that was to be avoided.
//!
//! # Limits
//! A guard that another thread drops, or that is forgotten, counts as held for ever: its thread has no hint
//! from then on. A system call inside the critical section ends a grant, so the hint is for short sections.
//! Where the kernel has no extension (before 7.0; and, from some versions on, with a C library that registers
//! the old, short area) a hint costs one load, which finds UNABLE.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

use qspin_core::processor::compiler_barrier;

use super::rseq::{self, Slice};
use super::syscall::syscall;
use crate::platform::holder::Unavailable;

/// This thread has acquired a lock.
#[inline]
pub(crate) fn acquired() {
    STATE.with(|state| enter(state, &Mine));
}

/// This thread has released a lock.
#[inline]
pub(crate) fn released() {
    STATE.with(|state| exit(state, &Mine));
}

const UNKNOWN: u32 = 0;
const UNABLE: u32 = 1;
/// Plus the number of locks that the thread holds.
const WILLING: u32 = 2;

thread_local! {
    // An atomic since signal handlers of this thread access it, too (HOLDER-2). Without a destructor.
    static STATE: AtomicU32 = const { AtomicU32::new(UNKNOWN) };
}

/// The kernel under the state machine, or a fake.
trait Kernel {
    /// Asks the kernel to enable the extension for this thread. Returns whether it is enabled.
    fn enable(&self) -> bool;
    fn slice(&self) -> &Slice;
    fn yield_slice(&self);
}

struct Mine;

impl Kernel for Mine {
    #[cold]
    fn enable(&self) -> bool {
        available().is_ok()
    }

    #[inline]
    fn slice(&self) -> &Slice {
        // SAFETY: called only after `enable` has found the area of this thread (RSEQ-1), and the reference is
        // used before the call ends.
        unsafe { &(*rseq::mine()).slice }
    }

    #[cold]
    fn yield_slice(&self) {
        // SAFETY: takes no arguments, and does nothing without a grant.
        unsafe { syscall(RSEQ_SLICE_YIELD, []) };
    }
}

#[inline]
fn enter(state: &AtomicU32, kernel: &impl Kernel) {
    let seen = state.load(Relaxed);
    if seen < WILLING {
        return;
    }
    // HOLDER-1, HOLDER-2.
    state.store(seen + 1, Relaxed);
    compiler_barrier();
    if seen == WILLING {
        kernel.slice().request.store(1, Relaxed);
        compiler_barrier();
    }
}

#[inline]
fn exit(state: &AtomicU32, kernel: &impl Kernel) {
    let seen = state.load(Relaxed);
    if seen > WILLING {
        leave(state, seen, kernel);
    } else if seen == UNKNOWN {
        decide(state, kernel);
    }
}

#[inline]
fn leave(state: &AtomicU32, seen: u32, kernel: &impl Kernel) {
    compiler_barrier();
    state.store(seen - 1, Relaxed);
    compiler_barrier();
    if seen - 1 == WILLING {
        // HOLDER-1, HOLDER-3.
        kernel.slice().request.store(0, Relaxed);
        compiler_barrier();
        if kernel.slice().granted.load(Relaxed) != 0 {
            kernel.yield_slice();
        }
    }
}

#[cold]
fn decide(state: &AtomicU32, kernel: &impl Kernel) {
    let decided = if kernel.enable() { WILLING } else { UNABLE };
    // HOLDER-2: a handler that came in between may have decided already, but holds nothing any more.
    let _ = state.compare_exchange(UNKNOWN, decided, Relaxed, Relaxed);
}

const PR_RSEQ_SLICE_EXTENSION: u64 = 79;
const PR_RSEQ_SLICE_EXTENSION_GET: u64 = 1;
const PR_RSEQ_SLICE_EXTENSION_SET: u64 = 2;
const PR_RSEQ_SLICE_EXT_ENABLE: u64 = 1;
const RSEQ_SLICE_YIELD: i64 = 471;
/// An error number that is meant for use inside the kernel only, but is returned here.
const ENOTSUPP: i32 = 524;

/// [`available`](crate::platform::holder::available).
pub(crate) fn available() -> Result<(), Unavailable> {
    let prctl = |command: u64, value: u64| {
        // SAFETY: touches only this thread's area, which is meant for that; a kernel that does not know the
        // first number answers EINVAL.
        unsafe { syscall(libc::SYS_prctl, [PR_RSEQ_SLICE_EXTENSION, command, value, 0, 0]) }
    };
    // SAFETY: this thread's own area, if it has one (RSEQ-1).
    let area = unsafe { rseq::mine().as_ref() }.ok_or(Unavailable::NoArea)?;
    if !area.offers_slices() {
        // The kernel punishes enabling what is not offered.
        return outcome(prctl(PR_RSEQ_SLICE_EXTENSION_GET, 0)).and(Err(Unavailable::NotOffered));
    }
    outcome(prctl(PR_RSEQ_SLICE_EXTENSION_SET, PR_RSEQ_SLICE_EXT_ENABLE))
}

fn outcome(result: i64) -> Result<(), Unavailable> {
    match -result as i32 {
        0 => Ok(()),
        libc::EINVAL => Err(Unavailable::NotInKernel),
        ENOTSUPP => Err(Unavailable::NotOffered),
        libc::ENXIO => Err(Unavailable::NoArea),
        error => Err(Unavailable::Refused(error)),
    }
}

#[cfg(test)]
mod tests {
    use core::cell::{Cell, RefCell};

    use super::*;

    /// A thread on a kernel that records what it is asked for. With a handler, a signal comes at every step
    /// that can be told from the next; the handler locks twice, and unlocks.
    struct Fake {
        state: AtomicU32,
        slice: Slice,
        able: bool,
        handler: Cell<bool>,
        enabled: Cell<u32>,
        log: RefCell<Vec<&'static str>>,
    }

    impl Fake {
        fn new(able: bool) -> Self {
            Self {
                state: AtomicU32::new(UNKNOWN),
                slice: Slice::default(),
                able,
                handler: Cell::new(false),
                enabled: Cell::new(0),
                log: RefCell::new(Vec::new()),
            }
        }

        /// A thread that has decided.
        fn willing() -> Self {
            let fake = Self::new(true);
            fake.exit();
            assert_eq!(fake.state.load(Relaxed), WILLING);
            fake
        }

        fn enter(&self) {
            enter(&self.state, self);
        }

        fn exit(&self) {
            exit(&self.state, self);
        }

        fn signal(&self) {
            if self.handler.replace(false) {
                let before = self.state.load(Relaxed);
                for _ in 0..2 {
                    self.enter();
                }
                for _ in 0..2 {
                    self.exit();
                }
                let after = self.state.load(Relaxed);
                assert!(after == before || before == UNKNOWN && after == WILLING);
                self.handler.set(true);
            }
        }

        fn requests(&self) -> bool {
            self.slice.request.load(Relaxed) != 0
        }

        /// What the kernel does instead of a preemption.
        fn grant(&self) {
            assert_eq!(self.slice.request.swap(0, Relaxed), 1);
            self.slice.granted.store(1, Relaxed);
        }
    }

    impl Kernel for Fake {
        fn enable(&self) -> bool {
            self.signal();
            self.enabled.set(self.enabled.get() + 1);
            self.able
        }

        fn slice(&self) -> &Slice {
            self.signal();
            &self.slice
        }

        fn yield_slice(&self) {
            self.signal();
            if self.slice.granted.swap(0, Relaxed) != 0 {
                self.log.borrow_mut().push("yield");
            }
        }
    }

    #[test]
    fn the_first_lock_decides_when_it_is_released() {
        let fake = Fake::new(true);
        fake.enter();
        assert_eq!((fake.enabled.get(), fake.requests()), (0, false));
        fake.exit();
        assert_eq!((fake.enabled.get(), fake.requests()), (1, false));
        fake.enter();
        assert!(fake.requests());
        fake.exit();
        assert!(!fake.requests());
        assert_eq!(fake.enabled.get(), 1, "decided once");
    }

    #[test]
    fn where_the_kernel_cannot_nothing_is_asked_of_it_again() {
        let fake = Fake::new(false);
        for _ in 0..3 {
            fake.enter();
            fake.enter();
            assert!(!fake.requests());
            fake.exit();
            fake.exit();
        }
        assert_eq!((fake.enabled.get(), fake.state.load(Relaxed)), (1, UNABLE));
    }

    #[test]
    fn only_the_outermost_release_ends_the_request() {
        let fake = Fake::willing();
        for _ in 0..3 {
            fake.enter();
            assert!(fake.requests());
        }
        for _ in 0..2 {
            fake.exit();
            assert!(fake.requests());
        }
        fake.exit();
        assert!(!fake.requests());
        assert!(fake.log.borrow().is_empty(), "nothing was granted, so nothing is given back");
    }

    #[test]
    fn what_was_granted_is_given_back_once_and_only_outside() {
        let fake = Fake::willing();
        fake.enter();
        fake.enter();
        fake.grant();
        fake.exit();
        assert!(fake.log.borrow().is_empty(), "a lock is still held");
        fake.exit();
        assert_eq!(*fake.log.borrow(), ["yield"]);
        fake.enter();
        fake.exit();
        assert_eq!(fake.log.borrow().len(), 1);
    }

    #[test]
    fn a_handler_that_locks_at_any_step_leaves_the_request_as_it_was() {
        let fake = Fake::new(true);
        fake.handler.set(true);
        fake.exit();
        for _ in 0..3 {
            fake.enter();
            assert!(fake.requests());
            fake.signal();
            assert!(fake.requests());
            fake.enter();
            fake.exit();
            assert!(fake.requests());
            fake.exit();
            assert!(!fake.requests());
            fake.signal();
            assert!(!fake.requests());
            assert_eq!(fake.state.load(Relaxed), WILLING);
        }
    }

    #[test]
    fn more_releases_than_acquisitions_do_no_harm() {
        let fake = Fake::willing();
        // The guard came from another thread.
        fake.exit();
        fake.exit();
        fake.enter();
        assert!(fake.requests());
        fake.exit();
        assert!(!fake.requests());
    }

    #[test]
    fn every_answer_of_the_kernel_has_its_reason() {
        assert_eq!(outcome(0), Ok(()));
        assert_eq!(outcome(-i64::from(libc::EINVAL)), Err(Unavailable::NotInKernel));
        assert_eq!(outcome(-524), Err(Unavailable::NotOffered));
        assert_eq!(outcome(-i64::from(libc::ENXIO)), Err(Unavailable::NoArea));
        assert_eq!(outcome(-1), Err(Unavailable::Refused(1)));
    }
}
