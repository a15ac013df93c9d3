//! How waiters and newcomers share a lock: MUTEX-2, -3 and -6.

mod resting;

use core::cell::Cell;
use core::sync::atomic::AtomicU32;

use super::word::AWAKE;
use super::*;
use crate::lock::RawFairLock;
use crate::platform::Platform;
use crate::scripted::{STARVES_NS, Scripted};
use crate::sleepers::{Absence, End, keep_away_from_mutex, let_it_be_one_of_many};

type Lock = DefaultLock<AtomicU32>;

/// The CPU on which a test begins; it owns the lock first.
const OWNER: u32 = 0;
const WAITER: u32 = 1;
const OTHER: u32 = 2;

fn word(lock: &Lock) -> u32 {
    lock.word.load(Relaxed)
}

/// A lock with this word.
fn with(word: u32) -> Lock {
    Lock { word: AtomicU32::new(word) }
}

/// `cpu` sleeps for the lock for ever.
fn sleeps(lock: &Lock, p: &Scripted, cpu: u32) {
    p.sleeps(cpu, 0, lock.address(p), TAG, End::Last);
}

/// The owner releases the lock, which wakes this CPU, and acquires it again before that one can have it.
fn wakes_in_vain(lock: &Lock, p: &Scripted, cpu: u32) {
    p.kicked();
    // SAFETY: the owner holds the lock, at the beginning of a test and after each call.
    unsafe { lock.release(p) };
    assert_eq!(p.kicked(), [cpu]);
    assert!(lock.try_acquire(p), "newcomers barge");
}

#[test]
fn state_bits_alone_do_not_make_a_free_lock_locked() {
    let p = Scripted::new(1);
    for bits in [0, AWAKE, 3 * AWAKE, AWAKE | HEIR] {
        assert!(!with(bits).is_locked(&p), "{bits:#x}");
        assert!(with(bits | LOCKED).is_locked(&p), "{bits:#x}");
    }
}

#[test]
fn newcomers_barge_past_awake_waiters_but_not_past_an_heir() {
    let p = Scripted::new(1);
    let over = p.after(0);
    for (bits, is_admitted) in [(0, true), (AWAKE, true), (3 * AWAKE, true), (AWAKE | HEIR, false)]
    {
        let (tried, timed) = (with(bits), with(bits));
        assert_eq!(tried.try_acquire(&p), is_admitted, "{bits:#x}");
        // A deadline that has passed allows one attempt.
        assert_eq!(timed.acquire_until(&p, over), is_admitted, "{bits:#x}");
        let to = if is_admitted { bits | LOCKED } else { bits };
        assert_eq!([word(&tried), word(&timed)], [to; 2]);
    }
}

#[test]
fn a_thread_that_comes_right_back_past_waiters_acquires_the_lock_in_one_step() {
    // Whether the first step is the one from a word without state bits.
    let begins_at_zero = |sleeper: bool, last: usize, away: bool| {
        let tried = &Cell::new(false);
        let (lock, other) = (&with(0), with(0));
        let p = Scripted::yielding(1, 1).with_places();
        if sleeper {
            lock.acquire(&p);
            sleeps(lock, &p, WAITER);
            wakes_in_vain(lock, &p, WAITER);
            // SAFETY: acquired by the call before.
            unsafe { lock.release(&p) };
            assert_eq!(word(lock), AWAKE);
        } else {
            // Only where a heavy barrier is there a lock becomes quiet by itself.
            p.hints()[0].store(sleepers::QUIET_HINT, Relaxed);
        }
        if away {
            keep_away_from_mutex(&p, lock.address(&p));
        }
        p.throughput().unwrap().count(OWNER, [lock, &other][last].address(&p));
        p.at_site(Site::MutexTry, OWNER, |_| tried.set(true));
        lock.acquire(&p);
        assert_eq!(word(lock) & !PLACE, LOCKED | if sleeper { AWAKE } else { 0 });
        // SAFETY: acquired above; the step may be left.
        unsafe { lock.release(&p) };
        let at_zero = tried.get();
        if !at_zero {
            assert!(other.acquire_at_once(&p));
        }
        at_zero
    };
    assert!(!begins_at_zero(true, 0, true));
    assert!(begins_at_zero(true, 1, true), "it comes from another lock");
    assert!(begins_at_zero(false, 0, true), "no waiter sleeps");
    assert!(begins_at_zero(true, 0, false), "another CPU may have had the lock meanwhile");
}

#[test]
fn a_thread_that_comes_right_back_does_not_pass_an_heir() {
    let p = Scripted::new(1);
    for (before, after) in [(AWAKE | HEIR, None), (LOCKED, None), (AWAKE, Some(AWAKE | LOCKED))] {
        let lock = with(before);
        assert_eq!(lock.acquire_past(&p), after.is_some(), "{before:#x}");
        assert_eq!(word(&lock), after.unwrap_or(before));
    }
}

#[test]
fn a_waiter_that_is_woken_in_vain_again_and_again_becomes_the_heir() {
    let lock = &with(0);
    let p = Scripted::polling(1);
    lock.acquire(&p);
    for sleep in 1..=3 {
        p.at_halt(OWNER, move |p| {
            assert_eq!(word(lock) & HEIR, 0, "the waiter does not starve yet");
            p.pass(STARVES_NS / 2 - 1);
            wakes_in_vain(lock, p, WAITER);
            // When it polls after that, and only after the last time, it has reserved the lock.
            p.at_poll(OWNER, move |p| {
                assert_eq!(word(lock) & HEIR != 0, sleep == 3, "{sleep}");
                if sleep < 3 {
                    return;
                }
                // It does not sleep at once: that would waste the reservation.
                p.at_poll(OWNER, |p| {
                    // SAFETY: acquired by the last call of `wakes_in_vain`.
                    unsafe { lock.release(p) };
                    assert_eq!(p.kicked(), [], "the heir is awake");
                    assert!(!lock.try_acquire(p));
                });
            });
        });
    }
    p.on_cpu(WAITER, |p| lock.acquire(p));
    assert_eq!(word(lock), LOCKED);
}

#[test]
fn a_starving_waiter_that_has_to_sleep_again_is_the_heir_when_it_is_woken() {
    let lock = &with(0);
    let p = Scripted::new(1);
    lock.acquire(&p);
    for waited_ns in [STARVES_NS - 1, 1] {
        p.at_halt(OWNER, move |p| {
            p.pass(waited_ns);
            wakes_in_vain(lock, p, WAITER);
        });
    }
    p.at_halt(OWNER, |p| {
        // SAFETY: acquired by `wakes_in_vain`.
        unsafe { lock.release(p) };
        assert_eq!(p.kicked(), [WAITER]);
        assert_eq!(word(lock), AWAKE | HEIR);
        assert!(!lock.try_acquire(p));
    });
    p.on_cpu(WAITER, |p| lock.acquire(p));
    assert_eq!(word(lock), LOCKED);
}

#[test]
fn a_waiter_that_was_woken_in_vain_is_the_next_to_be_woken() {
    let lock = &with(0);
    let p = Scripted::new(1);
    lock.acquire(&p);
    p.at_halt(OWNER, |p| {
        sleeps(lock, p, OTHER);
        wakes_in_vain(lock, p, WAITER);
    });
    p.at_halt(OWNER, |p| wakes_in_vain(lock, p, WAITER));
    p.at_halt(OWNER, |p| {
        // SAFETY: acquired in the step before.
        unsafe { lock.release(p) };
        assert_eq!(p.kicked(), [WAITER]);
    });
    p.on_cpu(WAITER, |p| lock.acquire(p));
    // It is counted no more: the next release wakes the other one.
    assert_eq!(word(lock), LOCKED);
    wakes_in_vain(lock, &p, OTHER);
}

#[test]
fn of_many_locks_one_that_woken_waiters_find_free_wakes_two() {
    let lock = &with(0);
    let p = Scripted::yielding(1, 1);
    let on = lock.address(&p);
    (1..=4).for_each(|cpu| sleeps(lock, &p, cpu));
    let releases = || {
        assert!(lock.try_acquire(&p));
        // SAFETY: acquired in the line before.
        unsafe { lock.release(&p) };
        p.kicked()
    };
    let_it_be_one_of_many(&p, on);
    assert_eq!(releases(), [1]);
    lock.clear(&p);
    let absence = Absence::from(&p, on, Some(5));
    p.throughput().unwrap().count(5, on + 4);
    sleepers::wakes::woke(&p, on, &absence, true);
    assert_eq!(releases(), [2, 3]);
    assert_eq!(word(lock), 2 * AWAKE, "both are counted");
    assert_eq!(releases(), [], "while they are awake");
    (0..2).for_each(|_| _ = lock.clear(&p));
    assert_eq!(releases(), [4], "no more sleep");
    assert_eq!(word(lock), AWAKE);
}

#[test]
fn a_waiter_that_gives_up_leaves_the_next_wake_up_to_others() {
    let lock = &with(0);
    let p = Scripted::new(1);
    lock.acquire(&p);
    p.at_halt(OWNER, |p| {
        sleeps(lock, p, OTHER);
        wakes_in_vain(lock, p, WAITER);
        p.pass(100);
    });
    let deadline = p.after(100);
    assert!(!p.on_cpu(WAITER, |p| lock.acquire_until(p, deadline)));
    wakes_in_vain(lock, &p, OTHER);
}

#[test]
fn a_waiter_that_gives_up_while_the_lock_comes_free_wakes_another() {
    let lock = &with(0);
    let p = Scripted::new(1);
    lock.acquire(&p);
    p.at_halt(OWNER, |p| {
        sleeps(lock, p, OTHER);
        wakes_in_vain(lock, p, WAITER);
        p.pass(100);
        // The waiter has seen the lock taken, and asks for the time.
        p.at_reading(OWNER, |p| {
            // SAFETY: acquired by `wakes_in_vain`.
            unsafe { lock.release(p) };
            assert_eq!(p.kicked(), [], "the waiter is awake");
        });
    });
    let deadline = p.after(100);
    assert!(!p.on_cpu(WAITER, |p| lock.acquire_until(p, deadline)));
    assert_eq!(p.kicked(), [OTHER]);
}

#[test]
fn a_thread_that_is_replaced_or_has_slept_begins_its_quantum_anew() {
    for (bits, is_replaced) in [(0, true), (AWAKE | HEIR, true), (AWAKE, false)] {
        let lock = &with(LOCKED | bits);
        let p = Scripted::new(1);
        let used_up = p.tuning().rotate_turns;
        let turns = |p: &Scripted| p.node(Scripted::node_of(WAITER)).turns.load(Relaxed);
        p.node(Scripted::node_of(WAITER)).turns.store(used_up, Relaxed);
        p.at_halt(OWNER, move |p| {
            assert_eq!(turns(p), if is_replaced { 0 } else { used_up }, "{bits:#x}");
            p.node(Scripted::node_of(WAITER)).turns.store(used_up, Relaxed);
            lock.word.store(LOCKED, Relaxed);
            // SAFETY: the lock was made locked.
            unsafe { lock.release(p) };
        });
        p.on_cpu(WAITER, |p| lock.acquire(p));
        assert_eq!(turns(&p), 0);
    }
}

#[test]
fn a_waiter_that_is_woken_at_its_deadline_acquires_the_lock() {
    let lock = &with(0);
    let p = Scripted::new(1);
    lock.acquire(&p);
    p.at_halt(OWNER, |p| {
        p.pass(100);
        // SAFETY: acquired above.
        unsafe { lock.release(p) };
    });
    let deadline = p.after(100);
    assert!(p.on_cpu(WAITER, |p| lock.acquire_until(p, deadline)));
    assert_eq!(word(lock), LOCKED);
}

#[test]
fn a_release_wakes_a_sleeper_unless_a_counted_waiter_is_awake() {
    let p = Scripted::new(1);
    let lock = &with(LOCKED | AWAKE);
    sleeps(lock, &p, WAITER);
    sleeps(lock, &p, OTHER);
    // SAFETY: the lock was made locked.
    unsafe { lock.release(&p) };
    assert_eq!((word(lock), &p.kicked()[..]), (AWAKE, &[][..]));
    lock.word.store(LOCKED, Relaxed);
    // SAFETY: it is locked again.
    unsafe { lock.release(&p) };
    assert_eq!((word(lock), &p.kicked()[..]), (AWAKE, &[WAITER][..]));
}

#[test]
fn a_thread_wakes_one_more_sleeper_once_its_quantum_is_used_up() {
    let p = Scripted::new(1);
    let lock = &with(LOCKED);
    for cpu in [WAITER, OTHER, 3] {
        sleeps(lock, &p, cpu);
    }
    wakes_in_vain(lock, &p, WAITER);
    for turn in 1..=p.tuning().rotate_turns + 100 {
        // SAFETY: the lock is held, at first and after each turn.
        unsafe { lock.release(&p) };
        let (past, tuning) = (turn.checked_sub(p.tuning().rotate_turns), p.tuning());
        assert_eq!(p.kicked(), if past == Some(0) { &[OTHER][..] } else { &[] }, "turn {turn}");
        // Now and then it lets others have the CPU, until it is replaced.
        let yields = past.is_some_and(|past| past % tuning.yield_turns == 0);
        assert_eq!(p.yields(), yields.into(), "turn {turn}");
        assert!(lock.try_acquire(&p));
    }
}

#[test]
fn a_thread_whose_turns_take_long_wakes_one_more_sleeper_after_some_time() {
    let p = Scripted::new(1);
    let lock = &with(LOCKED);
    for cpu in [WAITER, OTHER] {
        sleeps(lock, &p, cpu);
    }
    wakes_in_vain(lock, &p, WAITER);
    // In the quantum's own unit, which is a little more than a microsecond.
    let length_ns = u64::from(p.tuning().rotate_us) << 10;
    let begin = p.after(0);
    while p.kicked().is_empty() {
        // The clock is read once in a few turns.
        assert!(p.after(0) <= begin + length_ns + length_ns / 10);
        p.pass(length_ns / 100);
        // SAFETY: the lock is held, at first and after each turn.
        unsafe { lock.release(&p) };
        assert!(lock.try_acquire(&p));
    }
    assert!(p.after(0) >= begin + length_ns);
}

#[test]
fn the_second_turn_that_is_as_long_as_eight_quanta_wakes_one_more_sleeper() {
    let p = Scripted::new(1);
    let lock = &with(LOCKED);
    for cpu in [WAITER, OTHER] {
        sleeps(lock, &p, cpu);
    }
    wakes_in_vain(lock, &p, WAITER);
    for woken in [&[][..], &[OTHER]] {
        p.pass(u64::from(p.tuning().rotate_us) << 10 << 3);
        // SAFETY: the lock is held, at first and after the first turn.
        unsafe { lock.release(&p) };
        assert_eq!(p.kicked(), woken);
        assert!(lock.try_acquire(&p));
    }
}

#[test]
fn a_release_inside_another_section_wakes_one_sleeper_and_never_yields() {
    let p = Scripted::new(1);
    let lock = &with(LOCKED);
    for cpu in [WAITER, OTHER] {
        sleeps(lock, &p, cpu);
    }
    for turn in 0..p.tuning().rotate_turns + 100 {
        // SAFETY: the lock is held, at first and after each turn.
        unsafe { lock.release_inside(&p) };
        assert_eq!(p.kicked(), if turn == 0 { &[WAITER][..] } else { &[] }, "turn {turn}");
        assert!(lock.try_acquire(&p));
    }
    assert_eq!(p.yields(), 0);
}

#[test]
fn a_waiter_takes_back_its_own_count_or_after_short_turns_that_of_all() {
    let p = Scripted::new(1);
    let short_ns = u64::from(p.tuning().mutex_short_ns);
    for (turn_ns, left) in [(short_ns, 2 * AWAKE), (short_ns - 1, 0), (0, 0)] {
        let lock = with(3 * AWAKE);
        sleepers::note_turns(&p, lock.address(&p), turn_ns);
        assert!(lock.take(&p, word(&lock), true));
        assert_eq!(word(&lock), LOCKED | left);
        let lock = with(3 * AWAKE);
        assert!(lock.take(&p, word(&lock), false), "a newcomer has none");
        assert_eq!(word(&lock), LOCKED | (3 * AWAKE));
    }
}

#[test]
fn a_child_of_fork_ignores_the_waiters_of_its_parent() {
    let p = Scripted::new(1);
    p.forks();
    let lock = with(AWAKE | HEIR);
    assert!(lock.try_acquire(&p));
    assert_eq!(word(&lock), LOCKED);
    let lock = with(LOCKED | AWAKE);
    sleeps(&lock, &p, OTHER);
    // SAFETY: the lock was made locked.
    unsafe { lock.release(&p) };
    assert_eq!(p.kicked(), [OTHER], "the awake waiter is none of this process");
}

#[test]
fn a_release_in_which_a_handler_forks_leaves_the_child_a_lock_that_no_waiter_of_its_parent_marks() {
    for (awake, is_fair) in [(0, false), (0, true), (AWAKE, false), (AWAKE, true)] {
        for readings in 0..4 {
            let lock = &with(LOCKED | awake);
            let p = Scripted::new(1);
            sleeps(lock, &p, OTHER);
            // The handler comes after one more than so many readings of the generation.
            for _ in 0..readings {
                p.at_generation(OWNER, |_| {});
            }
            p.at_generation(OWNER, |p| {
                p.forks();
                sleepers::forget(p, None);
            });
            // SAFETY: the lock was made locked.
            unsafe { if is_fair { lock.release_fair(&p) } else { lock.release(&p) } };
            // If the release has fewer, the handler comes after it.
            for _ in 0..=readings {
                p.generation();
            }
            assert_eq!(bits(&p, word(lock)), 0, "{awake:#x}, fair: {is_fair}, {readings}");
            assert!(lock.try_acquire(&p));
            assert_eq!(word(lock), LOCKED);
        }
    }
}

#[test]
fn a_fair_release_reserves_the_lock_for_a_waiter() {
    let p = Scripted::new(1);
    let lock = &with(LOCKED | AWAKE);
    sleeps(lock, &p, OTHER);
    // SAFETY: the lock was made locked.
    unsafe { lock.release_fair(&p) };
    assert_eq!((word(lock), &p.kicked()[..]), (AWAKE | HEIR, &[][..]));
    let lock = &with(0);
    let p = Scripted::new(1);
    lock.acquire(&p);
    p.at_halt(OWNER, |p| {
        // SAFETY: acquired above.
        unsafe { lock.release_fair(p) };
        assert_eq!(p.kicked(), [WAITER]);
        assert!(!lock.try_acquire(p));
    });
    p.on_cpu(WAITER, |p| lock.acquire(p));
    assert_eq!(word(lock), LOCKED);
}

#[test]
fn a_release_that_comes_before_a_waiter_has_joined_the_sleepers_is_seen_by_its_last_poll() {
    let lock = &with(0);
    let p = Scripted::new(1);
    lock.acquire(&p);
    p.at_site(Site::SleepBucketLock, OWNER, |p| {
        // SAFETY: acquired above.
        unsafe { lock.release(p) };
        assert_eq!(p.kicked(), []);
    });
    p.on_cpu(WAITER, |p| lock.acquire(p));
    assert_eq!(word(lock), LOCKED);
    assert!(!sleepers::anybody(&p, lock.address(&p)), "it sleeps no more");
}

#[test]
fn a_release_wakes_a_waiter_that_joins_the_sleepers_meanwhile() {
    for others in [false, true] {
        let lock = &with(LOCKED);
        let p = Scripted::new(1);
        if others {
            p.sleeps(OTHER, 0, lock.address(&p) + 64, TAG, End::Last);
        }
        // It looks for sleepers once more after it has released the lock.
        p.at_site(Site::SleepReleaseFence, WAITER, |p| {
            assert_eq!(word(lock), 0);
            sleeps(lock, p, WAITER);
        });
        // SAFETY: the lock was made locked.
        unsafe { lock.release(&p) };
        assert_eq!(p.kicked(), [WAITER]);
    }
}

#[test]
fn where_waiters_keep_away_one_that_has_just_missed_the_lock_does_not_try_at_once() {
    let at_the_clock = Cell::new(0);
    let lock = with(0);
    let p = Scripted::yielding(1, 1);
    let acquires = || {
        p.at_reading(OWNER, |_| at_the_clock.set(word(&lock)));
        assert!(lock.acquire_slow(&p, NEVER));
        p.now_ns();
        at_the_clock.get()
    };
    assert_ne!(acquires() & LOCKED, 0, "it has tried before it first reads the clock");
    lock.word.store(0, Relaxed);
    sleepers::keep_away_from_mutex(&p, lock.address(&p));
    assert_eq!(acquires(), 0, "it learns first");
}

#[test]
fn a_short_wait_is_counted_where_more_cpus_may_poll_than_should() {
    for (cpus, passed_before, counted) in
        [(0, false, true), (2, false, false), (3, false, false), (4, false, true), (2, true, true)]
    {
        let (lock, at_first_poll) = (with(LOCKED), Cell::new(0));
        let p = Scripted::yielding(1, 1);
        sleepers::let_cpus_be(&p, cpus);
        sleeps(&lock, &p, OTHER);
        p.on_cpu(WAITER, |p| {
            let quantum = Quantum::of(p);
            (0..p.tuning().rotate_turns)
                .filter(|_| passed_before)
                .for_each(|_| _ = quantum.count());
            assert_eq!(quantum.is_over(), passed_before);
            p.at_poll(WAITER, |_| {
                at_first_poll.set(word(&lock));
                lock.word.store(0, Relaxed);
            });
            Wait::new(&lock, p, NEVER).acquire(0);
        });
        assert_eq!(at_first_poll.get() & AWAKE != 0, counted, "{cpus} CPUs, {passed_before}");
        assert_ne!(word(&lock) & LOCKED, 0);
    }
}

#[test]
fn a_wait_that_is_not_short_is_counted() {
    let (lock, at_polls) = (with(LOCKED), Cell::new([0; 2]));
    let p = Scripted::yielding(1, 2);
    sleepers::let_cpus_be(&p, 2);
    sleeps(&lock, &p, OTHER);
    p.on_cpu(WAITER, |p| {
        p.at_poll(WAITER, |_| at_polls.set([word(&lock), 0]));
        p.at_poll(WAITER, |_| {
            at_polls.set([at_polls.get()[0], word(&lock)]);
            lock.word.store(0, Relaxed);
        });
        Wait::new(&lock, p, NEVER).acquire(0);
    });
    assert_eq!(at_polls.get().map(|word| word & AWAKE), [0, AWAKE]);
}
