//! The queue of a bucket: its order, and what is done where it cannot be locked.

use core::cell::Cell;
use std::vec::Vec;

use super::*;
use crate::platform::Platform;
use crate::scripted::{STARVES_NS, Scripted};

const ON: usize = 64;
const TAG: u32 = 7;

/// The sleepers on this address, in the order in which they are woken.
fn woken(p: &Scripted, on: usize) -> Vec<u32> {
    p.kicked();
    wake(p, on, u32::MAX);
    p.kicked()
}

#[test]
fn sleepers_are_woken_in_the_order_in_which_they_came() {
    let p = Scripted::new(1);
    for cpu in [3, 1, 4, 2] {
        p.sleeps(cpu, 0, ON, TAG, End::Last);
    }
    assert_eq!(woken(&p, ON), [3, 1, 4, 2]);
    assert!(!anybody(&p, ON));
}

#[test]
fn sleepers_of_higher_priority_are_woken_before_all_others() {
    let p = Scripted::new(1);
    for (cpu, priority) in [(0, 5), (1, 0), (2, 9), (3, 5), (4, 0), (5, 9)] {
        p.sleeps(cpu, priority, ON, TAG, End::Last);
    }
    assert_eq!(woken(&p, ON), [2, 5, 0, 3, 1, 4]);
}

#[test]
fn a_sleeper_that_was_woken_in_vain_is_the_first_of_its_priority_and_of_no_other() {
    for (priority, order) in [(0, [1, 2, 5, 3, 4]), (5, [5, 1, 2, 3, 4]), (9, [5, 1, 2, 3, 4])] {
        let p = Scripted::new(1);
        for (cpu, others) in [(1, 5), (2, 5), (3, 0), (4, 0)] {
            p.sleeps(cpu, others, ON, TAG, End::Last);
        }
        p.sleeps(5, priority, ON, TAG, End::First);
        assert_eq!(woken(&p, ON), order, "priority {priority}");
    }
}

#[test]
fn a_sleeper_leaves_the_queue_whatever_became_of_the_one_before_it() {
    let leaves = |p: &Scripted, cpu| assert!(cancel(p, Scripted::node_of(cpu)), "{cpu}");
    let all = || {
        let p = Scripted::new(1);
        (1..=5).for_each(|cpu| p.sleeps(cpu, 0, ON, TAG, End::Last));
        p
    };
    for cpu in 1..=5 {
        let p = all();
        leaves(&p, cpu);
        assert_eq!(woken(&p, ON), (1..=5).filter(|&other| other != cpu).collect::<Vec<_>>());
    }
    // The one before it has left, and has joined anew at either end, or on another address.
    for (on, end) in [(ON, End::Last), (ON, End::First), (ON + 4, End::Last)] {
        let p = all();
        leaves(&p, 2);
        p.sleeps(2, 0, on, TAG, end);
        leaves(&p, 3);
        let order = if end == End::First { [2, 1, 4, 5] } else { [1, 4, 5, 2] };
        let here = if on == ON { &order[..] } else { &order[..3] };
        assert_eq!(woken(&p, ON), here);
        assert_eq!(woken(&p, on), if on == ON { &[][..] } else { &[2] });
    }
    // It was woken, and others have joined in front.
    let p = all();
    wake(&p, ON, 2);
    p.sleeps(1, 0, ON, TAG, End::First);
    leaves(&p, 3);
    assert_eq!(woken(&p, ON), [1, 4, 5]);
    // The last one has left: another joins behind what is left.
    let p = all();
    leaves(&p, 5);
    p.sleeps(6, 0, ON, TAG, End::Last);
    leaves(&p, 6);
    leaves(&p, 4);
    assert_eq!(woken(&p, ON), [1, 2, 3]);
}

#[test]
fn sleepers_on_other_addresses_and_with_other_tags_sleep_on() {
    let p = Scripted::new(1);
    for (cpu, on, tag) in [(1, ON, 1), (2, ON + 4, 1), (3, ON, 2), (4, ON, 1)] {
        p.sleeps(cpu, 0, on, tag, End::Last);
    }
    let choose = |tag| if tag == 1 { Choice::Take } else { Choice::Leave };
    let taken = take(&p, ON, choose).unwrap();
    assert_eq!(taken.count(), 2);
    taken.wake(&p);
    assert_eq!(p.kicked(), [1, 4]);
    assert_eq!((woken(&p, ON), woken(&p, ON + 4)), ([3].to_vec(), [2].to_vec()));
}

#[test]
fn sleepers_that_are_moved_stay_in_order_behind_those_that_slept_there_before() {
    let from = (1..).map(|line| 64 * line).find(|&on| place(on, 2) == 0).unwrap();
    let into = |bucket| (1..).map(|line| 64 * line + 4).find(|&on| place(on, 2) == bucket).unwrap();
    // Within a bucket, and to another one in either direction.
    for (from, to) in [(from, into(0)), (from, into(1)), (into(1), from)] {
        let p = Scripted::new(2);
        for (cpu, on) in [(1, from), (2, to), (3, from), (4, from), (5, to)] {
            p.sleeps(cpu, 0, on, TAG, End::Last);
        }
        for (is_in_time, moved) in [(false, None), (true, Some(2))] {
            let still = || {
                // What it returns holds until they are moved: no other CPU can add or take one meanwhile.
                let is_locked = |on| p.on_cpu(6, |p| Held::try_lock(p, on).is_none());
                assert!(is_locked(from) && is_locked(to));
                is_in_time
            };
            assert_eq!(requeue(&p, from, to, TAG, 2, still), moved);
        }
        assert_eq!(woken(&p, to), [2, 5, 1, 3]);
        assert_eq!(woken(&p, from), [4]);
    }
}

#[test]
fn sleepers_that_are_moved_keep_their_priority() {
    let to = ON + 4;
    let p = Scripted::new(1);
    for (cpu, priority, on) in [(1, 0, ON), (2, 5, to), (3, 9, ON)] {
        p.sleeps(cpu, priority, on, TAG, End::Last);
    }
    assert_eq!(requeue(&p, ON, to, TAG, 2, || true), Some(2));
    assert_eq!(woken(&p, to), [3, 2, 1]);
}

#[test]
fn each_end_of_a_quiet_time_begins_an_epoch_whether_a_waiter_joins_or_is_moved() {
    let from = (1..).map(|line| 64 * line).find(|&on| place(on, 2) == 0).unwrap();
    let to = (1..).map(|line| 64 * line).find(|&on| place(on, 2) == 1).unwrap();
    let (joined, moved) = (Scripted::new(2), Scripted::new(2));
    for epoch in [EPOCH, 2 * EPOCH] {
        for p in [&joined, &moved] {
            hint(p, to).store(QUIET | SETTLED | (epoch - EPOCH), Relaxed);
        }
        let cpu = epoch / EPOCH;
        joined.sleeps(cpu, 0, to, TAG, End::Last);
        assert_eq!(hint(&joined, to).load(Relaxed), epoch | SETTLED);
        moved.sleeps(cpu, 0, from, TAG, End::Last);
        assert_eq!(requeue(&moved, from, to, TAG, 1, || true), Some(1));
        // Its barrier has not passed: SLEEP-2 asks for none.
        assert_eq!(hint(&moved, to).load(Relaxed), epoch);
    }
}

#[test]
fn a_waiter_starves_a_tenth_later_for_each_that_sleeps() {
    let p = Scripted::new(1);
    for cpu in 0..5 {
        assert_eq!(starves_after_ns(&p, ON), STARVES_NS + u64::from(cpu) * STARVES_NS / 10);
        p.sleeps(cpu, 0, ON, TAG, End::Last);
    }
}

#[test]
fn a_sleeper_leaves_at_its_deadline_and_one_that_was_taken_meanwhile_was_woken() {
    for is_taken in [false, true] {
        let p = Scripted::new(1);
        for cpu in [1, 2, 3] {
            p.sleeps(cpu, 0, ON, TAG, End::Last);
        }
        p.at_halt(0, move |p| {
            p.pass(100);
            if is_taken {
                assert_eq!(wake(p, ON, 2), 2);
            }
        });
        let me = Scripted::node_of(2);
        let deadline = p.after(100);
        assert_eq!(p.on_cpu(2, |p| await_wake(p, me, deadline)), is_taken);
        assert_eq!(woken(&p, ON), if is_taken { [3].to_vec() } else { [1, 3].to_vec() });
    }
}

#[test]
fn the_owner_of_a_bucket_wakes_all_its_sleepers_for_a_release_that_could_not() {
    let p = Scripted::new(1);
    for (cpu, on) in [(1, ON), (2, ON + 4), (3, ON)] {
        p.sleeps(cpu, 0, on, TAG, End::Last);
    }
    let held = p.on_cpu(4, |_| Held::lock(&p, ON)).unwrap();
    assert_eq!(p.on_cpu(5, |p| wake(p, ON, 1)), 0);
    assert_eq!(p.kicked(), [], "it does not wait for the bucket");
    drop(held);
    assert_eq!(p.kicked(), [1, 2, 3]);
    assert!(!anybody(&p, ON));
}

#[test]
fn a_sleeper_that_is_taken_at_its_deadline_waits_for_the_wake_up_that_is_on_its_way() {
    let taken = &Cell::new(None);
    let p = Scripted::new(1);
    p.sleeps(1, 0, ON, TAG, End::Last);
    p.at_halt(0, |p| {
        p.pass(100);
        taken.set(take(p, ON, |_| Choice::Take));
    });
    p.at_halt(0, |p| taken.take().unwrap().wake(p));
    let (me, deadline) = (Scripted::node_of(1), p.after(100));
    assert!(p.on_cpu(1, |p| await_wake(p, me, deadline)));
}

#[test]
fn a_child_of_fork_has_no_sleeper_but_the_code_that_forked_in_its_sleep_and_wakes_that() {
    let p = Scripted::new(1);
    for cpu in [1, 2, 3] {
        p.sleeps(cpu, 0, ON, TAG, End::Last);
    }
    p.on_cpu(2, |p| forget(p, p.cpu()));
    assert_eq!(p.kicked(), [2]);
    assert!(p.on_cpu(2, |p| await_wake(p, Scripted::node_of(2), NEVER)));
    assert!(!anybody(&p, ON));
    p.sleeps(4, 0, ON, TAG, End::Last);
    assert_eq!(woken(&p, ON), [4]);
}

#[test]
fn code_that_forks_in_its_sleep_is_woken_in_the_child_though_the_parent_has_taken_it_already() {
    let p = Scripted::new(1);
    for cpu in [1, 2] {
        p.sleeps(cpu, 0, ON, TAG, End::Last);
    }
    // The thread that has taken them does not exist in the child.
    assert_eq!(take(&p, ON, |_| Choice::Take).unwrap().count(), 2);
    p.on_cpu(2, |p| forget(p, p.cpu()));
    assert_eq!(p.kicked(), [2]);
    assert!(p.on_cpu(2, |p| await_wake(p, Scripted::node_of(2), NEVER)));
}

#[test]
fn a_handler_that_forks_in_its_sleep_wakes_that_and_the_sleep_that_it_interrupted() {
    let p = Scripted::new(1);
    let levels = [0, 1].map(|level| NodeId::new(CpuId::new(2).unwrap(), level).unwrap());
    p.on_cpu(2, |p| {
        for (me, on) in levels.into_iter().zip([ON, ON + 4]) {
            assert!(enqueue(p, me, on, TAG, End::Last));
        }
        forget(p, p.cpu());
        assert_eq!(p.kicked(), [2, 2]);
        for me in levels {
            assert!(await_wake(p, me, NEVER));
        }
    });
}

#[test]
fn where_turns_are_long_a_thread_yields_after_fewer_of_them() {
    let p = Scripted::new(1);
    let (all, short_ns) = (p.tuning().yield_turns, u64::from(p.tuning().mutex_short_ns));
    let time_ns = u64::from(p.tuning().rotate_us) * 1000 / u64::from(all);
    assert_eq!(turns_between_yields(&p, ON), all, "nothing is known yet");
    let long = [(1, all), (time_ns / 20, all), (time_ns / 4, 4), (2 * time_ns, 1), (1 << 40, 1)];
    for (turn_ns, turns) in long {
        note_turns(&p, ON, turn_ns);
        assert_eq!(turns_between_yields(&p, ON), turns, "{turn_ns} ns");
        assert_eq!(turns_are_short(&p, ON), turn_ns < short_ns);
    }
}

#[test]
fn where_many_cpus_acquire_locks_no_turns_are_so_short_that_all_waiters_wake() {
    let p = Scripted::yielding(1, 1);
    note_turns(&p, ON, 1);
    for (cpus, short) in [(0, true), (2, true), (8, true), (9, false), (128, false)] {
        let_cpus_be(&p, cpus);
        assert_eq!(turns_are_short(&p, ON), short, "{cpus}");
    }
}

#[test]
fn what_a_waiter_backs_off_after_lost_attempts_counts_in_part() {
    let p = Scripted::yielding(1, 3);
    // Without a pause's length a slice is one pause: three that each end with a yield.
    let mut budget = SpinBudget::new(&p, ON, 0);
    let mut is_spent_after = |pauses| {
        budget.spend_when_lost(pauses);
        budget.is_spent()
    };
    let all = 4 * 3;
    assert!(!is_spent_after(0) && !is_spent_after(3), "less than a slice");
    assert!(!is_spent_after(all - 4), "one slice is left");
    assert!(is_spent_after(4) && is_spent_after(u32::MAX));
}
