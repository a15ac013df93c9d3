//! Heirs that read, and heirs without a node: RWLOCK-5.

use super::*;

#[test]
fn the_lock_stays_reserved_for_an_heir_that_reads_until_it_has_it() {
    for (want, to) in [(Want::Read, READER), (Want::Upgradable, READER | UPGRADABLE)] {
        let lock = &with(WRITER);
        let p = Scripted::new(1);
        (0..3).for_each(|_| wakes_in_vain(lock, &p));
        leaves_it_to_the_heir(lock, &p);
        // It is awake, and about to acquire the lock. No CLOSED keeps others out, as it does for a writer.
        p.at_site(Site::RwGateTake, OTHER, move |p| {
            assert_eq!(word(lock), HEIR, "{want:?}");
            assert!(!lock.try_acquire_exclusive(p));
        });
        p.on_cpu(WAITER, |p| match want {
            Want::Read => lock.acquire_shared(p),
            _ => assert!(lock.acquire_upgradable_until(p, NEVER)),
        });
        assert_eq!(word(lock), to);
    }
}

#[test]
fn a_waiter_with_the_gate_that_has_no_node_to_sleep_with_becomes_the_heir_too() {
    for (want, to) in [(Want::Write, WRITER), (Want::Upgradable, READER | UPGRADABLE)] {
        let lock = &with(WRITER);
        let p = Scripted::new(1);
        p.uses_up_nodes(WAITER);
        for passes in [STARVES_NS - 1, 1] {
            p.at_halt(OWNER, move |p| {
                assert!(!sleepers::anybody(p, lock.on(p)));
                assert_eq!(word(lock) & HEIR, 0, "{want:?} does not starve yet");
                p.pass(passes);
            });
        }
        leaves_it_to_the_heir(lock, &p);
        p.on_cpu(WAITER, |p| match want {
            Want::Write => lock.acquire_exclusive(p),
            _ => assert!(lock.acquire_upgradable_until(p, NEVER)),
        });
        assert_eq!(word(lock), to);
    }
}
