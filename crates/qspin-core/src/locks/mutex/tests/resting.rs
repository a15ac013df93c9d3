//! Waiters that rest.

use super::*;

/// Waiters for the lock rest.
fn makes_rests_good(lock: &Lock, p: &Scripted) {
    sleepers::let_rests_be_good(p, lock.address(p));
}

#[test]
fn a_waiter_that_rests_is_counted_and_needs_no_wake_up() {
    let lock = &with(LOCKED);
    let p = Scripted::yielding(1, 1);
    makes_rests_good(lock, &p);
    sleeps(lock, &p, OTHER);
    p.at_halt(OWNER, |_| assert_eq!(word(lock), LOCKED | AWAKE));
    p.at_halt(OWNER, |p| {
        // SAFETY: the lock was made locked.
        unsafe { lock.release(p) };
        assert_eq!((word(lock), &p.kicked()[..]), (AWAKE, &[][..]));
    });
    p.on_cpu(WAITER, |p| RawLock::acquire(lock, p));
    assert_eq!((word(lock) & (LOCKED | AWAKE), p.yields()), (LOCKED, 0));
}

#[test]
fn a_waiter_that_cannot_be_counted_sleeps_instead_of_resting() {
    let lock = &with(LOCKED | (3 * AWAKE));
    let p = Scripted::yielding(1, 1);
    makes_rests_good(lock, &p);
    sleeps(lock, &p, OTHER);
    p.at_halt(OWNER, |p| {
        assert_eq!(sleepers::number(p, lock.address(p)), 2);
        lock.word.store(LOCKED, Relaxed);
        // SAFETY: the lock was made locked.
        unsafe { lock.release(p) };
        assert_eq!(p.kicked(), [OTHER]);
        lock.word.store(LOCKED, Relaxed);
        // SAFETY: as above.
        unsafe { lock.release(p) };
    });
    p.on_cpu(WAITER, |p| RawLock::acquire(lock, p));
    assert_eq!(p.kicked(), [WAITER]);
}

#[test]
fn a_waiter_with_a_deadline_yields_instead_of_resting() {
    let lock = &with(LOCKED);
    let p = Scripted::yielding(1, 3);
    makes_rests_good(lock, &p);
    // It sleeps until its deadline.
    p.at_halt(OWNER, |p| p.pass(100));
    let deadline = p.after(100);
    assert!(!p.on_cpu(WAITER, |p| lock.acquire_until(p, deadline)));
    assert_eq!(p.yields(), 3);
}

#[test]
fn a_waiter_that_has_rested_for_long_is_the_heir() {
    let lock = &with(LOCKED);
    let p = Scripted::yielding(1, 1);
    makes_rests_good(lock, &p);
    sleeps(lock, &p, OTHER);
    p.at_halt(OWNER, |p| p.pass(2 * STARVES_NS));
    p.at_poll(OWNER, |p| {
        assert_eq!(word(lock), LOCKED | AWAKE | HEIR);
        // SAFETY: the lock was made locked.
        unsafe { lock.release(p) };
    });
    p.on_cpu(WAITER, |p| RawLock::acquire(lock, p));
    assert_eq!((word(lock) & (LOCKED | HEIR), &p.kicked()[..]), (LOCKED, &[][..]));
}
