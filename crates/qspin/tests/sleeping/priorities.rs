//! Sleepers are woken in the order of priorities, as with a futex: real-time threads before others.

use std::sync::atomic::AtomicI32;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::thread::{self, Scope};
use std::time::Duration;

use qspin::{Condvar, Mutex, RwLock};

use super::until;

/// Gives this thread a real-time policy of this priority, or the ordinary one if it is 0; says whether it was allowed.
fn set(priority: i32) -> bool {
    let policy = if priority == 0 { libc::SCHED_OTHER } else { libc::SCHED_FIFO };
    let parameter = libc::sched_param { sched_priority: priority };
    // SAFETY: a valid place; 0 is this thread.
    unsafe { libc::sched_setscheduler(0, policy, &parameter) == 0 }
}

/// In the order in which they come, and in that in which they are to have the lock.
const COME: [i32; 6] = [0, 10, 0, 30, 20, 30];
const GO: [usize; 6] = [3, 5, 4, 1, 0, 2];

fn is_allowed() -> bool {
    let allowed = thread::spawn(|| set(1)).join().unwrap();
    if !allowed {
        println!("skipped: a real-time policy is refused");
    }
    allowed
}

/// A waiter that rests before it joins the queue sleeps, too, but for some milliseconds at most.
const LONGER_THAN_RESTS: Duration = Duration::from_millis(30);

/// Runs `wait` on a thread of this priority, and returns when it sleeps in the queue.
fn spawn_and_let_sleep<'s>(
    scope: &'s Scope<'s, '_>,
    priority: i32,
    wait: impl FnOnce() + Send + 's,
) {
    let number = Box::leak(Box::new(AtomicI32::new(0)));
    let number: &'static AtomicI32 = number;
    scope.spawn(move || {
        assert!(set(priority));
        // SAFETY: asks for a number.
        number.store(unsafe { libc::gettid() }, Release);
        wait();
    });
    let sleeps = || {
        let thread = number.load(Acquire);
        let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat"));
        thread != 0 && stat.is_ok_and(|stat| stat.contains(") S "))
    };
    until(sleeps);
    thread::sleep(LONGER_THAN_RESTS);
    until(sleeps);
}

#[test]
fn a_mutex_goes_to_the_highest_priority_and_then_to_the_longest_asleep() {
    if !is_allowed() {
        return;
    }
    let order = &Mutex::new(Vec::new());
    thread::scope(|scope| {
        let mut held = order.lock();
        for (who, &priority) in COME.iter().enumerate() {
            spawn_and_let_sleep(scope, priority, move || order.lock().push(who));
        }
        held.clear();
    });
    assert_eq!(*order.lock(), GO);
}

#[test]
fn writers_go_by_priority_behind_the_one_that_has_the_gate() {
    if !is_allowed() {
        return;
    }
    let order = &RwLock::new(Vec::new());
    thread::scope(|scope| {
        let mut held = order.write();
        for (who, &priority) in COME.iter().enumerate() {
            spawn_and_let_sleep(scope, priority, move || order.write().push(who));
        }
        held.clear();
    });
    let mut expected = GO.to_vec();
    expected.retain(|&who| who != 0);
    expected.insert(0, 0);
    assert_eq!(*order.read(), expected);
}

#[test]
fn the_highest_priority_is_notified_first() {
    if !is_allowed() {
        return;
    }
    let (order, condition) = (&Mutex::new(Vec::new()), &Condvar::new());
    thread::scope(|scope| {
        for (who, &priority) in COME.iter().enumerate() {
            spawn_and_let_sleep(scope, priority, move || {
                let mut order = order.lock();
                condition.wait(&mut order);
                order.push(who);
            });
        }
        for number in 0..COME.len() {
            condition.notify_one();
            until(|| order.lock().len() > number);
        }
    });
    assert_eq!(*order.lock(), GO);
}
