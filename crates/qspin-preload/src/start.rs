//! What happens when the program is loaded, before its first instruction and before its other libraries.
//!
//! The environment says what `qspin run` was asked for. The C library's `getenv` does not work yet: the dynamic
//! linker hands the environment to constructors, and it is read there. A malformed value counts as absent,
//! since nothing is printed here; `qspin run` has checked it before.

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char};
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::Relaxed;

use libc::c_int;
use qspin::inside::{self, Environment, Errno};
use qspin::platform::{cpu_quota, topology};
use qspin::tuning::Tuning;

use crate::{condvar, generation, libc_locks, quit, rwlock, served, statistics};

/// The lock that serves.
const LOCK: &CStr = c"QSPIN_PRELOAD_LOCK";
/// The reader-writer lock that serves, if not the own one.
const RWLOCK: &CStr = c"QSPIN_PRELOAD_RWLOCK";
/// Tunables: `name=value`, with commas between them. The first is for every program that links the library, the
/// second is what `qspin run` was asked for, and goes before.
const TUNES: [&CStr; 2] = [c"QSPIN_TUNE", c"QSPIN_PRELOAD_TUNE"];
/// The file in which this process reports that the library was loaded, and into which it counts.
const REPORT: &CStr = c"QSPIN_PRELOAD_REPORT";
/// Whether locks are counted.
const STATISTICS: &CStr = c"QSPIN_PRELOAD_STATS";
/// Whether what threads hold is recorded, so that deadlocks are found.
const DEADLOCKS: &CStr = c"QSPIN_PRELOAD_DEADLOCKS";

/// Where the C library says whether the process has one thread; a zero if it does not say.
pub(crate) static ALONE: AtomicPtr<u8> = AtomicPtr::new((&raw const NOT_KNOWN).cast_mut());
static NOT_KNOWN: u8 = 0;

/// Tunables in force, written once by the constructor, before there is a second thread.
struct Tuned(UnsafeCell<Tuning>);

// SAFETY: written by the constructor only, before it is read.
unsafe impl Sync for Tuned {}

/// The tunables for programs that do not know that their locks spin. Holders wait for disks and for each other,
/// so a waiter that spins for long takes CPU time from the threads that would do the work. With the defaults of
/// the paravirt locks rocksdb's `fillrandom` with 8 threads on 2 CPUs does 0.3 to 0.5 of the C library's work,
/// with `awake_polls` alone 0.9. The default mutex needs no other tunables here (docs/real-programs.md).
const POLICY: Tuning =
    Tuning { awake_polls: 64, head_polls: 16, cull_polls: 0, queue_polls: 1, ..Tuning::DEFAULT };

static TUNED: Tuned = Tuned(UnsafeCell::new(POLICY));

/// Puts the policy in force, changed as `texts` say; unknown names and values out of range are ignored.
fn tune(texts: [&[u8]; 2]) {
    let mut tuning = POLICY;
    for text in texts {
        inside::apply_tunables(&mut tuning, text);
    }
    // SAFETY: the constructor's one write; there is one thread, and no reference exists yet.
    let tuned = unsafe {
        *TUNED.0.get() = tuning;
        &*TUNED.0.get()
    };
    qspin::tuning::set(tuned);
}

/// PRELOAD-7: the calls below set `errno`, and the program would find that in `main`.
unsafe extern "C" fn at_load(_: c_int, _: *const *const c_char, environment: *const *const c_char) {
    let errno = Errno::keep();
    // SAFETY: the dynamic linker hands over the environment of the process, which no thread changes meanwhile.
    begin(&unsafe { Environment::new(environment) });
    errno.restore();
}

fn begin(environment: &Environment) {
    inside::be_silent();
    inside::begin(environment);
    generation::begin();
    libc_locks::prepare();
    condvar::find_marks();
    // SAFETY: a text that ends with a zero.
    let alone = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__libc_single_threaded".as_ptr()) };
    if !alone.is_null() {
        ALONE.store(alone.cast(), Relaxed);
    }
    let [lock, shared, report] = [LOCK, RWLOCK, REPORT].map(|name| environment.value_of(name));
    let [counts, tracks] = [STATISTICS, DEADLOCKS]
        .map(|name| environment.value_of(name).is_some_and(|value| value.to_bytes() == b"1"));
    if let Some(lock) = lock {
        served::choose(lock.to_bytes());
    }
    if let Some(lock) = shared {
        rwlock::choose(lock.to_bytes());
    }
    if served::asks_where_cpus_are() {
        // The first call reads the topology.
        let _ = topology::in_force();
    }
    cpu_quota::look();
    tune(TUNES.map(|name| environment.value_of(name).map_or(&b""[..], CStr::to_bytes)));
    inside::share_tunables();
    statistics::prepare();
    inside::before_sleep(statistics::sleeps);
    statistics::begin(report, counts);
    served::begin(counts, tracks);
    if tracks {
        quit::begin();
    }
}

extern "C" fn at_end() {
    statistics::end();
}

/// Before the constructors of the libraries that are part of this one, which have no number.
#[used]
#[unsafe(link_section = ".init_array.00100")]
static AT_LOAD: unsafe extern "C" fn(c_int, *const *const c_char, *const *const c_char) = at_load;

#[used]
#[unsafe(link_section = ".fini_array")]
static AT_END: extern "C" fn() = at_end;
