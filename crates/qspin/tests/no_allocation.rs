//! No lock allocates once a thread has had its first contended acquisition.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Barrier;
use std::thread;

use lock_api::{RawMutex, RawRwLock};

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: passes everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Runs `operate` in two threads, and counts what they allocate after the first time.
fn allocations(operate: impl Fn() + Sync) -> u64 {
    let start = Barrier::new(2);
    let one = || {
        operate();
        start.wait();
        let before = ALLOCATIONS.with(Cell::get);
        for _ in 0..20_000 {
            operate();
        }
        ALLOCATIONS.with(Cell::get) - before
    };
    thread::scope(|scope| {
        let other = scope.spawn(one);
        one() + other.join().unwrap()
    })
}

fn mutex<R: RawMutex + Sync>() -> u64 {
    let lock = R::INIT;
    allocations(|| {
        let held = lock.lock();
        // SAFETY: locked just above.
        unsafe { lock.unlock(held) };
    })
}

#[test]
fn locking_does_not_allocate() {
    // The very first operation fixes which lock it is.
    let before = ALLOCATIONS.with(Cell::get);
    let lock = qspin::select::RawMutex::INIT;
    assert!(!qspin::select::is_fixed());
    lock.lock();
    assert!(qspin::select::is_fixed());
    assert_eq!(ALLOCATIONS.with(Cell::get), before);

    // The counter counts.
    assert!(allocations(|| drop(std::hint::black_box(Box::new(1)))) >= 40_000);

    assert_eq!(mutex::<qspin::native::CountedRawMutex>(), 0);
    assert_eq!(mutex::<qspin::backoff::RawMutex>(), 0);
    assert_eq!(mutex::<qspin::tas::RawMutex>(), 0);
    assert_eq!(mutex::<qspin::yielding::RawMutex>(), 0);
    assert_eq!(mutex::<qspin::ticket::RawMutex>(), 0);
    assert_eq!(mutex::<qspin::mcs::RawMutex>(), 0);
    assert_eq!(mutex::<qspin::simple::RawMutex>(), 0);
    assert_eq!(mutex::<qspin::paravirt::CountedRawMutex>(), 0);
    assert_eq!(mutex::<qspin::paravirt_stealing::CountedRawMutex>(), 0);
    assert_eq!(mutex::<qspin::paravirt_queued::CountedRawMutex>(), 0);
    assert_eq!(mutex::<qspin::cna::CountedRawMutex>(), 0);
    assert_eq!(mutex::<qspin::cna_paravirt::CountedRawMutex>(), 0);
    assert_eq!(mutex::<qspin::paravirt_ticket::CountedRawMutex>(), 0);
    assert_eq!(mutex::<qspin::select::CountedRawMutex>(), 0);
    let lock = qspin::queued_rw::RawRwLock::INIT;
    let shared = allocations(|| {
        let held = lock.lock_shared();
        // SAFETY: locked just above.
        unsafe { lock.unlock_shared(held) };
        let held = lock.lock_exclusive();
        // SAFETY: locked just above.
        unsafe { lock.unlock_exclusive(held) };
    });
    assert_eq!(shared, 0);
}
