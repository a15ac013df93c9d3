//! Threads that are told to end while they wait.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::Duration;

use qspin::{Condvar, Mutex, RwLock};

use super::until;

unsafe extern "C" {
    fn pthread_cancel(thread: libc::pthread_t) -> libc::c_int;
    fn pthread_setcancelstate(state: libc::c_int, old: *mut libc::c_int) -> libc::c_int;
}

/// A thread that waits does not end where it waits, whatever it is told: it would leave its place in the queue
/// behind. It comes to an end of its wait, and may be cancelled then; here it has had enough by then.
#[test]
fn a_cancelled_thread_ends_its_wait_first() {
    let (mutex, shared, condition) = (Mutex::new(0), RwLock::new(0), Condvar::new());
    let told = Mutex::new(false);
    let ids: Vec<AtomicU64> = (0..4).map(|_| AtomicU64::new(0)).collect();
    let ended = AtomicU64::new(0);
    thread::scope(|scope| {
        let (held, writes) = (mutex.lock(), shared.write());
        for (kind, id) in ids.iter().enumerate() {
            let (mutex, shared, condition, told) = (&mutex, &shared, &condition, &told);
            let ended = &ended;
            scope.spawn(move || {
                // SAFETY: asks for a number.
                id.store(unsafe { libc::pthread_self() }, SeqCst);
                match kind {
                    0 => *mutex.lock() += 1,
                    1 => drop(shared.read()),
                    2 => *shared.write() += 1,
                    _ => condition.wait_while(&mut told.lock(), |told| !*told),
                }
                // SAFETY: what comes now may wait where threads are cancelled: not this one any more.
                unsafe { pthread_setcancelstate(1, std::ptr::null_mut()) };
                ended.fetch_add(1, SeqCst);
            });
        }
        until(|| ids.iter().all(|id| id.load(SeqCst) != 0));
        // Most of them sleep by then; what follows holds either way.
        thread::sleep(Duration::from_millis(50));
        for id in &ids {
            // SAFETY: the thread waits for what this one holds, or is to say.
            assert_eq!(unsafe { pthread_cancel(id.load(SeqCst)) }, 0);
        }
        thread::sleep(Duration::from_millis(50));
        assert_eq!(ended.load(SeqCst), 0, "none of them has what it waits for");
        drop((held, writes));
        *told.lock() = true;
        condition.notify_all();
    });
    assert_eq!((*mutex.lock(), *shared.read(), ended.load(SeqCst)), (1, 1, 4));
}
