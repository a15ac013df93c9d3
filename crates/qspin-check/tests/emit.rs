//! The IR that is emitted holds the atomics of the lock, ordered as its source says, and nothing
//! that a checker would not understand.

use std::path::PathBuf;

use qspin_check::emit::{Audit, emit, locks};
use qspin_core::locks::Family;

fn emitted(lock: &str, threads: usize) -> Audit {
    let name = format!("{lock}-{threads}.ll");
    let out: PathBuf = [env!("CARGO_TARGET_TMPDIR"), &name].iter().collect();
    emit(lock, threads, &out).unwrap_or_else(|message| panic!("{lock}: {message}"))
}

fn has(audit: &Audit, lock: &str, expected: &[&str]) {
    for atomic in expected {
        assert!(audit.atomics.iter().any(|found| found == atomic), "{lock}: no {atomic}");
    }
}

// One test: cargo runs one compilation at a time anyway.
#[test]
fn every_client_has_the_atomics_of_its_lock() {
    let native = [
        "cmpxchg acquire",        // the fast path, and the head takes the lock
        "atomicrmw or monotonic", // pending is set
        "cmpxchg acq_rel",        // a waiter becomes the tail
        "store release",          // it links itself; the head hands over
        "load acquire",           // it sees its turn; the head sees its successor
        "atomicrmw add acquire",  // pending takes the lock
        "atomicrmw add release",  // the owner releases
    ];
    for known in locks() {
        let lock = known.name;
        let audit = emitted(lock, 3);
        assert!(!audit.atomics.iter().any(|atomic| atomic.contains("without")), "{lock}");
        match known.family {
            Family::Queued => has(&audit, lock, &native),
            Family::Flag => has(&audit, lock, &["cmpxchg acquire", "store release"]),
            Family::Ticket => {
                let draw_serve = ["atomicrmw add acquire", "atomicrmw add release"];
                has(&audit, lock, &draw_serve);
                has(&audit, lock, &["load acquire"]);
            }
            Family::Mcs => {
                has(&audit, lock, &["atomicrmw xchg acq_rel", "store release", "load acquire"]);
            }
            Family::Sleeping => panic!("nothing is expected of {lock}"),
        }
        if known.shared {
            has(&audit, lock, &["cmpxchg acquire", "atomicrmw add monotonic"]);
        }
    }
    assert!(locks().count() >= 7);
}

#[test]
fn a_request_that_makes_no_sense_is_refused() {
    let out = PathBuf::from("unwritten.ll");
    assert!(emit("nosuch", 2, &out).unwrap_err().contains("native"));
    assert!(emit("native", 9, &out).unwrap_err().contains("2 to 4"));
    assert!(!out.exists());
}
