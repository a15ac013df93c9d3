//! As many threads as this machine allows, up to 32 000, pass five mutexes one after the other, all of which are held
//! while they start: every one of them has a number, none polls, and all are counted.
//!
//! A process of its own: it needs all threads that there may be. It prints how long it took, and how long with the
//! locks of the C library.

use std::cell::UnsafeCell;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::{Duration, Instant};

use lock_api::RawMutex as _;
use qspin::events::{self, Event};
use qspin::platform::cpu;

const THREADS: u32 = 32_000;
const LOCKS: usize = 5;
/// What a thread needs that only waits.
const STACK: usize = 32 << 10;

static BEGUN: AtomicU32 = AtomicU32::new(0);
static ENDED: AtomicU32 = AtomicU32::new(0);
static NUMBERED: AtomicU32 = AtomicU32::new(0);

/// Counts that locks protect.
struct Counts([UnsafeCell<u32>; LOCKS]);

// SAFETY: each is touched by the owner of its lock alone.
unsafe impl Sync for Counts {}

/// Locks of one kind, which a thread passes.
trait Pass {
    type Held;
    fn acquire(&'static self, lock: usize) -> Self::Held;
    fn release(&'static self, lock: usize, held: Self::Held);
    fn the() -> (&'static Self, &'static Counts);
}

macro_rules! locks {
    ($name:ident: $raw:ty) => {
        struct $name([$raw; LOCKS]);
        impl Pass for $name {
            type Held = <$raw as lock_api::RawMutex>::Guard;
            fn acquire(&'static self, lock: usize) -> Self::Held {
                self.0[lock].lock()
            }
            fn release(&'static self, lock: usize, held: Self::Held) {
                // SAFETY: it is held.
                unsafe { self.0[lock].unlock(held) };
            }
            fn the() -> (&'static Self, &'static Counts) {
                static LOCKED: $name = $name([const { <$raw>::INIT }; LOCKS]);
                static COUNTS: Counts = Counts([const { UnsafeCell::new(0) }; LOCKS]);
                (&LOCKED, &COUNTS)
            }
        }
    };
}

locks!(Default: qspin::RawMutex);
locks!(Paravirt: qspin::paravirt::RawMutex);
locks!(Counted: qspin::paravirt::CountedRawMutex);

struct CLibrary([UnsafeCell<libc::pthread_mutex_t>; LOCKS]);

// SAFETY: made for it.
unsafe impl Sync for CLibrary {}

impl Pass for CLibrary {
    type Held = ();
    fn acquire(&'static self, lock: usize) {
        // SAFETY: a mutex that stays.
        assert_eq!(unsafe { libc::pthread_mutex_lock(self.0[lock].get()) }, 0);
    }
    fn release(&'static self, lock: usize, (): ()) {
        // SAFETY: as above.
        assert_eq!(unsafe { libc::pthread_mutex_unlock(self.0[lock].get()) }, 0);
    }
    fn the() -> (&'static Self, &'static Counts) {
        static LOCKED: CLibrary =
            CLibrary([const { UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER) }; LOCKS]);
        static COUNTS: Counts = Counts([const { UnsafeCell::new(0) }; LOCKS]);
        (&LOCKED, &COUNTS)
    }
}

extern "C" fn passes<L: Pass + 'static>(_: *mut libc::c_void) -> *mut libc::c_void {
    let (locks, counts) = L::the();
    BEGUN.fetch_add(1, SeqCst);
    for lock in 0..LOCKS {
        let held = locks.acquire(lock);
        // SAFETY: this thread owns the lock.
        unsafe { *counts.0[lock].get() += 1 };
        locks.release(lock, held);
    }
    NUMBERED.fetch_add(u32::from(cpu::current().is_some()), SeqCst);
    ENDED.fetch_add(1, SeqCst);
    core::ptr::null_mut()
}

/// A thread of the C library, with nothing but a stack: the kernel has only so many mappings.
fn spawn(run: extern "C" fn(*mut libc::c_void) -> *mut libc::c_void) -> bool {
    // SAFETY: a place for the attributes, which are made before they are used.
    unsafe {
        let mut attributes: libc::pthread_attr_t = core::mem::zeroed();
        assert_eq!(libc::pthread_attr_init(&mut attributes), 0);
        assert_eq!(libc::pthread_attr_setstacksize(&mut attributes, STACK), 0);
        assert_eq!(libc::pthread_attr_setguardsize(&mut attributes, 0), 0);
        let detached = libc::PTHREAD_CREATE_DETACHED;
        assert_eq!(libc::pthread_attr_setdetachstate(&mut attributes, detached), 0);
        let mut thread = core::mem::zeroed();
        let made = libc::pthread_create(&mut thread, &attributes, run, core::ptr::null_mut()) == 0;
        libc::pthread_attr_destroy(&mut attributes);
        made
    }
}

/// Returns how many threads passed, and how long that took from the moment at which the locks were released.
fn pass<L: Pass + 'static>(most: u32) -> (u32, Duration) {
    until(|| threads() == 1);
    for all in [&BEGUN, &ENDED, &NUMBERED] {
        all.store(0, SeqCst);
    }
    let (locks, counts) = L::the();
    let held: Vec<_> = (0..LOCKS).map(|lock| locks.acquire(lock)).collect();
    let made = (0..most).take_while(|_| spawn(passes::<L>)).count() as u32;
    until(|| BEGUN.load(SeqCst) == made);
    // Until all of them wait.
    thread::sleep(Duration::from_millis(500));
    let begun = Instant::now();
    held.into_iter().enumerate().for_each(|(lock, held)| locks.release(lock, held));
    until(|| ENDED.load(SeqCst) == made);
    let took = begun.elapsed();
    for (lock, count) in counts.0.iter().enumerate() {
        let held = locks.acquire(lock);
        // SAFETY: this thread owns the lock.
        assert_eq!(unsafe { *count.get() }, made);
        locks.release(lock, held);
    }
    assert!(made > 0);
    assert_eq!(NUMBERED.load(SeqCst), made, "each has a number");
    (made, took)
}

/// Threads of this process that the kernel has not forgotten yet.
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

fn until(condition: impl Fn() -> bool) {
    while !condition() {
        thread::sleep(Duration::from_millis(1));
    }
}

fn main() {
    let (many, theirs) = pass::<CLibrary>(THREADS);
    let (mutexes, mutex) = pass::<Default>(many);
    let (paravirts, paravirt) = pass::<Paravirt>(many);
    println!(
        "passed: {many} threads pass five mutexes, the C library's in {:.2} s; mutex: {mutexes} in {:.2} s; \
         paravirt: {paravirts} in {:.2} s",
        theirs.as_secs_f64(),
        mutex.as_secs_f64(),
        paravirt.as_secs_f64()
    );
    events::reset();
    let (many, _) = pass::<Counted>(many.min(20_000));
    let without = events::snapshot().into_iter().find(|(event, _)| *event == Event::LockNoNode);
    assert_eq!(
        without.map(|(_, count)| count),
        Some(0),
        "no thread of {many} waits without a node"
    );
}
