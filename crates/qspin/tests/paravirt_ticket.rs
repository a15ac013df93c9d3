//! A release of the paravirt ticket lock kicks the owner of the next ticket, and no other thread.
//!
//! Alone in its process: a late kick of another test would be counted here, as a spurious wake-up.

mod halting;

use std::thread;

use qspin::events::Event;

use halting::{Alone, count, halting, until};

#[test]
fn only_a_ticket_s_owner_is_kicked() {
    let _alone = Alone::with(halting());
    let lock = qspin::paravirt_ticket::CountedMutex::new(Vec::new());
    let waiters = 19;
    thread::scope(|scope| {
        let held = lock.lock();
        for waiter in 0..waiters {
            let lock = &lock;
            scope.spawn(move || lock.lock().push(waiter));
            until(|| count(Event::WaitNodeCount) == waiter + 1);
        }
        drop(held);
    });
    assert_eq!(lock.into_inner(), (0..waiters).collect::<Vec<_>>(), "first come, first served");
    let expected = [
        (Event::WaitNodeCount, waiters),
        (Event::UnlockKickCount, waiters),
        (Event::HashCount, waiters),
        (Event::SpuriousWakeup, 0),
        (Event::WaitHeadCount, 0),
        (Event::LockKickCount, 0),
    ];
    for (event, expected) in expected {
        assert_eq!(count(event), expected, "{}", event.name());
    }
    // A waiter that was kicked before the kernel had put it to sleep has a kick as well.
    assert!(count(Event::KickTimeCount) <= waiters && count(Event::KickTimeCount) > 0);
    assert!(count(Event::KickLatencies) > 0 && count(Event::WakeLatencies) > 0);
}
