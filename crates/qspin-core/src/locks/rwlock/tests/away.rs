//! Waiters that keep away from the lock, so that one thread at a time runs.

use super::*;

/// A platform on which waiters keep away from the lock.
fn distant<'s>(lock: &Lock) -> Scripted<'s> {
    let p = Scripted::new(1);
    sleepers::keep_away(&p, lock.on(&p));
    p
}

#[test]
fn a_reader_that_keeps_away_goes_through_the_gate_and_closes_nothing() {
    let lock = &with(WRITER);
    let p = distant(lock);
    // As the reader acquires the gate.
    p.at_site(Site::MutexTry, OWNER, |p| {
        // SAFETY: the lock was made with a writer.
        unsafe { lock.release_exclusive(p) };
        assert_eq!(p.kicked(), [], "no bit of the reader was set");
    });
    p.on_cpu(WAITER, |p| lock.acquire_shared(p));
    assert_eq!(word(lock), READER);
    assert!(!lock.gate.is_locked(&p));
}

#[test]
fn a_writer_that_has_kept_away_in_vain_closes_the_lock_and_sleeps() {
    let lock = &with(READER);
    let p = distant(lock);
    p.at_halt(OWNER, |p| {
        assert_eq!(word(lock), READER | CLOSED | SLEEPING);
        assert!(lock.gate.is_locked(p));
        // SAFETY: the lock was made with a reader.
        unsafe { lock.release_shared(p) };
        assert_eq!(p.kicked(), [WAITER]);
    });
    p.on_cpu(WAITER, |p| lock.acquire_exclusive(p));
    assert_eq!(word(lock), WRITER);
    assert!(!lock.gate.is_locked(&p));
}

#[test]
fn a_waiter_that_keeps_away_gives_up_at_its_deadline() {
    for reads in [true, false] {
        let lock = &with(WRITER);
        let p = distant(lock);
        p.at_site(Site::MutexTry, OWNER, |p| p.pass(100));
        let deadline = p.after(100);
        let acquired = p.on_cpu(WAITER, |p| match reads {
            true => lock.acquire_shared_until(p, deadline),
            false => lock.acquire_exclusive_until(p, deadline),
        });
        assert!(!acquired);
        assert_eq!(word(lock), WRITER);
        assert!(!lock.gate.is_locked(&p));
    }
}
