//! Choosing the lock at the start of `main`: what Linux does when it boots, for a program.
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
//! * When the program asks: by [`decide`], any number of times, or by [`chosen`], if nobody has decided before.
//! * The *first operation* on any lock of this kind fixes the choice: it cannot change later,
//!   whatever happens to cpusets, quotas and threads. An operation that comes before any decision fixes
//!   what `QSPIN_LOCK` said when the program was loaded, or else [`FALLBACK`].
//!
//! So no lock operation ever reads a file, allocates or waits for the decision, and nothing is looked at in a program
//! that has not asked; all operations may be used in signal handlers as other locks may. What it costs is a load of a
//! byte that nobody writes and a branch that always goes the same way.
//!
//! # Who decides
//! The environment (`QSPIN_LOCK`, `QSPIN_THREADS`, `QSPIN_DEDICATED`, `QSPIN_TOPOLOGY`) before the
//! program's [`Hints`], since the person who runs a program knows the machine; both before what is found. A
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

use crate::platform::environment::{self, Environment};
use crate::platform::{ration, sleep, topology};

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
fn hints_of_environment(problems: &mut Vec<String>) -> Hints {
    if environment::counts() {
        Hints::of_environment(&mut |problem| problems.push(problem))
    } else {
        Hints::NONE
    }
}

/// Decides anew, of what is known now and what the program says, and returns the verdict.
///
/// It is in force if no lock operation has fixed the choice before: see [`chosen`]. From then on the default locks know
/// of a quota ([`ration`]), too, and the locks that prefer near waiters where the CPUs are ([`topology`]); and the
/// process is registered for barriers, as by the first release of a default lock otherwise. Reads files and allocates; call it at the start of `main`.
pub fn decide(hints: Hints) -> Verdict {
    let mut problems = Vec::new();
    let hints = hints_of_environment(&mut problems).or(hints);
    let inputs = Inputs::of_this_process(hints, topology::in_force());
    problems.extend(topology::problem().map(str::to_owned));
    if !problems.is_empty() {
        decided::complain(&format!("qspin: {}; it is ignored", problems.join("; ")));
    }
    ration::set_rationed(inputs.is_limited());
    // At the start of `main`, with one thread, it takes some microseconds; later it may be milliseconds.
    sleep::prepare();
    let verdict = inputs.verdict();
    // A program that comes too late learns so by `chosen`.
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

/// The lock that is chosen as of now: final if [`is_fixed`]. If nobody has decided yet it is decided now, as by
/// [`decide`] without hints: then it reads files and allocates.
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

/// Notes which lock the environment names, when the program is loaded: for an operation that comes before a decision.
pub(crate) fn note(environment: &Environment) {
    let named = environment.value_of(c"QSPIN_LOCK").filter(|name| !name.is_empty());
    let Some(name) = named.filter(|_| environment::counts()) else { return };
    match name.to_str().ok().and_then(Choice::named) {
        Some(choice) => decided::note(choice),
        None => decided::complain_of_name(),
    }
}
