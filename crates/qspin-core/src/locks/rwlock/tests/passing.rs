//! Threads that pass the sleepers at the gate.

use super::*;
use crate::platform::Platform;
use crate::quantum::Quantum;

/// How often a thread yields that finds the lock taken, and then free, for three quanta, while so many sleep at the gate.
fn yields(asleep: u32) -> u32 {
    let (p, lock) = (Scripted::new(1), &with(FREE));
    let gate = lock.gate.address(&p);
    for cpu in WAITER..WAITER + asleep {
        p.sleeps(cpu, 0, gate, crate::locks::mutex::TAG, sleepers::End::Last);
    }
    // In the quantum's own unit, which is a little more than a microsecond.
    let turn_ns = u64::from(p.tuning().rotate_us) << 10 >> 5;
    let mut yields = 0;
    for _ in 0..3 << 5 {
        assert!(lock.polls(&p, Want::Write));
        yields += p.yields();
        p.pass(turn_ns);
        // SAFETY: acquired above.
        unsafe { lock.release_exclusive(&p) };
    }
    assert_eq!(p.kicked(), [], "only the owner of the gate wakes");
    yields
}

#[test]
fn a_thread_that_passes_sleepers_at_the_gate_yields_once_in_a_quantum() {
    assert_eq!(yields(0), 0);
    // The clock is read in every eighth turn: a quantum of 32 turns is over at the 33rd, and so is the next one.
    assert_eq!(yields(1), 2);
}

#[test]
fn a_thread_that_gives_way_and_must_wait_goes_to_the_gate_with_its_quantum_used_up() {
    for (seen, inside) in [(FREE, true), (WRITER, false)] {
        let (p, lock) = (Scripted::new(1), &with(seen));
        p.sleeps(OTHER, 0, lock.gate.address(&p), crate::locks::mutex::TAG, sleepers::End::Last);
        // A turn that is as long as eight quanta.
        assert!(!turns::give_way(&p, 1));
        p.pass(u64::from(p.tuning().rotate_us) << 10 << 3);
        assert_eq!(lock.polls(&p, Want::Write), inside);
        assert!(p.yields() > 0);
        // There it sleeps at once: see the mutex.
        assert_eq!(Quantum::of(&p).is_over(), !inside);
    }
}

#[test]
fn a_writer_yields_to_readers_only_where_yields_pay() {
    let (p, lock) = (Scripted::yielding(1, 20), &with(READER));
    let waits = |want| {
        assert!(!lock.polls(&p, want));
        p.yields()
    };
    assert_eq!(waits(Want::Write), 0);
    sleepers::let_yields_pay(&p, lock.on(&p));
    assert!(waits(Want::Write) > 0);
    let lock = &with(WRITER);
    assert!(!lock.polls(&p, Want::Write));
    assert!(p.yields() > 0, "to a writer in any case");
}
