//! Which words admit whom, and what becomes of waiters that wait in vain: RWLOCK-5 and its like.

mod away;
mod passing;
mod starving;

use core::sync::atomic::AtomicU32;

use super::*;
use crate::lock::{RawFairSharedLock, RawLock, RawUpgradableLock};
use crate::scripted::{STARVES_NS, Scripted};

type Lock = DefaultRwLock<AtomicU32>;

/// The CPU on which a test begins; it owns the lock first.
const OWNER: u32 = 0;
const WAITER: u32 = 1;
const OTHER: u32 = 2;

fn word(lock: &Lock) -> u32 {
    lock.word.load(Relaxed)
}

/// A lock with this word.
fn with(word: u32) -> Lock {
    Lock { word: AtomicU32::new(word), gate: ConstLock::UNLOCKED }
}

/// Whether a newcomer acquires a lock with this word, to read, to read upgradably and to write.
fn admits(word: u32, p: &Scripted) -> [bool; 3] {
    [
        with(word).try_acquire_shared(p),
        with(word).try_acquire_upgradable(p),
        with(word).try_acquire_exclusive(p),
    ]
}

/// `cpu` sleeps beside the lock for ever.
fn sleeps(lock: &Lock, p: &Scripted, cpu: u32, waiter: Sleeper) {
    p.sleeps(cpu, 0, lock.on(p), waiter as u32, sleepers::End::Last);
}

/// What a child of `fork` keeps of its parent's lock.
#[test]
fn owners_stay_and_waiters_are_forgotten() {
    let p = Scripted::new(1);
    for owners in [FREE, 3 * READER, READER | UPGRADABLE, WRITER] {
        let lock = with(owners | STATE_BITS | WAITING | ASKED | UPGRADING);
        assert!(lock.gate.try_acquire(&p));
        lock.forget_waiters();
        assert_eq!(word(&lock), owners);
        assert!(!lock.gate.is_locked(&p));
    }
}

#[test]
fn newcomers_barge_past_a_writer_only_to_write_and_only_while_it_sleeps() {
    let p = Scripted::new(1);
    assert_eq!(admits(FREE, &p), [true; 3]);
    assert_eq!(admits(WAITING, &p), [true; 3]);
    assert_eq!(admits(SLEEPING, &p), [true; 3], "a reader owns the gate");
    assert_eq!(admits(CLOSED, &p), [false; 3]);
    assert_eq!(admits(CLOSED | SLEEPING, &p), [false, false, true]);
    for heir in [HEIR, HEIR | SLEEPING, HEIR | CLOSED, HEIR | CLOSED | SLEEPING] {
        assert_eq!(admits(heir, &p), [false; 3], "{heir:#x}");
    }
    assert_eq!(admits(READER, &p), [true, true, false]);
    assert_eq!(admits(READER | UPGRADABLE, &p), [true, false, false]);
    assert_eq!(admits(READER | UPGRADABLE | UPGRADING, &p), [false; 3]);
    assert_eq!(admits((MAX_READERS - 1) * READER, &p), [true, true, false]);
    assert_eq!(admits(MAX_READERS * READER, &p), [false; 3]);
}

#[test]
fn state_bits_alone_do_not_make_a_free_lock_locked() {
    let p = Scripted::new(1);
    let is_locked = |word| {
        let lock = with(word);
        [lock.is_locked(&p), lock.is_locked_exclusive(&p)]
    };
    let bits = [CLOSED, SLEEPING, HEIR, WAITING, STATE_BITS | WAITING];
    for bits in [FREE].into_iter().chain(bits) {
        assert_eq!(is_locked(bits), [false, false], "{bits:#x}");
        assert_eq!(is_locked(bits | READER), [true, false], "{bits:#x}");
        assert_eq!(is_locked(bits | READER | UPGRADABLE), [true, false], "{bits:#x}");
        assert_eq!(is_locked(bits | WRITER), [true, true], "{bits:#x}");
    }
}

#[test]
fn a_deadline_that_has_passed_allows_one_attempt_on_a_lock_with_state_bits() {
    let p = Scripted::new(1);
    let over = p.after(0);
    for bits in [FREE, WAITING, SLEEPING, CLOSED | SLEEPING] {
        assert!(with(bits).acquire_exclusive_until(&p, over), "{bits:#x}");
    }
    for bits in [CLOSED, HEIR, READER, WRITER] {
        assert!(!with(bits).acquire_exclusive_until(&p, over), "{bits:#x}");
    }
    for bits in [FREE, WAITING, SLEEPING, READER] {
        assert!(with(bits).acquire_shared_until(&p, over), "{bits:#x}");
        assert!(with(bits).acquire_upgradable_until(&p, over), "{bits:#x}");
    }
    for bits in [CLOSED, CLOSED | SLEEPING, HEIR, WRITER] {
        assert!(!with(bits).acquire_shared_until(&p, over), "{bits:#x}");
        assert!(!with(bits).acquire_upgradable_until(&p, over), "{bits:#x}");
    }
}

#[test]
fn a_waiter_that_a_release_wakes_at_its_deadline_acquires_the_lock() {
    type Acquire = fn(&Lock, &Scripted, u64) -> bool;
    let acquires: [Acquire; 3] = [
        |lock, p, deadline| lock.acquire_shared_until(p, deadline),
        |lock, p, deadline| lock.acquire_upgradable_until(p, deadline),
        |lock, p, deadline| lock.acquire_exclusive_until(p, deadline),
    ];
    for (acquire, to) in acquires.into_iter().zip([READER, READER | UPGRADABLE, WRITER]) {
        let lock = &with(FREE);
        let p = Scripted::new(1);
        lock.acquire_exclusive(&p);
        p.at_halt(OWNER, |p| {
            p.pass(100);
            // SAFETY: acquired above.
            unsafe { lock.release_exclusive(p) };
        });
        let deadline = p.after(100);
        assert!(p.on_cpu(WAITER, |p| acquire(lock, p, deadline)));
        assert_eq!(word(lock), to);
    }
    // The same where only an upgradable reader is in the way.
    let lock = &with(FREE);
    let p = Scripted::new(1);
    assert!(lock.try_acquire_upgradable(&p));
    p.at_halt(OWNER, |p| {
        p.pass(100);
        // SAFETY: acquired above.
        unsafe { lock.release_upgradable(p) };
    });
    let deadline = p.after(100);
    assert!(p.on_cpu(WAITER, |p| lock.acquire_upgradable_until(p, deadline)));
}

/// The next step: a release wakes the waiter, and the lock is taken again before it can have it.
fn wakes_in_vain<'s>(lock: &'s Lock, p: &Scripted<'s>) {
    p.at_halt(OWNER, |p| {
        assert_eq!(word(lock) & HEIR, 0, "the waiter does not starve yet");
        p.pass(STARVES_NS / 2 - 1);
        p.kicked();
        // SAFETY: the owner holds the lock for writing, at the beginning and after each step.
        unsafe { lock.release_exclusive(p) };
        assert_eq!(p.kicked(), [WAITER]);
        assert!(lock.try_acquire_exclusive(p), "newcomers barge");
    });
}

/// The next step: the lock is released, but reserved for the waiter.
fn leaves_it_to_the_heir<'s>(lock: &'s Lock, p: &Scripted<'s>) {
    p.at_halt(OWNER, |p| {
        assert_ne!(word(lock) & HEIR, 0, "the waiter starves");
        // SAFETY: as in `wakes_in_vain`.
        unsafe { lock.release_exclusive(p) };
        assert!(!lock.try_acquire_shared(p));
        assert!(!lock.try_acquire_upgradable(p));
        assert!(!lock.try_acquire_exclusive(p));
    });
}

#[test]
fn a_reader_that_is_woken_in_vain_again_and_again_becomes_the_heir() {
    let lock = &with(FREE);
    let p = Scripted::new(1);
    lock.acquire_exclusive(&p);
    (0..3).for_each(|_| wakes_in_vain(lock, &p));
    // It is the heir at once when it has the gate.
    leaves_it_to_the_heir(lock, &p);
    p.on_cpu(WAITER, |p| lock.acquire_shared(p));
    assert_eq!(word(lock), READER);
}

#[test]
fn a_reader_that_is_not_woken_wakes_by_itself_to_become_the_heir() {
    let lock = &with(FREE);
    let p = Scripted::new(1);
    lock.acquire_exclusive(&p);
    p.at_halt(OWNER, |p| p.pass(STARVES_NS));
    leaves_it_to_the_heir(lock, &p);
    p.on_cpu(WAITER, |p| lock.acquire_shared(p));
    assert_eq!(word(lock), READER);
}

#[test]
fn the_owner_of_the_gate_that_is_woken_in_vain_again_and_again_becomes_the_heir() {
    let lock = &with(FREE);
    let p = Scripted::new(1);
    lock.acquire_exclusive(&p);
    (0..3).for_each(|_| wakes_in_vain(lock, &p));
    leaves_it_to_the_heir(lock, &p);
    p.on_cpu(WAITER, |p| lock.acquire_exclusive(p));
    assert_eq!(word(lock), WRITER);
}

#[test]
fn a_writer_that_is_awake_is_passed_by_none() {
    let lock = &with(FREE);
    let p = Scripted::polling(1);
    lock.acquire_exclusive(&p);
    wakes_in_vain(lock, &p);
    p.on_cpu(WAITER, |p| {
        // It polls once before it waits for the gate, once with it, and then after its sleep.
        p.at_poll(OWNER, |_| {});
        p.at_poll(OWNER, |_| {});
        p.at_poll(OWNER, |p| {
            assert_eq!(word(lock), WRITER | CLOSED);
            // SAFETY: acquired by the last step of `wakes_in_vain`.
            unsafe { lock.release_exclusive(p) };
            assert!(!lock.try_acquire_shared(p));
            assert!(!lock.try_acquire_exclusive(p));
        });
        lock.acquire_exclusive(p);
    });
    assert_eq!(word(lock), WRITER);
}

#[test]
fn a_writer_closes_the_lock_to_readers_and_opens_it_again_when_it_gives_up() {
    let lock = &with(FREE);
    let p = Scripted::new(1);
    lock.acquire_shared(&p);
    p.at_halt(OTHER, |p| {
        assert_eq!(word(lock), READER | CLOSED | SLEEPING);
        assert!(!lock.try_acquire_shared(p));
        sleeps(lock, p, OTHER, Sleeper::Reader);
        lock.word.fetch_or(WAITING, Relaxed);
        p.pass(100);
    });
    let deadline = p.after(100);
    assert!(!p.on_cpu(WAITER, |p| lock.acquire_exclusive_until(p, deadline)));
    assert_eq!(word(lock), READER);
    assert_eq!(p.kicked(), [OTHER], "nothing keeps it out any more");
}

#[test]
fn the_last_reader_wakes_the_writer_which_is_next() {
    let lock = &with(FREE);
    let p = Scripted::new(1);
    lock.acquire_shared(&p);
    lock.acquire_shared(&p);
    p.at_halt(OWNER, |p| {
        // SAFETY: acquired above.
        unsafe { lock.release_shared(p) };
        assert_eq!(p.kicked(), [], "one still reads");
        // SAFETY: acquired above.
        unsafe { lock.release_shared(p) };
        assert_eq!(p.kicked(), [WAITER]);
        assert!(!lock.try_acquire_shared(p));
    });
    p.on_cpu(WAITER, |p| lock.acquire_exclusive(p));
    assert_eq!(word(lock), WRITER);
}

#[test]
fn the_release_of_a_writer_wakes_all_readers_or_the_owner_of_the_gate_alone() {
    for (bits, left, kicked) in [
        (WAITING, FREE, &[2, 3, 5][..]),
        (WAITING | CLOSED | SLEEPING, WAITING | CLOSED | SLEEPING, &[4]),
        // A reader owns the gate, and keeps no other out.
        (WAITING | SLEEPING, SLEEPING, &[4, 2, 3, 5]),
    ] {
        let lock = &with(WRITER | bits);
        let p = Scripted::new(1);
        for (cpu, waiter) in
            [(2, Sleeper::Reader), (3, Sleeper::Reader), (4, Sleeper::Gate), (5, Sleeper::Reader)]
        {
            sleeps(lock, &p, cpu, waiter);
        }
        // SAFETY: the lock was made with a writer.
        unsafe { lock.release_exclusive(&p) };
        assert_eq!((word(lock), &p.kicked()[..]), (left, kicked), "{bits:#x}");
    }
}

#[test]
fn a_fair_release_makes_the_owner_of_the_gate_the_heir() {
    let bits = CLOSED | SLEEPING;
    for before in [READER | bits, READER | UPGRADABLE | bits, WRITER | bits] {
        let lock = &with(before);
        let p = Scripted::new(1);
        sleeps(lock, &p, WAITER, Sleeper::Gate);
        // SAFETY: the lock was made with such an owner.
        unsafe {
            match before & !bits {
                READER => lock.release_shared_fair(&p),
                WRITER => lock.release_exclusive_fair(&p),
                _ => lock.release_upgradable_fair(&p),
            }
        };
        assert_eq!(word(lock), bits | HEIR);
        assert_eq!(p.kicked(), [WAITER]);
    }
}

#[test]
fn one_that_asked_in_vain_is_the_next_to_be_woken_and_asks_for_the_others() {
    let lock = &with(FREE);
    let p = Scripted::new(1);
    assert!(lock.try_acquire_upgradable(&p));
    p.at_halt(OWNER, |p| {
        sleeps(lock, p, OTHER, Sleeper::Asking);
        // SAFETY: acquired above.
        unsafe { lock.release_upgradable(p) };
        assert_eq!(p.kicked(), [WAITER]);
        assert!(lock.try_acquire_upgradable(p), "newcomers barge");
    });
    p.at_halt(OWNER, |p| {
        // SAFETY: acquired in the step before.
        unsafe { lock.release_upgradable(p) };
        assert_eq!(p.kicked(), [WAITER], "before the other one");
    });
    p.on_cpu(WAITER, |p| assert!(lock.acquire_upgradable_until(p, NEVER)));
    assert_eq!(word(lock), READER | UPGRADABLE | ASKED);
    // SAFETY: acquired above.
    unsafe { lock.release_upgradable(&p) };
    assert_eq!(p.kicked(), [OTHER]);
}

#[test]
fn one_that_asked_in_vain_and_then_finds_no_need_to_sleep_asks_for_the_others_too() {
    let lock = &with(READER | UPGRADABLE);
    let p = Scripted::new(1);
    p.at_halt(OWNER, |p| {
        sleeps(lock, p, OTHER, Sleeper::Asking);
        // SAFETY: the lock was made with an upgradable reader.
        unsafe { lock.release_upgradable(p) };
        assert_eq!(p.kicked(), [WAITER]);
        assert!(lock.try_acquire_upgradable(p), "newcomers barge");
        // The waiter has joined the sleepers again, and has not looked at the word yet.
        p.at_site(Site::SleepFence, OWNER, |p| {
            // SAFETY: acquired just above.
            unsafe { lock.release_upgradable(p) };
            assert_eq!(p.kicked(), [], "none has asked this reader");
        });
    });
    p.on_cpu(WAITER, |p| assert!(lock.acquire_upgradable_until(p, NEVER)));
    assert_eq!(word(lock), READER | UPGRADABLE | ASKED);
}

#[test]
fn one_that_is_woken_before_it_sleeps_asks_for_the_others_too() {
    let lock = &with(READER | UPGRADABLE);
    let p = Scripted::new(1);
    // It has joined the sleepers, and has not looked at the word yet.
    p.at_site(Site::SleepHeavy, OWNER, |p| {
        sleeps(lock, p, OTHER, Sleeper::Asking);
        lock.word.fetch_or(ASKED, Relaxed);
        // SAFETY: the lock was made with an upgradable reader.
        unsafe { lock.release_upgradable(p) };
        assert_eq!(p.kicked(), [WAITER]);
    });
    p.on_cpu(WAITER, |p| assert!(lock.acquire_upgradable_until(p, NEVER)));
    assert_eq!(word(lock), READER | UPGRADABLE | ASKED);
}

#[test]
fn one_that_asked_and_gives_up_asks_for_the_others() {
    let lock = &with(FREE);
    let p = Scripted::new(1);
    assert!(lock.try_acquire_upgradable(&p));
    p.at_halt(OWNER, |p| {
        sleeps(lock, p, OTHER, Sleeper::Asking);
        // SAFETY: acquired above.
        unsafe { lock.release_upgradable(p) };
        assert!(lock.try_acquire_upgradable(p));
        p.pass(100);
    });
    let deadline = p.after(100);
    assert!(!p.on_cpu(WAITER, |p| lock.acquire_upgradable_until(p, deadline)));
    assert_eq!(p.kicked(), [WAITER]);
    // SAFETY: acquired in the step.
    unsafe { lock.release_upgradable(&p) };
    assert_eq!(p.kicked(), [OTHER]);
}

#[test]
fn an_upgrade_admits_no_further_readers_and_one_that_is_given_up_admits_them_again() {
    let lock = &with(FREE);
    let p = Scripted::new(1);
    assert!(p.on_cpu(WAITER, |p| lock.try_acquire_upgradable(p)));
    lock.acquire_shared(&p);
    p.at_halt(OTHER, |p| {
        assert!(!lock.try_acquire_shared(p));
        sleeps(lock, p, OTHER, Sleeper::Reader);
        // A reader that starves owns the gate.
        sleeps(lock, p, 3, Sleeper::Gate);
        lock.word.fetch_or(WAITING | SLEEPING, Relaxed);
        p.pass(100);
    });
    let deadline = p.after(100);
    // SAFETY: acquired above.
    assert!(!p.on_cpu(WAITER, |p| unsafe { lock.upgrade_until(p, deadline) }));
    assert_eq!(word(lock), (2 * READER) | UPGRADABLE | SLEEPING);
    assert_eq!(p.kicked(), [3, OTHER]);
    p.at_halt(OWNER, |p| {
        sleeps(lock, p, 3, Sleeper::Gate);
        // SAFETY: acquired above.
        unsafe { lock.release_shared(p) };
        assert_eq!(p.kicked(), [WAITER]);
    });
    // SAFETY: acquired above.
    assert!(p.on_cpu(WAITER, |p| unsafe { lock.upgrade_until(p, NEVER) }));
    assert_eq!(word(lock), WRITER | SLEEPING);
    assert_eq!(p.kicked(), [], "none is admitted");
}

#[test]
fn a_reader_in_an_interrupt_passes_all_that_only_wait() {
    let p = Scripted::new(1);
    for before in [STATE_BITS, READER | STATE_BITS, READER | UPGRADABLE | UPGRADING] {
        let lock = &with(before);
        p.in_interrupt(|p| lock.acquire_shared(p));
        assert_eq!(word(lock), before + READER);
    }
    let over = p.after(0);
    assert!(!p.in_interrupt(|p| with(WRITER).acquire_shared_until(p, over)));
}

#[test]
fn a_reader_without_room_polls_again_and_does_not_sleep() {
    for (want, bit) in [(Want::Read, 0), (Want::Upgradable, UPGRADABLE)] {
        let lock = &with(MAX_READERS * READER);
        let p = Scripted::new(1);
        // No release wakes it.
        p.at_halt(OWNER, |p| assert!(!sleepers::anybody(p, lock.on(p)), "{want:?}"));
        p.at_halt(OWNER, |p| {
            // SAFETY: one of those inside leaves.
            unsafe { lock.release_shared(p) };
        });
        p.on_cpu(WAITER, |p| match want {
            Want::Read => lock.acquire_shared(p),
            _ => assert!(lock.acquire_upgradable_until(p, NEVER)),
        });
        assert_eq!(word(lock), (MAX_READERS * READER) | bit);
    }
}

#[test]
fn a_waiter_for_an_upgradable_reader_leaves_the_gate_to_others() {
    let lock = &with(FREE);
    let p = Scripted::new(1);
    lock.acquire_exclusive(&p);
    p.at_halt(OWNER, move |p| {
        assert!(lock.gate.is_locked(p), "it waits for the writer");
        // SAFETY: acquired above.
        unsafe { lock.downgrade_to_upgradable(p) };
        assert_eq!(p.kicked(), [WAITER]);
    });
    p.at_halt(OWNER, move |p| {
        assert!(!lock.gate.is_locked(p));
        assert_eq!(word(lock), READER | UPGRADABLE | ASKED);
        // SAFETY: as the step before has left it.
        unsafe { lock.release_upgradable(p) };
    });
    p.on_cpu(WAITER, |p| assert!(lock.acquire_upgradable_until(p, NEVER)));
    assert_eq!(word(lock), READER | UPGRADABLE | ASKED);
}

#[test]
fn a_writer_gives_up_at_the_gate_too() {
    let lock = &with(FREE);
    let p = Scripted::new(1);
    lock.acquire_exclusive(&p);
    p.on_cpu(OTHER, |p| lock.gate.acquire(p));
    p.at_halt(OWNER, |p| p.pass(100));
    let deadline = p.after(100);
    assert!(!p.on_cpu(WAITER, |p| lock.acquire_exclusive_until(p, deadline)));
    assert_eq!(word(lock), WRITER);
}

#[test]
fn a_writer_that_becomes_a_reader_lets_others_read_unless_a_writer_is_next() {
    for reads in [READER, READER | UPGRADABLE] {
        for (bits, left, kicked) in [
            (WAITING, 0, &[2, 3][..]),
            // Readers may be inside, so the writer closes the lock to further ones, or stays closed.
            (WAITING | CLOSED | SLEEPING, WAITING | CLOSED | SLEEPING, &[4]),
        ] {
            let lock = &with(WRITER | bits);
            let p = Scripted::new(1);
            sleeps(lock, &p, 2, Sleeper::Reader);
            sleeps(lock, &p, 4, Sleeper::Gate);
            sleeps(lock, &p, 3, Sleeper::Reader);
            // SAFETY: the lock was made with a writer.
            unsafe {
                match reads {
                    READER => lock.downgrade(&p),
                    _ => lock.downgrade_to_upgradable(&p),
                }
            };
            assert_eq!((word(lock), &p.kicked()[..]), (reads | left, kicked), "{bits:#x}");
        }
    }
}
