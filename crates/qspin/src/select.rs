//! Choosing the lock when the program starts: what Linux does when it boots, for a program.
//!
//! [`Mutex`] and [`RawLock`] are one of several locks, all of one word; which one is decided once, for
//! the whole process, by rules ([`RULES`]) over what the machine and the process are like
//! ([`Inputs`]). `qspin advise` shows inputs, choice and reason.
//!
//! ```
//! use qspin::select::{self, Hints, Mutex};
//!
//! static COUNT: Mutex<u64> = Mutex::new(0);
//!
//! // At the start of `main`: what no file tells.
//! let verdict = select::decide(Hints { threads: Some(64), ..Hints::NONE });
//! println!("{}: {}", verdict.choice, verdict.reason);
//!
//! *COUNT.lock() += 1;
//! assert!(select::is_fixed());
//! ```
//!
//! # When it is decided
//! * When the program, or the library that has this crate in it, is *loaded*: of what is known then.
//!   The number of threads is not, unless `QSPIN_THREADS` says it.
//! * Anew whenever the program calls [`decide`].
//! * The *first operation* on any lock of this kind fixes the choice: it cannot change later,
//!   whatever happens to cpusets, quotas and threads. An operation that comes before even the
//!   decision at load time (in a function that runs at load time, too) fixes [`FALLBACK`].
//!
//! So no lock operation ever reads a file, allocates or waits for the decision; all of them may be
//! used in signal handlers as other locks may. What it costs is a load of a byte that nobody writes
//! and a branch that always goes the same way.
//!
//! # Who decides
//! The environment (`QSPIN_LOCK`, `QSPIN_THREADS`, `QSPIN_DEDICATED`, `QSPIN_TOPOLOGY`) before the
//! program's [`Hints`], since whoever runs a program knows the machine; both before what is found. A
//! program with more rights than who started it (set-user-ID) does not heed the environment. A
//! malformed value counts as none: the choice is made without it, and the first lock operation says
//! so in one line on stderr (unless stderr is full; it does not wait).
//!
//! # Limits
//! One choice a process: words in memory that processes share need one of the other modules. Two
//! copies of this library in one process choose for themselves. The CPUs are those of the thread that
//! asks: call [`decide`] before the program pins its threads.

mod choice;
mod cpuid;
mod decided;
mod hints;
mod inputs;
mod rules;

use std::env::var_os;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use crate::platform::ration;
use crate::platform::topology::{self, Topology};

pub use crate::platform::process::allowed_cpus;
#[doc(hidden)]
pub use crate::platform::quota::{Group, Version, groups};
pub use crate::platform::quota::{Quota, quota};
pub use choice::{Choice, SelectedLock};
pub use cpuid::{Cpuid, Hypervisor, Processor, Recorded, Registers, hypervisor};
pub use decided::FALLBACK;
pub use hints::{DEDICATED, Hints, LOCK, THREADS};
pub use inputs::{DOUBT, Dedicated, Inputs, Threads};
pub use rules::{RULES, Rule, Verdict};

crate::typed::typed_mutex! {
    /// The types of the chosen lock, which stand in [`select`](super), too.
    typed: super::SelectedLock
}
pub use typed::*;

/// What the environment says, with what is malformed in it.
fn environment(problems: &mut Vec<String>) -> Hints {
    if hints::environment_counts() {
        Hints::of_environment(&mut |problem| problems.push(problem))
    } else {
        Hints::NONE
    }
}

/// Decides anew, of what is known now and what the program says, and returns the verdict.
///
/// It is in force if no lock operation has fixed the choice before: see [`chosen`]. Reads files and
/// allocates; call it at the start of `main`.
pub fn decide(hints: Hints) -> Verdict {
    let hints = environment(&mut Vec::new()).or(hints);
    let inputs = Inputs::of_this_process(hints, topology::in_force());
    ration::set_rationed(inputs.is_limited());
    let verdict = inputs.verdict();
    // Who comes too late learns so by `chosen`.
    let _ = decided::propose(verdict.choice);
    verdict
}

/// Takes the lock `choice`, whatever the machine and the environment.
///
/// # Errors
/// The choice that was fixed before, by a lock operation, if it is another lock.
pub fn force(choice: Choice) -> Result<(), Choice> {
    decided::propose(choice).or_else(|fixed| if fixed == choice { Ok(()) } else { Err(fixed) })
}

/// The lock that is chosen as of now: final if [`is_fixed`].
#[must_use]
pub fn chosen() -> Choice {
    decided::current().0
}

/// Whether a lock operation has fixed the choice.
#[must_use]
pub fn is_fixed() -> bool {
    decided::current().1
}

/// Whether nothing is to be decided when the program is loaded.
static LEFT_UNDECIDED: AtomicBool = AtomicBool::new(false);

/// Nothing is decided when the program is loaded, and neither the machine nor the environment looked at: a chosen
/// lock is then [`FALLBACK`], and there is one node. For a library that uses this one and is loaded into programs
/// that have not asked for it; to be called by a function in its `.init_array` with a number (`.init_array.00100`),
/// which comes before this library's own.
pub fn leave_undecided() {
    LEFT_UNDECIDED.store(true, Relaxed);
}

/// Decides when the program is loaded.
extern "C" fn at_load() {
    if LEFT_UNDECIDED.load(Relaxed) {
        return;
    }
    let mut problems = Vec::new();
    let hints = environment(&mut problems);
    let described = var_os(topology::VARIABLE).filter(|_| hints::environment_counts());
    let topology = Topology::from_value(described.as_deref()).unwrap_or_else(|problem| {
        problems.push(problem);
        Some(Topology::ONE_NODE)
    });
    let topology: &Topology =
        Box::leak(Box::new(topology.unwrap_or_else(Topology::of_this_machine)));
    topology::set(topology);
    if !problems.is_empty() {
        decided::complain(&format!("qspin: {}; it is ignored", problems.join("; ")));
    }
    let inputs = Inputs::of_this_process(hints, topology);
    ration::set_rationed(inputs.is_limited());
    let _ = decided::propose(hints.lock.unwrap_or_else(|| inputs.verdict().choice));
}

#[used]
#[unsafe(link_section = ".init_array")]
static DECIDE_AT_LOAD: extern "C" fn() = at_load;
