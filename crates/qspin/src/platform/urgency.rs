//! Who must not be passed over: threads with a real-time policy, and signal handlers.
//!
//! # Problem
//! An order that moves waiters back must not move one whose delay harms more than its own thread: a
//! signal handler stops the code that it interrupts, and who gave a thread a real-time policy said
//! that it comes first. The kernel knows a thread's policy, but to ask costs a system call, as much
//! as a short critical section; and anybody may change it at any moment (`chrt -p`).
//!
//! # How
//! The policy is asked for at the first wait of a thread whose order matters, and kept. It is asked
//! for again every [`ASKS_EVERY`]th such wait, so a change is heeded after that many waits at the
//! latest, whoever made it; and at once by a thread that calls [`policy_changed`].
//!
//! A signal handler is known if it says so ([`super::interrupt`]), or if what it interrupts is itself
//! waiting in a queue: then its nesting level shows it.
//!
//! Who *sleeps* for a lock joins a queue that is in the order of priorities, as a futex's is. It asks at each sleep,
//! which costs some microseconds anyway. SCHED_DEADLINE has no priority there.
//!
//! # Limits
//! Real-time is SCHED_FIFO, SCHED_RR or SCHED_DEADLINE. A thread that runs at such a priority only
//! because somebody waits for it (priority inheritance) has its own policy still. A handler that
//! neither says so nor interrupts a wait is as the thread that it interrupts. A filter of system calls
//! may refuse `sched_getscheduler` (then no thread is real-time), but must not kill for it.

use core::cell::Cell;

use qspin_core::node::NodeId;
use qspin_core::platform::{AtomicWord, CpuId};

use super::nodes::node;
use super::syscall::syscall;

/// A thread's policy is asked for once in so many of its waits: what a system call takes, some 100 ns,
/// is then some 2 ns a wait.
pub const ASKS_EVERY: u32 = 64;

/// Beside the waits that are left until the policy is asked for again: it is a real-time one.
const REAL_TIME: u32 = 1 << 31;

thread_local! {
    // Only this thread and its handlers touch it. A handler between load and store loses a count.
    static KNOWN: Cell<u32> = const { Cell::new(0) };
}

/// Has this thread's policy asked for anew at its next wait: for a thread that has changed its own.
/// Async-signal-safe.
pub fn policy_changed() {
    KNOWN.with(|known| known.set(0));
}

/// What the kernel goes by where threads wait for a futex: the priority of SCHED_FIFO or SCHED_RR, 0 for all others.
/// Asked for anew each time. Async-signal-safe.
#[cold]
#[must_use]
pub fn priority() -> u32 {
    let mut parameter = libc::sched_param { sched_priority: 0 };
    // SAFETY: a valid place; 0 is this thread.
    let code = unsafe { syscall(libc::SYS_sched_getparam, [0, &raw mut parameter as u64]) };
    // Where it is refused, nobody has a priority.
    if code == 0 { parameter.sched_priority.cast_unsigned() } else { 0 }
}

/// Whether this thread has a real-time policy, as far as is known. Async-signal-safe.
#[inline]
pub(super) fn has_real_time_policy() -> bool {
    KNOWN.with(|known| {
        let mut now = known.get();
        if now & !REAL_TIME == 0 {
            now = if is_real_time(ask()) { REAL_TIME | ASKS_EVERY } else { ASKS_EVERY };
        }
        known.set(now - 1);
        now & REAL_TIME != 0
    })
}

/// Whether the thread of this number waits in a queue already, beside the wait that it begins: then
/// this is a signal handler.
#[inline]
pub(super) fn interrupts_a_wait(thread: Option<CpuId>) -> bool {
    let first = thread.and_then(|thread| NodeId::new(thread, 0));
    first.is_some_and(|first| node(first).nesting.peek() > 1)
}

/// The policy of this thread, or an error number negated, where the kernel may not be asked.
#[cold]
fn ask() -> i64 {
    // SAFETY: asks for a number; 0 is this thread.
    unsafe { syscall(libc::SYS_sched_getscheduler, [0]) }
}

/// Whether a real-time policy was answered.
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

    #[test]
    fn who_waits_already_and_waits_again_is_a_handler() {
        assert!(!interrupts_a_wait(None));
        // The last number: no test makes so many threads.
        let last = CpuId::new(CpuId::LIMIT - 1).unwrap();
        assert!(super::super::nodes::prepare(last));
        let nesting = &node(NodeId::new(last, 0).unwrap()).nesting;
        for (levels, handler) in [(0, false), (1, false), (2, true), (4, true), (0, false)] {
            nesting.begin(levels);
            assert_eq!(interrupts_a_wait(Some(last)), handler, "{levels}");
        }
    }
}
