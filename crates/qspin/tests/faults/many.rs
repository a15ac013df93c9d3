//! More threads than there are numbers: those without one wait, too.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;

use qspin::{Mutex, RwLock};

use super::until;

/// 16 383 of them have a number.
const THREADS: u64 = 20_000;
/// What a thread needs that only waits.
const STACK: usize = 32 << 10;

#[test]
fn twenty_thousand_threads_wait_and_all_get_in() {
    let (mutex, shared) = (Mutex::new(0_u64), RwLock::new(0_u64));
    let (begun, read) = (AtomicU64::new(0), AtomicU64::new(0));
    let mut made = 0;
    thread::scope(|scope| {
        let (held, writes) = (mutex.lock(), shared.write());
        for number in 0..THREADS {
            let (mutex, shared, begun, read) = (&mutex, &shared, &begun, &read);
            let spawned = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, move || {
                begun.fetch_add(1, SeqCst);
                match number % 4 {
                    0 => *shared.write() += 1,
                    1 => {
                        std::hint::black_box(*shared.read());
                        read.fetch_add(1, SeqCst);
                    }
                    _ => *mutex.lock() += 1,
                }
            });
            if let Err(problem) = spawned {
                println!("{number} threads, no more: {problem}");
                break;
            }
            made += 1;
        }
        until(|| begun.load(SeqCst) == made);
        drop((held, writes));
    });
    let expected = |kind| (0..made).filter(|number| number % 4 == kind).count() as u64;
    assert_eq!(*shared.read(), expected(0));
    assert_eq!(read.load(SeqCst), expected(1));
    assert_eq!(*mutex.lock(), expected(2) + expected(3));
    assert!(made > 0);
}
