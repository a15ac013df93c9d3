//! Collapses, and what is none.

use super::*;

#[test]
fn a_collapse_is_said_in_words_of_every_day() {
    let rows = [
        row("native", 2, 4e6),
        row("native", 8, 0.1e6),
        row("ticket", 2, 4e6),
        row("ticket", 8, 0.05e6),
        row("std", 2, 4e6),
        row("std", 8, 4e6),
    ];
    let found = judged(2, &rows).collapse.unwrap();
    assert_eq!(found.example().name, "native");
    assert_eq!(
        found.fallen.iter().map(|f| f.name.as_str()).collect::<Vec<_>>(),
        ["ticket", "native"]
    );
    let words = verdict(&machine(2), &rows);
    assert!(
        words.contains(
            "with 8 threads on 2 CPUs `native` does 40 times less than `std` (and 40 times less \
             than with 2 threads): a thread that waits in line is not running when its turn comes"
        ),
        "{words}"
    );
    assert!(words.contains("So does `ticket` (80 times)."), "{words}");
}

#[test]
fn a_lock_that_lay_on_the_ground_already_is_said_to_collapse() {
    let rows =
        [row("native", 2, 100.0), row("native", 8, 70.0), row("std", 2, 4e6), row("std", 8, 4e6)];
    let words = verdict(&machine(2), &rows);
    assert!(words.contains("`native` does 57000 times less than `std`: a thread"), "{words}");
}

#[test]
fn a_lock_that_collapses_is_not_recommended_for_being_fair() {
    let rows = [
        row("native", 2, 4e6),
        row("native", 8, 70.0),
        row("tas", 2, 4e6),
        unfair(row("tas", 8, 2e6), None, 1.0),
    ];
    let found = judged(2, &rows);
    assert_eq!(found.cases[1].outcome, Outcome::NoneFit(0));
    let words = verdict(&machine(2), &rows);
    assert!(
        words.contains("no lock is good here: the fastest is `tas`, but with 8 threads"),
        "{words}"
    );
    assert!(words.contains("`native` does 29000 times less than `tas`"), "{words}");
}

#[test]
fn slower_with_contention_is_no_collapse() {
    let rows = [row("a", 1, 40e6), row("a", 8, 4e6), row("b", 1, 40e6), row("b", 8, 5e6)];
    assert_eq!(judged(2, &rows).collapse, None);
    // The same fall with a CPU for each thread is contention too.
    let rows = [row("native", 1, 40e6), row("native", 8, 4e6)];
    assert_eq!(judged(8, &rows).collapse, None);
}

#[test]
fn a_fall_inside_wide_intervals_is_not_sure() {
    let rows = [wide(row("native", 2, 4e6), 0.3), wide(row("native", 8, 0.9e6), 0.3)];
    assert_eq!(judged(2, &rows).collapse, None);
}

#[test]
fn locks_that_all_collapse_are_compared_with_themselves() {
    let rows = [row("native", 2, 4e6), row("native", 8, 0.1e6)];
    let words = verdict(&machine(2), &rows);
    assert!(words.contains("`native` does 40 times less than with 2 threads:"), "{words}");
}

#[test]
fn a_lock_that_does_nothing_at_all_is_said_to_collapse_without_a_number_that_is_none() {
    let rows =
        [row("native", 2, 4e6), row("native", 8, 0.0), row("std", 2, 4e6), row("std", 8, 4e6)];
    let words = verdict(&machine(2), &rows);
    assert!(words.contains("`native` does infinitely many times less than `std`"), "{words}");
    assert!(!words.contains("NaN") && !words.contains("inf "), "{words}");
}

#[test]
fn a_collapse_of_another_kind_has_another_reason() {
    let rows = [row("tas", 2, 4e6), row("tas", 8, 0.1e6), row("std", 2, 4e6), row("std", 8, 4e6)];
    let words = verdict(&machine(2), &rows);
    assert!(words.contains("the thread that holds the lock is not running"), "{words}");
}

#[test]
fn a_lock_whose_waiters_sleep_does_not_collapse_for_want_of_a_cpu() {
    let words = |lock: &str| {
        let tuned = |row: Row| Row { tune: [("queue_polls".to_owned(), 9.into())].into(), ..row };
        let rows = [
            tuned(row(lock, 2, 4e6)),
            tuned(row(lock, 8, 0.1e6)),
            row("std", 2, 4e6),
            row("std", 8, 4e6),
        ];
        verdict(&machine(2), &rows)
    };
    for lock in ["paravirt-queued", "paravirt-ticket"] {
        let words = words(lock);
        assert!(
            words.contains(
                "less than with 2 threads): every hand-over to a waiter that sleeps costs a \
                 wake-up, and no other thread may have the lock meanwhile."
            ),
            "{words}"
        );
        assert!(!words.contains("is not running"), "{words}");
    }
    for lock in ["pthread", "paravirt-stealing", "some-new-lock"] {
        let words = words(lock);
        assert!(words.ends_with("less than with 2 threads)."), "{words}");
    }
}
