//! The IR that is emitted holds the atomics of the lock, ordered as its source says, and nothing
//! that a checker would not understand.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use qspin_check::emit::{Audit, Client, subjects};
use qspin_check::weakening::Weakening;
use qspin_core::locks::{Family, LOCKS, Waits};
use qspin_core::site::Site;

fn client(lock: &str, threads: usize) -> Client {
    Client { lock: lock.to_owned(), threads, sections: 1, weak: None }
}

fn emitted(client: &Client, name: &str) -> Audit {
    let out: PathBuf = [env!("CARGO_TARGET_TMPDIR"), &format!("{name}.ll")].iter().collect();
    client.emit(&out).unwrap_or_else(|message| panic!("{}: {message}", client.lock))
}

fn has(audit: &Audit, lock: &str, expected: &[&str]) {
    for atomic in expected {
        assert!(audit.atomics.iter().any(|found| found == atomic), "{lock}: no {atomic}");
    }
}

// One test: cargo runs one compilation at a time anyway.
#[test]
fn every_client_has_the_atomics_of_its_lock() {
    for known in LOCKS {
        let lock = known.name;
        assert!(subjects().any(|subject| subject.name == lock), "{lock}");
        let audit = emitted(&client(lock, 3), lock);
        assert!(!audit.atomics.iter().any(|atomic| atomic.contains("without")), "{lock}");
        match known.family {
            Family::Queued => {
                // A waiter becomes the tail, links itself, and sees its turn.
                has(&audit, lock, &["cmpxchg acquire", "cmpxchg acq_rel", "store release"]);
                has(&audit, lock, &["load acquire"]);
                match known.waits {
                    // A halted waiter is kicked.
                    Waits::Halts => has(&audit, lock, &["fence seq_cst", "atomicrmw xchg release"]),
                    _ => has(&audit, lock, &["atomicrmw sub release"]),
                }
            }
            Family::Flag => has(&audit, lock, &["cmpxchg acquire", "store release"]),
            Family::Ticket => {
                has(&audit, lock, &["atomicrmw add acquire", "load acquire"]);
            }
            Family::Mcs => {
                has(&audit, lock, &["atomicrmw xchg acq_rel", "store release", "load acquire"]);
            }
            // No heavy barrier there: a sleeper and a release pass a full fence each.
            Family::Sleeping => has(&audit, lock, &["cmpxchg release", "fence seq_cst"]),
        }
        if known.shared && known.family == Family::Queued {
            // A reader at the head counts itself.
            has(&audit, lock, &["atomicrmw add monotonic"]);
        }
    }
    let weak = Some(Weakening { site: Site::QueueTail, to: Ordering::Release });
    let audit = emitted(&Client { weak, ..client("native", 2) }, "native-weak");
    assert!(!audit.atomics.contains(&"cmpxchg acq_rel".to_owned()));
    has(&audit, "native", &["cmpxchg release"]);
    // A site that the lock does not consult changes none of its accesses.
    let accesses = |weak, name: &str| {
        let mut audit = emitted(&Client { weak, ..client("native", 2) }, name);
        audit.atomics.sort_unstable();
        audit.atomics
    };
    let elsewhere = Some(Weakening { site: Site::BackoffTake, to: Ordering::Relaxed });
    assert_eq!(accesses(elsewhere, "native-elsewhere"), accesses(None, "native-sound"));
    assert_ne!(accesses(weak, "native-weak"), accesses(None, "native-sound"));
}

#[test]
fn the_client_knows_each_type_of_the_catalogue() {
    let registered = |written| {
        subjects().any(|known| known.written() == written && known.name == known.id.lock().name)
    };
    let mut seen = BTreeSet::new();
    for subject in subjects() {
        if !registered(subject.written()) && seen.insert(subject.written()) {
            assert!(
                !emitted(&client(subject.name, 2), subject.name).atomics.is_empty(),
                "{}",
                subject.name
            );
        }
    }
    assert!(seen.len() > 10, "{seen:?}");
}

#[test]
fn a_request_that_makes_no_sense_is_refused() {
    let out = PathBuf::from("unwritten.ll");
    assert!(client("nosuch", 2).emit(&out).unwrap_err().contains("native"));
    assert!(client("mutex-timed", 2).emit(&out).unwrap_err().contains("no client"));
    assert!(client("native", 9).emit(&out).unwrap_err().contains("2 to 4"));
    assert!(Client { sections: 0, ..client("native", 2) }.emit(&out).is_err());
    assert!(!out.exists());
}
