//! Choosing the lock at the start of `main`: what Linux does at boot, for a program.
//!
//! [`Mutex`] and [`RawMutex`] are one of several one-word locks. Rules ([`RULES`]) decide which one, once for
//! the whole process, from what the machine and the process are like ([`Inputs`]). `qspin advise` shows the
//! inputs, the choice and the reason.
//!
//! ```
//! use qspin::select::{self, Hints, Mutex};
//!
//! static COUNT: Mutex<u64> = Mutex::new(0);
//!
//! // At the start of `main`: what no file can tell.
//! let verdict = select::decide(Hints { threads: Some(64), ..Hints::NONE });
//! println!("{}: {}", verdict.choice, verdict.reason);
//!
//! *COUNT.lock() += 1;
//! assert!(select::is_fixed());
//! ```
//!
//! # When it is decided
//! * When the program asks: by [`decide`], any number of times, or by [`chosen`] if there was no decision
//!   before.
//! * The *first operation* on any lock of this kind fixes the choice. It cannot change later, whatever happens
//!   to cpusets, quotas and threads. If no decision was made before, that operation fixes the lock that
//!   `QSPIN_LOCK` named when the program was loaded, or else [`FALLBACK`].
//!
//! So no lock operation ever reads a file, allocates or waits for the decision, and in a program that has not
//! asked, nothing is examined. All operations may be used in signal handlers as those of other locks may. The
//! cost is a load of a byte that is no longer written, and a branch that always goes the same way.
//!
//! # What takes precedence
//! The environment (`QSPIN_LOCK`, `QSPIN_THREADS`, `QSPIN_DEDICATED`, `QSPIN_TOPOLOGY`) overrides the program's
//! [`Hints`], since the person running the program knows the machine; both override what is found. A program
//! that runs with more rights than the user that started it (set-user-ID) ignores the environment. A malformed
//! value counts as absent: the choice is made without it, and the first lock operation says so in one line on
//! stderr (unless stderr is full; it does not wait).
//!
//! # Limits
//! There is one choice for the whole process: words in memory that is shared between processes need one of the
//! other modules. Two copies of this library in one process choose independently. The CPUs counted are those of
//! the calling thread: call [`decide`] before the program pins its threads.

mod choice;
mod cpuid;
mod decided;
mod hints;
mod inputs;
mod rules;

use crate::platform::system::environment;
use crate::platform::{cpu_quota, sleep, topology};

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
    /// The types of the chosen lock; [`select`](super) re-exports them.
    plain typed: super::SelectedLock
}
pub use typed::*;

/// The hints of the environment; what is malformed in it is added to `problems`.
fn hints_of_environment(problems: &mut Vec<String>) -> Hints {
    if environment::counts() {
        Hints::of_environment(&mut |problem| problems.push(problem))
    } else {
        Hints::NONE
    }
}

/// Decides anew, from what is known now and the program's hints, and returns the verdict.
///
/// The verdict is in force unless a lock operation has already fixed the choice: see [`chosen`]. From then on
/// the default locks also know of a CPU quota ([`cpu_quota`]), and the locks that prefer near waiters know where
/// the CPUs are ([`topology`]). The process is registered for barriers, as otherwise by the first release of a
/// default lock. Reads files and allocates; call it at the start of `main`.
pub fn decide(hints: Hints) -> Verdict {
    let mut problems = Vec::new();
    let hints = hints_of_environment(&mut problems).or(hints);
    let inputs = Inputs::of_this_process(hints, topology::in_force());
    problems.extend(topology::problem().map(str::to_owned));
    if !problems.is_empty() {
        decided::complain(&format!("qspin: {}; it is ignored", problems.join("; ")));
    }
    cpu_quota::set_cpu_quota(inputs.is_limited());
    // At the start of `main`, with one thread, this takes some microseconds; later it may take milliseconds.
    sleep::prepare();
    let verdict = inputs.verdict();
    // A program that calls this too late can tell by `chosen`.
    let _ = decided::propose(verdict.choice);
    verdict
}

/// Chooses the lock `choice`, whatever the machine and the environment.
///
/// # Errors
/// The choice that a lock operation has already fixed, if it is another lock.
pub fn force(choice: Choice) -> Result<(), Choice> {
    decided::propose(choice).or_else(|fixed| if fixed == choice { Ok(()) } else { Err(fixed) })
}

/// The lock that is chosen as of now: final if [`is_fixed`]. If there was no decision yet, this decides as
/// [`decide`] does without hints: it then reads files and allocates.
#[must_use]
pub fn chosen() -> Choice {
    if decided::is_undecided() {
        decide(Hints::NONE);
    }
    decided::current().0
}

/// Whether a lock operation has fixed the choice.
#[must_use]
pub fn is_fixed() -> bool {
    decided::current().1
}

/// Notes which lock the environment names, for an operation that precedes any decision.
pub(crate) fn note(name: &[u8]) {
    if name.is_empty() {
        return;
    }
    match str::from_utf8(name).ok().and_then(Choice::named) {
        Some(choice) => decided::note(choice),
        None => decided::complain_of_name(),
    }
}
