//! Without the heavy barrier the lock hangs: the control for everything that relies on it.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use lock_api::RawMutex as _;
use qspin::events::NoEvents;
use qspin::platform::Threads;
use qspin::tuning::Tuning;
use qspin_core::locks::mutex::DefaultLock;
use qspin_core::node::{Node, NodeId};
use qspin_core::platform::{Budget, CpuId, Platform, StaticPlatform, Until};
use qspin_core::raw::Raw;
use qspin_core::sleepers::{SleepBucket, SleepPlatform, Sleeper};
use qspin_core::waiting::Bucket;

use super::{LONG, Random, role, run_again};

/// The platform, as a place: what it lends lives as long as the program.
static PLATFORM: Threads<NoEvents> = Threads::NEW;

/// Waiters that sleep at once, and buckets that are quiet at once: as many barriers as there can be.
const EAGER: Tuning =
    Tuning { mutex_spin_ns: 0, mutex_awake_us: 0, sleep_idle: 1, ..Tuning::DEFAULT };

/// Threads as ever, but for the barrier: `false` leaves it out.
struct Barrier<const PASSES: bool>;

impl<const PASSES: bool> StaticPlatform for Barrier<PASSES> {
    const PLATFORM: Self = Self;
}

impl<const PASSES: bool> Platform for Barrier<PASSES> {
    type Word = AtomicU32;
    type Address = AtomicUsize;
    type Events = NoEvents;
    fn events(&self) -> &NoEvents {
        &NoEvents
    }
    fn tuning(&self) -> &Tuning {
        &EAGER
    }
    fn cpu(&self) -> Option<CpuId> {
        PLATFORM.cpu()
    }
    fn node(&self, id: NodeId) -> &Node<AtomicU32> {
        PLATFORM.node(id)
    }
    fn wait_until(&self, word: &AtomicU32, until: Until, budget: Budget, order: Ordering) -> u32 {
        PLATFORM.wait_until(word, until, budget, order)
    }
    fn relax(&self, pauses: u32) {
        PLATFORM.relax(pauses);
    }
    fn fence(&self, order: Ordering) {
        PLATFORM.fence(order);
    }
    fn halt(&self, me: NodeId) {
        PLATFORM.halt(me);
    }
    fn kick(&self, node: NodeId) {
        PLATFORM.kick(node);
    }
    fn now_ns(&self) -> u64 {
        PLATFORM.now_ns()
    }
    fn yield_cpu(&self) {
        PLATFORM.yield_cpu();
    }
    fn hash(&self) -> &[Bucket<AtomicU32, AtomicUsize>] {
        &[]
    }
}

impl<const PASSES: bool> SleepPlatform for Barrier<PASSES> {
    fn hints(&self) -> &[AtomicU32] {
        PLATFORM.hints()
    }
    fn buckets(&self) -> &[SleepBucket<AtomicU32>] {
        PLATFORM.buckets()
    }
    fn sleeper(&self, id: NodeId) -> &Sleeper<AtomicU32, AtomicUsize> {
        PLATFORM.sleeper(id)
    }
    fn token(&self) -> u32 {
        PLATFORM.token()
    }
    fn asymmetric(&self) -> bool {
        PLATFORM.asymmetric()
    }
    fn light_barrier(&self, order: Ordering) {
        PLATFORM.light_barrier(order);
    }
    fn heavy_barrier(&self, order: Ordering) {
        if PASSES {
            PLATFORM.heavy_barrier(order);
        }
    }
    fn halt_until(&self, me: NodeId, deadline_ns: u64) {
        PLATFORM.halt_until(me, deadline_ns);
    }
    fn wait_briefly(&self, word: &AtomicU32, until: Until, rounds: u32) -> bool {
        PLATFORM.wait_briefly(word, until, rounds)
    }
    fn timed_backoff(&self) {
        PLATFORM.timed_backoff();
    }
}

type Lock<const PASSES: bool> = Raw<DefaultLock<AtomicU32>, Barrier<PASSES>>;

/// How long two threads fight where no thread should hang.
const FIGHT: Duration = Duration::from_secs(3);
/// How long the control has for its hang. It takes some thousands of rounds on one processor, some hundred thousand on
/// another, and more than that where both threads seldom run at the same time.
const CONTROL: Duration = Duration::from_secs(30);
/// How long nothing may happen before it counts as a hang: the control runs into it.
const HANGS: Duration = Duration::from_secs(5);

/// Says that there are no more rounds.
const LAST: u32 = u32::MAX;

/// Waits until a word has come to a round, or to the last one; returns to which.
fn await_round(word: &AtomicU32, round: u32) -> u32 {
    let mut looks = 0u32;
    loop {
        let seen = word.load(SeqCst);
        if seen == round || seen == LAST {
            return seen;
        }
        looks += 1;
        if looks.is_multiple_of(8192) {
            std::thread::yield_now();
        }
        std::hint::spin_loop();
    }
}

#[repr(align(128))]
struct Line(AtomicU32);

/// What both threads write just before they unlock. The processor writes stores down in their order, and
/// has to fetch each of these lines from the other CPU first: so the store that unlocks comes late, long
/// after the look at the hint.
static LINES: [Line; 40] = [const { Line(AtomicU32::new(0)) }; 40];

fn write_lines(round: u32) {
    for line in &LINES {
        line.0.store(round, Relaxed);
    }
}

/// So many steps of less than a nanosecond or so: a pause instruction is too long on some processors to meet the moment.
fn delay(steps: u64) {
    for step in 0..steps {
        std::hint::black_box(step);
    }
}

/// Two threads, one that has the lock and one that comes for it. No other thread comes by, and wakes one that was
/// forgotten: a thread that has released the lock waits until the other has had it.
fn fight<const PASSES: bool>() {
    static BEGUN: AtomicU32 = AtomicU32::new(0);
    static ENDED: AtomicU32 = AtomicU32::new(0);
    std::thread::spawn(|| {
        let mut seen = 0;
        loop {
            std::thread::sleep(HANGS);
            let now = ENDED.load(SeqCst);
            if now == seen {
                println!("nothing has happened for {HANGS:?}, in round {now}");
                std::process::exit(HUNG);
            }
            seen = now;
        }
    });
    let (begun, time) = (Instant::now(), if PASSES { FIGHT } else { CONTROL });
    let lock = Lock::<PASSES>::INIT;
    std::thread::scope(|scope| {
        let lock = &lock;
        scope.spawn(move || {
            let mut random = Random(1);
            for round in 1.. {
                if await_round(&BEGUN, round) == LAST {
                    break;
                }
                delay(random.below(600));
                let guard = lock.lock();
                write_lines(round);
                // SAFETY: locked above.
                unsafe { lock.unlock(guard) };
                ENDED.store(round, SeqCst);
            }
        });
        let mut random = Random(2);
        for round in 1.. {
            if begun.elapsed() > time {
                println!("{round} rounds");
                BEGUN.store(LAST, SeqCst);
                break;
            }
            let guard = lock.lock();
            BEGUN.store(round, SeqCst);
            delay(random.below(2000));
            write_lines(round);
            // SAFETY: locked above.
            unsafe { lock.unlock(guard) };
            await_round(&ENDED, round);
        }
    });
}

/// What a process that hangs says when it ends itself.
const HUNG: i32 = 77;

#[test]
fn the_lock_hangs_without_the_barrier_and_not_with_it() {
    const NAME: &str = "barrier::the_lock_hangs_without_the_barrier_and_not_with_it";
    match role().as_deref() {
        Some("without") => return fight::<false>(),
        Some(_) => return fight::<true>(),
        None => {}
    }
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 || !PLATFORM.asymmetric() {
        println!("skipped: with one CPU, or without membarrier, there is no store to wait for");
        return;
    }
    let with = run_again(NAME, "with", |_| {}, LONG);
    assert!(with.is_some_and(|status| status.success()), "with the barrier: {with:?}");
    let without = run_again(NAME, "without", |_| {}, LONG);
    match without.and_then(|status| status.code()) {
        Some(HUNG) => {}
        // A machine on which other programs run may not meet the moment; the model checkers always do.
        Some(0) => println!(
            "the control did not hang in {CONTROL:?}: this run says nothing about the barrier"
        ),
        _ => panic!("without the barrier it should hang: {without:?}"),
    }
}
