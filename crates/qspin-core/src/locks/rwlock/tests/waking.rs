//! How many readers are woken at once, and by which thread: RWLOCK-10.

use super::*;

#[test]
fn readers_that_are_awake_help_to_wake_the_rest() {
    let lock = &with(WRITER | WAITING);
    let p = Scripted::new(1);
    (1..6).for_each(|cpu| sleeps(lock, &p, cpu, Sleeper::Reader));
    // The releasing thread loses its CPU as it wakes the first one.
    p.at_site(Site::SleepWake, OTHER, |p| assert!(readers::wake_admitted(p, lock.on(p))));
    // SAFETY: the lock was made with a writer.
    unsafe { lock.release_exclusive(&p) };
    assert_eq!(p.kicked(), [2, 3, 4, 5, 1], "each once");
    assert_eq!(word(lock), FREE);
}

#[test]
fn a_reader_that_is_woken_helps() {
    let lock = &with(WRITER);
    let p = Scripted::new(1);
    p.at_halt(OWNER, |p| {
        // SAFETY: the lock was made with a writer.
        unsafe { lock.release_exclusive(p) };
        assert_eq!(p.kicked(), [WAITER]);
        // Of those that another thread has begun to wake.
        sleeps(lock, p, OTHER, Sleeper::Admitted);
    });
    p.on_cpu(WAITER, |p| lock.acquire_shared(p));
    assert_eq!(p.kicked(), [OTHER]);
    assert_eq!(word(lock), READER);
}

#[test]
fn readers_that_come_meanwhile_sleep_on() {
    let lock = &with(WRITER | WAITING);
    let p = Scripted::new(1);
    (1..5).for_each(|cpu| sleeps(lock, &p, cpu, Sleeper::Reader));
    p.at_site(Site::SleepWake, OTHER, |p| sleeps(lock, p, 6, Sleeper::Reader));
    // SAFETY: the lock was made with a writer.
    unsafe { lock.release_exclusive(&p) };
    assert_eq!(p.kicked(), [1, 2, 3, 4]);
    assert!(sleepers::anybody(&p, lock.on(&p)));
}
