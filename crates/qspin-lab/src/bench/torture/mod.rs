//! Torture: everything at once that a lock must survive, for as long as one likes.
//!
//! More threads than CPUs, born and dying all the time; critical sections and pauses of every
//! length from nothing to some 100 µs; now and then a sleep inside; tries beside acquisitions;
//! signals whose handlers, nested up to four deep, take other locks of the same kind.
//!
//! What is checked, in each lock:
//!
//! * *exclusion, at once*: a mark that says which thread is inside is never seen by another one;
//! * *exclusion, in the end*: a counter that only exclusion keeps right equals the sum of what the
//!   threads have counted for themselves;
//! * *progress*: while there are waiters, one of them gets the lock within the
//!   [timeout](Torment::timeout). A lock that has collapsed but goes on is not at fault; one
//!   whose last waiter sleeps through its turn is.
//!
//! Everything that is drawn comes from the seed; what the scheduler makes of it does not, so a
//! failure comes back with the same seed only by and large.
//!
//! A signal, or a newcomer, may wake a thread whose wake-up the lock has lost, and so hide the
//! fault. So half of the threads are never signalled, none is while a lock stands still, and at
//! the end all must get out without any.
//!
//! Threads that a lock never lets go cannot be ended: they are left behind, with what they use.

mod arena;
mod crowd;
pub mod signals;
pub mod watchdog;

use std::fmt;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::contender::Contender;

use super::affinity::Placement;
use super::busy::Pace;
use super::interrupt::Interrupt;

use arena::Arena;
use crowd::Crowd;
use watchdog::{Stall, Watchdog};

/// How many locks there are: that of the threads, and one for each depth of handlers. Four deep
/// is one more than a thread that waits has queue nodes for.
pub const LEVELS: usize = 5;

/// While there are waiters, one of them must get the lock within so much time.
pub const TIMEOUT: Duration = Duration::from_secs(5);

/// How often the supervising thread looks.
const TICK: Duration = Duration::from_millis(1);

/// Which torture.
#[derive(Debug, Clone)]
pub struct Torment {
    /// How many threads live at a time.
    pub threads: usize,
    /// On which CPUs they run.
    pub placement: Placement,
    /// For how long.
    pub time: Duration,
    /// How long a lock may stand still while it has waiters; [`TIMEOUT`].
    pub timeout: Duration,
    /// What everything drawn is drawn from.
    pub seed: u64,
    /// How work takes a given time.
    pub pace: Pace,
}

/// What happened to a lock.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// For how long.
    pub elapsed: Duration,
    /// Acquisitions, those of handlers and by trying included.
    pub acquisitions: u64,
    /// Acquisitions by trying.
    pub by_trying: u64,
    /// Tries that found the lock held.
    pub refused: u64,
    /// Acquisitions by signal handlers.
    pub in_handlers: u64,
    /// Signals handled.
    pub signals: u64,
    /// How deep their handlers nested.
    pub deepest: u32,
    /// Sleeps inside.
    pub sleeps: u64,
    /// Threads born.
    pub born: u64,
    /// The longest wait that ended, handlers that interrupted it included.
    pub longest: Duration,
    /// The user asked to stop before the time was over.
    pub interrupted: bool,
    /// What was seen that must not be; empty where the lock held.
    pub wrong: Vec<Violation>,
}

/// What a lock did wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Violation {
    /// An owner inside met another one.
    TwoInside {
        /// Of which lock: the depth of its handlers, 0 for that of the threads.
        level: usize,
        /// The place among the threads of the one that noticed.
        place: usize,
    },
    /// The counter under the lock is not the sum of the acquisitions.
    Counts {
        /// Of which lock.
        level: usize,
        /// How often it was acquired.
        acquired: u64,
        /// What the counter says.
        counted: u64,
    },
    /// There are waiters, and none is served.
    Stall(Stall),
    /// A thread died of a panic.
    Died,
}

/// A lock by its level.
fn which(level: usize) -> String {
    match level {
        0 => "the threads' lock".to_owned(),
        depth => format!("the lock of handlers {depth} deep"),
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TwoInside { level, place } => {
                write!(f, "two inside: thread {place} was not alone in {}", which(*level))
            }
            Self::Counts { level, acquired, counted } => write!(
                f,
                "wrong count: {acquired} acquisitions of {} left a counter of {counted}",
                which(*level)
            ),
            Self::Stall(stall) => write!(f, "stall: {stall}"),
            Self::Died => write!(f, "a thread died of a panic"),
        }
    }
}

/// What was seen, in one line; nothing where the lock held.
pub fn seen(outcome: &Outcome) -> String {
    let wrong: Vec<String> = outcome.wrong.iter().map(ToString::to_string).collect();
    wrong.join("; ")
}

/// Tortures a fresh lock of kind `C`.
/// Fails when the machine takes no signal handler or makes no thread at all.
pub fn torture<C: Contender>(torment: &Torment, interrupt: &Interrupt) -> anyhow::Result<Outcome> {
    torture_in(&Arena::new::<C>(torment), torment, interrupt)
}

fn torture_in(
    arena: &Arc<Arena>,
    torment: &Torment,
    interrupt: &Interrupt,
) -> anyhow::Result<Outcome> {
    signals::listen()?;
    let mut crowd = Crowd::new(torment);
    let mut watchdog = Watchdog::new(torment.timeout);
    let mut outcome = Outcome::default();
    let began = Instant::now();
    let mut ending = false;
    loop {
        if ending {
            thread::sleep(TICK);
        } else {
            let asked = interrupt.sleep(TICK);
            outcome.interrupted = asked;
            ending = asked || began.elapsed() >= torment.time;
        }
        if crowd.bury() && !outcome.wrong.contains(&Violation::Died) {
            outcome.wrong.push(Violation::Died);
        }
        if outcome.wrong.is_empty() {
            outcome.wrong.extend(arena.met());
        }
        ending |= !outcome.wrong.is_empty();
        if ending {
            arena.end();
            if crowd.is_empty() {
                break;
            }
        } else {
            crowd.fill(arena)?;
            if !watchdog.worries() {
                crowd.pester(arena);
            }
        }
        if let Some(stall) = watchdog.look(&arena.queues(), ending, began.elapsed()) {
            outcome.wrong.push(Violation::Stall(stall));
            break;
        }
    }
    outcome.elapsed = began.elapsed();
    outcome.born = crowd.born();
    arena.sum_up(&mut outcome);
    if crowd.is_empty() {
        outcome.wrong.extend(arena.miscounted());
    }
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_is_one_line() {
        let wrong = vec![
            Violation::TwoInside { level: 0, place: 3 },
            Violation::Counts { level: 2, acquired: 10, counted: 9 },
        ];
        let outcome = Outcome { wrong, ..Outcome::default() };
        assert_eq!(
            seen(&outcome),
            "two inside: thread 3 was not alone in the threads' lock; wrong count: 10 \
             acquisitions of the lock of handlers 2 deep left a counter of 9"
        );
        assert_eq!(seen(&Outcome::default()), "");
    }
}
