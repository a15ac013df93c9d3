//! Waiters that rest.

use super::*;
use std::vec::Vec;

/// Waiters for the lock rest one at a time.
fn makes_rests_sure(lock: &Lock, p: &Scripted) {
    sleepers::let_rests_be_sure(p, lock.address(p));
}

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

#[test]
fn the_waiter_that_rests_alone_is_the_heir_after_a_quantum() {
    let lock = &with(LOCKED);
    let quantum_us = STARVES_NS / 2000;
    let p = Scripted::yielding(1, 1).with_quantum(quantum_us as u32);
    makes_rests_sure(lock, &p);
    // No waiter sleeps any more, but releases look for one.
    sleeps(lock, &p, OTHER);
    wakes_in_vain(lock, &p, OTHER);
    lock.word.store(LOCKED, Relaxed);
    for rest_ns in [quantum_us * 1000 - 1, 1] {
        p.at_halt(OWNER, move |p| {
            assert_eq!(word(lock), LOCKED | AWAKE);
            p.pass(rest_ns);
        });
    }
    p.at_poll(OWNER, |p| {
        assert_eq!(word(lock), LOCKED | AWAKE | HEIR);
        // SAFETY: acquired by `wakes_in_vain`.
        unsafe { lock.release(p) };
        assert!(!lock.try_acquire(p), "it is the heir's");
    });
    p.on_cpu(WAITER, |p| RawLock::acquire(lock, p));
    assert_eq!(word(lock) & (LOCKED | HEIR), LOCKED);
}

#[test]
fn a_newcomer_does_not_rest_beside_another_or_past_sleepers_where_one_rests_alone() {
    for (bits, sleepers) in [(0, 1), (AWAKE, 0), (AWAKE, 1)] {
        let lock = &with(LOCKED);
        let p = Scripted::yielding(1, 1);
        makes_rests_sure(lock, &p);
        sleeps(lock, &p, OTHER);
        if sleepers == 0 {
            wakes_in_vain(lock, &p, OTHER);
        }
        lock.word.store(LOCKED | bits, Relaxed);
        p.at_halt(OWNER, move |p| {
            assert_eq!(sleepers::number(p, lock.address(p)), sleepers + 1);
            assert_eq!(word(lock), LOCKED | bits, "it is not counted");
            for cpu in [OTHER, WAITER].into_iter().skip(1 - sleepers as usize) {
                lock.word.store(LOCKED, Relaxed);
                // SAFETY: it is locked.
                unsafe { lock.release(p) };
                assert_eq!(p.kicked(), [cpu]);
            }
        });
        p.on_cpu(WAITER, |p| RawLock::acquire(lock, p));
        assert_eq!(p.yields(), 0);
    }
}

#[test]
fn a_thread_whose_quantum_is_used_up_beside_one_that_rests_wakes_none_and_yields_ever_more_rarely()
{
    let p = Scripted::new(1);
    let lock = &with(LOCKED);
    makes_rests_sure(lock, &p);
    sleeps(lock, &p, WAITER);
    sleeps(lock, &p, OTHER);
    wakes_in_vain(lock, &p, WAITER);
    let each = u64::from(p.tuning().yield_turns);
    let (turn_ns, mut yields) = (2 * u64::from(p.tuning().mutex_short_ns), Vec::new());
    for turn in 0..40 * each * each {
        p.pass(turn_ns);
        // SAFETY: the lock is held, at first and after each turn.
        unsafe { lock.release(&p) };
        assert_eq!(p.kicked(), []);
        if p.yields() != 0 {
            yields.push(turn);
        }
        assert!(lock.try_acquire(&p));
    }
    let since = |turn: &u64| turn - yields[0];
    let expected = [0, 1, 2, 4, 8, 16, 32, 64, 128, 256].map(|times| times * each);
    assert_eq!(yields.iter().map(since).take(10).collect::<Vec<_>>(), expected);
}
