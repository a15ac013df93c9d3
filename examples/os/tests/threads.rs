//! The example on a machine of threads: each is a CPU, which halts by parking.

use std::cell::Cell;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Barrier, OnceLock};
use std::thread::{self, Thread};
use std::time::Instant;

use qspin_core::node::NodeId;
use qspin_core::platform::{CpuId, Platform, StaticPlatform};
use qspin_example_os::{CPUS, Kernel, Machine, Mutex};

struct Threads;

static THREADS: [OnceLock<Thread>; CPUS] = [const { OnceLock::new() }; CPUS];
static WOKEN: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static CPU: Cell<u32> = const { Cell::new(u32::MAX) };
}

fn become_cpu(number: u32) {
    CPU.set(number);
    THREADS[number as usize].set(thread::current()).expect("each number is used once");
}

impl Machine for Threads {
    fn cpu() -> u32 {
        CPU.get()
    }
    fn in_interrupt() -> bool {
        false
    }
    fn may_halt() -> bool {
        true
    }
    fn halt_while(word: &AtomicU32, value: u32) {
        // Parking keeps a wake that comes between the look and the halt.
        if word.load(SeqCst) == value {
            thread::park();
        }
    }
    fn wake(cpu: u32) {
        WOKEN.fetch_add(1, Relaxed);
        THREADS[cpu as usize].get().expect("it has halted, so it is there").unpark();
    }
    fn now_ns() -> u64 {
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed().as_nanos() as u64
    }
}

#[test]
fn more_cpus_than_the_host_has_count_exactly() {
    const TURNS: u64 = 3_000;
    static COUNT: Mutex<Threads, u64> = Mutex::new(0);
    let start = Barrier::new(8);
    thread::scope(|scope| {
        for number in 0..8 {
            let start = &start;
            scope.spawn(move || {
                become_cpu(number);
                start.wait();
                for turn in 0..TURNS {
                    let mut count = COUNT.lock();
                    *count += 1;
                    if turn % 64 == 0 {
                        thread::yield_now();
                    }
                }
            });
        }
    });
    assert_eq!(*COUNT.lock(), 8 * TURNS);
}

#[test]
fn a_waiter_halts_and_the_release_wakes_it() {
    static LOCK: Mutex<Threads, ()> = Mutex::new(());
    become_cpu(40);
    let held = LOCK.lock();
    let woken = WOKEN.load(Relaxed);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            become_cpu(41);
            drop(LOCK.lock());
        });
        let node = NodeId::new(CpuId::new(41).unwrap(), 0).unwrap();
        let word = &Kernel::<Threads>::PLATFORM.node(node).kick;
        while word.load(SeqCst) != 2 {
            thread::yield_now();
        }
        drop(held);
        waiter.join().unwrap();
    });
    assert!(WOKEN.load(Relaxed) > woken);
}
