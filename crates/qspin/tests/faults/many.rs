//! Far more threads than the first, whose memory is static.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

use qspin::{Mutex, RwLock};

use super::until;

const THREADS: u64 = 20_000;
/// What a thread needs that only waits.
const STACK: usize = 32 << 10;

static MUTEX: Mutex<u64> = Mutex::new(0);
static SHARED: RwLock<u64> = RwLock::new(0);
static BEGUN: AtomicU64 = AtomicU64::new(0);
static READ: AtomicU64 = AtomicU64::new(0);
static ENDED: AtomicU64 = AtomicU64::new(0);

extern "C" fn waits(number: *mut libc::c_void) -> *mut libc::c_void {
    BEGUN.fetch_add(1, SeqCst);
    match number as usize % 4 {
        0 => *SHARED.write() += 1,
        1 => {
            std::hint::black_box(*SHARED.read());
            READ.fetch_add(1, SeqCst);
        }
        _ => *MUTEX.lock() += 1,
    }
    ENDED.fetch_add(1, SeqCst);
    std::ptr::null_mut()
}

/// A thread of the C library, with nothing but a stack: those of the standard library take four mappings each, and
/// the kernel has only 65 530 for all of them.
fn spawn(number: u64) -> bool {
    // SAFETY: a place for the attributes, which are made before they are used; the thread's function takes a number.
    unsafe {
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        assert_eq!(libc::pthread_attr_init(&mut attributes), 0);
        assert_eq!(libc::pthread_attr_setstacksize(&mut attributes, STACK), 0);
        assert_eq!(libc::pthread_attr_setguardsize(&mut attributes, 0), 0);
        let detached = libc::PTHREAD_CREATE_DETACHED;
        assert_eq!(libc::pthread_attr_setdetachstate(&mut attributes, detached), 0);
        let mut thread = std::mem::zeroed();
        let argument = number as *mut libc::c_void;
        let made = libc::pthread_create(&mut thread, &attributes, waits, argument) == 0;
        libc::pthread_attr_destroy(&mut attributes);
        made
    }
}

#[test]
fn twenty_thousand_threads_wait_and_all_get_in() {
    let (held, writes) = (MUTEX.lock(), SHARED.write());
    let made = (0..THREADS).take_while(|&number| spawn(number)).count() as u64;
    if made < THREADS {
        println!("{made} threads, and no more");
    }
    until(|| BEGUN.load(SeqCst) == made);
    drop((held, writes));
    until(|| ENDED.load(SeqCst) == made);
    let expected = |kind| (0..made).filter(|number| number % 4 == kind).count() as u64;
    assert_eq!(*SHARED.read(), expected(0));
    assert_eq!(READ.load(SeqCst), expected(1));
    assert_eq!(*MUTEX.lock(), expected(2) + expected(3));
    assert!(made > 0);
}
