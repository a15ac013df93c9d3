//! The locks whose waiters halt: exact counts with every step of theirs, alone and together.

mod halting;

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::thread;

use lock_api::RawMutex;
use qspin::events::{self, Counted, Event};
use qspin::platform::Threads;
use qspin::tuning::{self, Tuning};
use qspin_core::lock::RawLock;
use qspin_core::locks::queued::ParavirtQueuedLock;
use qspin_core::locks::ticket::TicketLock;
use qspin_core::node::{Node, NodeId};
use qspin_core::platform::{Budget, CpuId, Platform, Until};
use qspin_core::waiting::{Bucket, Halt};

use halting::{Alone, count, halting, halts, set};

/// Counts with `threads` threads, each `rounds` times, and checks the sum. The owner gives its CPU
/// away now and then, so that others come and wait.
fn counts_exactly<R: RawMutex + Send + Sync>(threads: u32, rounds: u32, what: &str) {
    let lock = lock_api::Mutex::<R, _>::new((0u32, 0u32));
    let start = Barrier::new(threads as usize);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                start.wait();
                for round in 0..rounds {
                    let mut halves = lock.lock();
                    assert_eq!(halves.0, halves.1, "{what}");
                    halves.0 += 1;
                    if round % 4 == 0 {
                        thread::yield_now();
                    }
                    halves.1 += 1;
                }
            });
        }
    });
    assert!(!lock.is_locked(), "{what}");
    assert_eq!(lock.into_inner().0, threads * rounds, "{what}");
}

/// Every value of a switch, a choice or a small number; the smallest of a large one.
fn values(tunable: &tuning::Tunable) -> Vec<u32> {
    if tunable.max - tunable.min <= 8 {
        (tunable.min..=tunable.max).collect()
    } else {
        vec![tunable.min]
    }
}

fn every_step_counts_exactly<R: RawMutex + Send + Sync>() {
    let _alone = Alone::with(Tuning::DEFAULT);
    for (base, about, threads) in [(Tuning::DEFAULT, "default", 16), (halting(), "halting", 64)] {
        for tunable in Tuning::ALL {
            for value in values(tunable) {
                let mut tuning = base;
                (tunable.set)(&mut tuning, value);
                set(tuning);
                counts_exactly::<R>(threads, 8, &format!("{about}, {} = {value}", tunable.name));
            }
        }
    }
    assert!(halts() > 0, "no waiter has halted");
}

/// All steps of the series together, in the two ways to adapt, and each pair of a kick-ahead level
/// and a deferral.
fn steps_together_count_exactly<R: RawMutex + Send + Sync>() {
    let _alone = Alone::with(Tuning::DEFAULT);
    for kick_ahead in 0..=tuning::KICK_AHEAD_MAX as u32 {
        for defer in [tuning::Defer::Never, tuning::Defer::Conditions, tuning::Defer::Always] {
            for adaptive in
                [tuning::Adaptive::History, tuning::Adaptive::Neighbour, tuning::Adaptive::Periodic]
            {
                for kick_unconditionally in [false, true] {
                    let mut tuning = halting();
                    tuning.kick_ahead = kick_ahead;
                    tuning.defer = defer;
                    tuning.adaptive = adaptive;
                    tuning.kick_unconditionally = kick_unconditionally;
                    tuning.history_threshold = 0;
                    tuning.check_polls = 1;
                    set(tuning);
                    let what = format!(
                        "{kick_ahead} {defer:?} {adaptive:?} unconditional {kick_unconditionally}"
                    );
                    counts_exactly::<R>(16, 8, &what);
                }
            }
        }
    }
    assert!(halts() > 0, "no waiter has halted");
}

fn tunables_may_change_under_waiters<R: RawMutex + Send + Sync>() {
    let _alone = Alone::with(Tuning::DEFAULT);
    let end = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let steps: Vec<_> = Tuning::ALL
                .iter()
                .flat_map(|tunable| values(tunable).into_iter().map(move |value| (tunable, value)))
                .collect();
            for (tunable, value) in steps.into_iter().cycle().take(10_000) {
                if end.load(Ordering::Relaxed) {
                    break;
                }
                let mut tuning = halting();
                (tunable.set)(&mut tuning, value);
                set(tuning);
                thread::yield_now();
            }
        });
        for _ in 0..10 {
            counts_exactly::<R>(8, 50, "tunables that change");
        }
        end.store(true, Ordering::Relaxed);
    });
}

macro_rules! for_every_halting_lock {
    ($($lock:ident)*) => {
        $(
            mod $lock {
                type Counted = qspin::$lock::CountedRawMutex;
                #[test]
                fn every_step_counts_exactly() {
                    super::every_step_counts_exactly::<Counted>();
                }
                #[test]
                fn steps_together_count_exactly() {
                    super::steps_together_count_exactly::<Counted>();
                }
                #[test]
                fn tunables_may_change_under_waiters() {
                    super::tunables_may_change_under_waiters::<qspin::$lock::RawMutex>();
                }
            }
        )*
    };
}

for_every_halting_lock!(paravirt paravirt_stealing paravirt_queued paravirt_ticket cna_paravirt);

#[test]
fn tickets_wrap_around_under_waiters_that_halt() {
    let _alone = Alone::with(halting());
    counts_exactly::<qspin::paravirt_ticket::CountedRawMutex>(
        3,
        12_000,
        "36 000 of 32 768 tickets",
    );
    assert!(halts() > 0, "no waiter has halted");
}

/// The threads of this process with another table of halted waiters.
struct WithTable(&'static [Bucket<AtomicU32, AtomicUsize>]);

const THREADS: Threads<Counted> = Threads::NEW;

impl Platform for WithTable {
    type Word = AtomicU32;
    type Address = AtomicUsize;
    type Events = Counted;
    fn events(&self) -> &Counted {
        &Counted
    }
    fn tuning(&self) -> &Tuning {
        tuning::get()
    }
    fn cpu(&self) -> Option<CpuId> {
        THREADS.cpu()
    }
    fn node(&self, id: NodeId) -> &Node<AtomicU32> {
        const { &THREADS }.node(id)
    }
    fn wait_until(&self, word: &AtomicU32, until: Until, budget: Budget, order: Ordering) -> u32 {
        THREADS.wait_until(word, until, budget, order)
    }
    fn relax(&self, pauses: u32) {
        THREADS.relax(pauses);
    }
    fn fence(&self, order: Ordering) {
        THREADS.fence(order);
    }
    fn yield_cpu(&self) {
        THREADS.yield_cpu();
    }
    fn hash(&self) -> &[Bucket<AtomicU32, AtomicUsize>] {
        self.0
    }
    fn halt(&self, me: NodeId) {
        THREADS.halt(me);
    }
    fn kick(&self, node: NodeId) {
        THREADS.kick(node);
    }
}

fn counts_exactly_on<L: RawLock<WithTable> + Sync>(p: &WithTable) {
    struct Shared(std::cell::UnsafeCell<u32>);
    // SAFETY: reached only by the owner of the lock.
    unsafe impl Sync for Shared {}
    impl Shared {
        fn add(&self) {
            // SAFETY: the caller owns the lock.
            unsafe { *self.0.get() += 1 };
        }
    }
    let (lock, sum) = (L::new(), Shared(0.into()));
    let (threads, rounds) = (16, 40);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                for _ in 0..rounds {
                    lock.acquire(p);
                    sum.add();
                    thread::yield_now();
                    // SAFETY: acquired just above.
                    unsafe { lock.release(p) };
                }
            });
        }
    });
    assert_eq!(sum.0.into_inner(), threads * rounds);
}

#[test]
fn a_waiter_that_finds_no_room_in_the_table_does_not_halt() {
    type Ticket = TicketLock<AtomicU32, Halt>;
    static SMALL: [Bucket<AtomicU32, AtomicUsize>; 1] = [Bucket::EMPTY];
    let _alone = Alone::with(halting());
    counts_exactly_on::<Ticket>(&WithTable(&SMALL));
    assert!(halts() > 0, "no waiter has halted");
    events::reset();
    counts_exactly_on::<Ticket>(&WithTable(&[]));
    assert_eq!(halts(), 0, "no waiter can be found without a table");
    counts_exactly_on::<ParavirtQueuedLock<AtomicU32>>(&WithTable(&[]));
    assert_eq!(count(Event::WaitHeadCount), 0, "no waiter can be found without a table");
}
