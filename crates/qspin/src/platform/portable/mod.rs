//! The system below the threads where there is nothing but Rust's standard library: any operating system, and
//! Linux with another C library, on another processor or with cargo feature `portable`.
//!
//! A thread halts by [`thread::park`]. What only Linux tells or does is absent: there is no asymmetric barrier,
//! so every release is a read-modify-write; no thread knows where it runs, so `cna` is first come, first served;
//! holders are preempted like all other threads, and no waiter is urgent.
//!
//! # Limits
//! * Not for signal handlers: a first wait allocates, and a kick takes a lock. (Without contention a lock works
//!   in them as anywhere.)
//! * Not for the child of `fork` in a process with several threads: it inherits the numbers of all of them, and
//!   what they have left in locks.
//! * A kick that comes late unparks a thread that no longer waits here, as [`thread::park`] allows.
//! * Whether a program has more rights than its user (set-user-ID) is not known, so the environment is heeded.
//! * 64-bit atomics are needed.

pub(crate) mod clock;
pub(crate) mod publish;
pub mod run_status;
pub(crate) mod threads;
pub mod urgency;

#[cfg(feature = "profile")]
compile_error!(
    "the feature `profile` of qspin needs Linux with the GNU C library, and not the feature `portable`"
);

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::io::Write;
use std::thread;
use std::time::Duration;

use qspin_core::node::NodeId;

pub(crate) use self::threads::Slot;
use super::nodes::node;

/// What programs may use of this system.
pub(crate) mod public {
    pub use super::{run_status, urgency};
}

/// Internals for the library that interposes the C library's locks: there is none here.
#[doc(hidden)]
pub mod inside {}

const NONE: u32 = 0;
const KICKED: u32 = 1;
const HALTED: u32 = 2;

/// Halts this thread, which waits with its node `me`, until that node is kicked. May return early.
#[cold]
pub(crate) fn halt(me: NodeId) {
    let word = &node(me).kick;
    if word.compare_exchange(NONE, HALTED, Relaxed, Relaxed).is_ok() {
        // A kick since then has made this return at once.
        thread::park();
    }
    // ORDERING: Acquire pairs with the Release of `kick`, which it consumes.
    word.swap(NONE, Acquire);
}

/// As [`halt`], but at the latest until this time of [`clock::now_ns`].
#[cold]
pub(crate) fn halt_until(me: NodeId, deadline_ns: u64) {
    let word = &node(me).kick;
    if word.compare_exchange(NONE, HALTED, Relaxed, Relaxed).is_ok() {
        let left = deadline_ns.saturating_sub(clock::now_ns());
        thread::park_timeout(Duration::from_nanos(left));
        if word.load(Relaxed) == HALTED {
            clock::has_passed(left);
        }
    }
    // ORDERING: as in `halt`.
    word.swap(NONE, Acquire);
}

/// Ends the halt of that node, or its next one.
#[inline]
pub(crate) fn kick(id: NodeId) {
    // ORDERING: Release pairs with the Acquire of `halt`.
    if node(id).kick.swap(KICKED, Release) == HALTED {
        threads::unpark(id.cpu());
    }
}

/// Sleeps for so long, or shorter. (`thread::sleep` panics where there are no threads.)
pub(crate) fn sleep_ns(nanoseconds: u32) {
    thread::park_timeout(Duration::from_nanos(nanoseconds.into()));
    clock::has_passed(nanoseconds.into());
}

/// Gives the CPU to any thread that can use it.
#[inline]
pub(crate) fn yield_cpu() {
    thread::yield_now();
}

/// A number below 2^31 that no other thread has meanwhile, for one that has no [`CpuId`](crate::platform::cpu).
pub(crate) fn stranger() -> u32 {
    threads::stranger()
}

/// Writes a line to stderr.
pub(crate) fn say_unless_blocked(line: &[u8]) {
    let _ = std::io::stderr().write_all(line);
}

/// There is no heavy barrier.
pub(crate) mod barrier {
    use core::sync::atomic::Ordering::SeqCst;

    #[inline]
    pub(crate) fn available() -> bool {
        false
    }

    #[inline]
    pub(crate) fn is_unknown() -> bool {
        false
    }

    pub(crate) fn ask() -> bool {
        false
    }

    /// This thread passes a fence of its own, as every releasing thread does.
    pub(crate) fn pass() {
        core::sync::atomic::fence(SeqCst);
    }
}

pub(crate) mod cpus {
    use std::num::NonZero;

    /// As many CPUs as are said to be available; none if nothing is said.
    pub(crate) fn allowed() -> Vec<usize> {
        (0..std::thread::available_parallelism().map_or(0, NonZero::get)).collect()
    }
}

pub(crate) mod environment {
    /// Whether the environment is heeded.
    pub(crate) fn counts() -> bool {
        true
    }
}

/// A process is never the child of another.
pub(crate) mod generation {
    #[inline]
    pub(crate) fn current() -> u32 {
        0
    }
}

pub(crate) mod holder {
    use crate::platform::holder::Unavailable;

    #[inline]
    pub(crate) fn acquired() {}

    #[inline]
    pub(crate) fn released() {}

    pub(crate) fn available() -> Result<(), Unavailable> {
        Err(Unavailable::NotInKernel)
    }
}

/// No other process can change the tunables, and none that the environment names are read.
pub(crate) mod listen {
    use crate::tuning::{ListenError, Tuning};

    pub(crate) fn listen() -> Result<(), ListenError> {
        Err(ListenError::NoFile)
    }

    #[allow(dead_code, reason = "the environment is not read at load here")]
    pub(crate) fn note(_: bool, _: bool) {}

    #[inline(always)]
    pub(crate) fn is_asked() -> bool {
        false
    }

    pub(crate) fn heed() {}

    pub(crate) fn tell(_: &Tuning) {}
}

/// Nothing is done at load.
pub(crate) mod load {
    #[inline]
    pub(crate) fn register() {}

    /// Notes the lock that the environment names, since no load-time function has.
    pub(crate) fn before_the_first_choice() {
        if let Some(name) = std::env::var_os(crate::select::LOCK) {
            crate::select::note(name.as_encoded_bytes());
        }
    }
}

/// Where a thread runs is not known.
pub(crate) mod location {
    pub(crate) const IS_KNOWN: bool = false;

    pub(crate) fn node() -> u32 {
        0
    }

    pub(crate) fn cpu() -> usize {
        usize::MAX
    }

    #[inline]
    pub(crate) fn runs_on() -> Option<u32> {
        None
    }
}

/// Memory for what does not fit into static memory.
pub(crate) mod memory {
    use std::alloc::{Layout, alloc_zeroed, dealloc};

    /// Allocates zeroed memory for a `T`.
    pub(crate) fn map<T>() -> Option<*mut T> {
        const { assert!(size_of::<T>() > 0) };
        // SAFETY: of a size that is not 0.
        let made = unsafe { alloc_zeroed(Layout::new::<T>()) };
        (!made.is_null()).then_some(made.cast())
    }

    /// Gives the memory back.
    ///
    /// # Safety
    /// [`map`] returned it, and nothing refers to it.
    pub(crate) unsafe fn unmap<T>(made: *mut T) {
        // SAFETY: the caller's.
        unsafe { dealloc(made.cast(), Layout::new::<T>()) };
    }
}

pub(crate) mod tunables {
    /// Memory in which tunables are kept.
    ///
    /// # Safety
    /// Zeros are a valid `T`.
    #[allow(dead_code, reason = "no other process asks for tunables here")]
    pub(crate) unsafe fn reserve<T: Sync>() -> Option<&'static T> {
        // SAFETY: zeroed memory of its size, which is never given back.
        super::memory::map::<T>().map(|made| unsafe { &*made })
    }
}

pub(crate) mod page {
    use core::ops::Deref;

    /// Content that would be alone on its pages, if anything were done to pages.
    #[derive(Debug)]
    pub(crate) struct Whole<T>(T);

    impl<T> Whole<T> {
        /// The pages of `content`.
        pub(crate) const fn new(content: T) -> Self {
            Self(content)
        }
    }

    impl<T> Deref for Whole<T> {
        type Target = T;

        #[inline(always)]
        fn deref(&self) -> &T {
            &self.0
        }
    }
}

pub(crate) mod processor {
    use core::sync::atomic::AtomicU64;
    use core::sync::atomic::Ordering::Relaxed;

    /// Adds to a counter to which no other thread adds.
    #[inline]
    pub(crate) fn add_alone(counter: &AtomicU64, amount: u64) {
        counter.fetch_add(amount, Relaxed);
    }
}
