//! Which threads must not be passed over: those with a real-time policy, and signal handlers.
//!
//! # Problem
//! An order that moves waiters back must not move a waiter whose delay harms more than its own thread. A signal
//! handler stops the code that it interrupts; a thread was given a real-time policy in order to come first. The
//! kernel knows a thread's policy, but asking costs a system call, as much as a short critical section; and the
//! policy may be changed from outside at any moment (`chrt -p`).
//!
//! # How
//! A thread asks for its policy at its first wait in which the order matters, and keeps the answer. It asks
//! again every [`ASKS_EVERY`]th such wait, so it heeds a change after that many waits at the latest, wherever
//! it came from; and at its next wait after it has called [`policy_changed`].
//!
//! A signal handler is known if it announces itself ([`interrupt`](crate::platform::interrupt)), or if the wait that it interrupts
//! is itself in a queue: then its nesting level shows it.
//!
//! A thread that *sleeps* for a lock joins a queue in the order of priorities, like a futex's. It asks for its
//! priority at each sleep, which costs some microseconds anyway. SCHED_DEADLINE has no priority there.
//!
//! # Limits
//! Real-time means SCHED_FIFO, SCHED_RR or SCHED_DEADLINE. A thread that runs at such a priority only because
//! another thread waits for it (priority inheritance) still has its own policy. A handler that neither
//! announces itself nor interrupts a wait counts as the thread that it interrupts. A filter of system calls may
//! refuse `sched_getscheduler` (then no thread is real-time), but must not kill for it.

use core::cell::Cell;

use super::syscall::syscall;

/// A thread asks for its policy once in so many of its waits: a system call of some 100 ns is then some 2 ns
/// per wait.
pub const ASKS_EVERY: u32 = 64;

/// A flag beside the count of waits until the next question: the policy is a real-time one.
const REAL_TIME: u32 = 1 << 31;

thread_local! {
    // Only this thread and its handlers touch it. A handler between load and store loses a count.
    static KNOWN: Cell<u32> = const { Cell::new(0) };
}

/// Makes this thread ask for its policy at its next wait: for a thread that has changed its own.
/// Async-signal-safe.
pub fn policy_changed() {
    KNOWN.with(|known| known.set(0));
}

/// The priority by which the kernel orders the waiters of a futex: that of SCHED_FIFO or SCHED_RR, 0 for all
/// other policies. Asks the kernel each time. Async-signal-safe.
#[cold]
#[must_use]
pub fn priority() -> u32 {
    let mut parameter = libc::sched_param { sched_priority: 0 };
    // SAFETY: a valid place; 0 is this thread.
    let code = unsafe { syscall(libc::SYS_sched_getparam, [0, &raw mut parameter as u64]) };
    // If the call is refused, no thread has a priority.
    if code == 0 { parameter.sched_priority.cast_unsigned() } else { 0 }
}

/// Whether this thread has a real-time policy, as far as is known. Async-signal-safe.
#[inline]
pub(crate) fn has_real_time_policy() -> bool {
    KNOWN.with(|known| {
        let mut now = known.get();
        if now & !REAL_TIME == 0 {
            now = if is_real_time(ask()) { REAL_TIME | ASKS_EVERY } else { ASKS_EVERY };
        }
        known.set(now - 1);
        now & REAL_TIME != 0
    })
}

/// The policy of this thread, or an error number negated, where the kernel may not be asked.
#[cold]
fn ask() -> i64 {
    // SAFETY: asks for a number; 0 is this thread.
    unsafe { syscall(libc::SYS_sched_getscheduler, [0]) }
}

/// Whether the answer is a real-time policy.
fn is_real_time(answer: i64) -> bool {
    /// `SCHED_DEADLINE`, which the C library does not name.
    const DEADLINE: i64 = 6;
    let policy = answer & !i64::from(libc::SCHED_RESET_ON_FORK);
    answer >= 0 && matches!(policy, FIFO | RR | DEADLINE)
}

const FIFO: i64 = libc::SCHED_FIFO as i64;
const RR: i64 = libc::SCHED_RR as i64;

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// Gives this thread another policy, if that is allowed.
    fn set(policy: libc::c_int, priority: libc::c_int) -> Result<(), std::io::Error> {
        let parameter = libc::sched_param { sched_priority: priority };
        // SAFETY: a valid place; 0 is this thread.
        match unsafe { libc::sched_setscheduler(0, policy, &parameter) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    }

    #[test]
    fn real_time_policies_are_told_from_others_and_from_errors() {
        let reset = i64::from(libc::SCHED_RESET_ON_FORK);
        for policy in [FIFO, RR, 6] {
            assert!(is_real_time(policy) && is_real_time(policy | reset), "{policy}");
        }
        let others = [libc::SCHED_OTHER, libc::SCHED_BATCH, libc::SCHED_IDLE, 7].map(i64::from);
        for other in others {
            assert!(!is_real_time(other) && !is_real_time(other | reset), "{other}");
        }
        for error in [libc::EPERM, libc::ENOSYS, libc::ESRCH] {
            assert!(!is_real_time(-i64::from(error)), "{error}");
        }
    }

    #[test]
    fn a_policy_that_changes_is_heeded_at_once_if_said_and_soon_if_not() {
        thread::spawn(|| {
            assert!(!has_real_time_policy(), "a test's thread has an ordinary policy");
            if let Err(why) = set(libc::SCHED_FIFO, 1) {
                println!("skipped: SCHED_FIFO is refused: {why}");
                return;
            }
            let asked = (1..).take_while(|_| !has_real_time_policy()).count();
            assert_eq!(asked, ASKS_EVERY as usize - 1, "it was asked for at the first wait");
            set(libc::SCHED_OTHER, 0).unwrap();
            let kept = (1..).take_while(|_| has_real_time_policy()).count();
            assert_eq!(kept, ASKS_EVERY as usize - 1);
            set(libc::SCHED_RR, 1).unwrap();
            assert!(!has_real_time_policy());
            policy_changed();
            assert!(has_real_time_policy());
            set(libc::SCHED_BATCH, 0).unwrap();
            policy_changed();
            assert!(!has_real_time_policy());
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_priority_is_that_of_a_real_time_policy() {
        thread::spawn(|| {
            assert_eq!(priority(), 0, "a test's thread has an ordinary policy");
            // SAFETY: no pointers; this thread alone.
            unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 5) };
            assert_eq!(priority(), 0, "being nice is none");
            for (policy, wanted) in [(libc::SCHED_FIFO, 7), (libc::SCHED_RR, 99)] {
                if let Err(why) = set(policy, wanted) {
                    println!("skipped: a real-time policy is refused: {why}");
                    return;
                }
                assert_eq!(priority(), wanted as u32);
            }
            set(libc::SCHED_BATCH, 0).unwrap();
            assert_eq!(priority(), 0);
        })
        .join()
        .unwrap();
    }
}
