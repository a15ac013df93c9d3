//! Threads that play a queue of which every step is known.
//!
//! The owner of the lock keeps it until the one before has come again and is linked, and until the
//! head of the queue has arranged what it can: a spinning head does so while the lock is taken, which
//! its counter shows; one that halts does so when it wakes, so there the owner waits until everybody is
//! asleep. So nothing is left to chance, and the order must be the model's in every turn.
//!
//! A stage is set in a process of its own: what goes wrong ends it, since others would wait for ever.

use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use qspin::events::{CounterGroup, Event, NoEvents};
use qspin::platform::clock::Clock;
use qspin::platform::holder::Unhinted;
use qspin::platform::interrupt::Interrupt;
use qspin::platform::{Threads, cpu, topology};
use qspin_core::lock::RawLock;
use qspin_core::locks::queued::CnaParavirtLock;
use qspin_core::node::{HALTED, HASHED, NodeId};
use qspin_core::platform::Platform;
use qspin_core::word::{self, PENDING, SLEEPER};

use super::Counts;
use super::model::{Model, Setting};

qspin::counter_group! {
    /// Counts what the lock on the stage does.
    pub(crate) Stage = "stage"
}

impl Counts {
    /// What the lock has counted.
    fn now() -> Self {
        Self {
            local: Stage::count_of(Event::CnaLocalHandoff),
            remote: Stage::count_of(Event::CnaRemoteHandoff),
            splices: Stage::count_of(Event::CnaSplice),
            flushes: Stage::count_of(Event::CnaFlush),
            skips: Stage::count_of(Event::CnaShuffleSkip),
            prioritised: Stage::count_of(Event::CnaPrioritised),
        }
    }
}

/// Ticks once a hand-over: a thread that is preempted has not waited longer by it.
pub(crate) struct HandOvers;

/// What a tick is: the order's clock has odd numbers only.
const TICK: u32 = 2;

impl Clock for HandOvers {
    fn now_ns() -> u64 {
        let counts = Counts::now();
        u64::from(TICK) * (counts.local + counts.remote)
    }
}

/// The platform on which the lock is tested: that of every program, but for its clock.
pub(crate) type OnStage = Threads<Stage, Unhinted, HandOvers>;
const P: OnStage = OnStage::NEW;

/// A futex on which a thread sleeps, so that no kick of the past is left in it.
const ASLEEP: u32 = 2;

/// How a thread comes to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comes {
    /// As any thread.
    Plainly,
    /// In a signal handler that says that it is one.
    InHandler,
    /// In a signal handler that says nothing, and that interrupts a wait for another lock.
    InterruptingAWait,
    /// With a real-time policy.
    InRealTime,
}

/// What is played.
pub(crate) struct Play {
    /// How each thread comes: the ninth only while there are turns to be had.
    pub(crate) comes: Vec<Comes>,
    /// Turns after which no thread comes again.
    pub(crate) turns: u64,
    pub(crate) threshold: u32,
    pub(crate) skip_bits: u32,
    /// Whether waiters halt.
    pub(crate) halts: bool,
}

/// What came out.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) order: Vec<usize>,
    pub(crate) counts: Counts,
    /// Turns that the longest wait took.
    pub(crate) longest: u64,
    /// The most often that any thread was passed over by one that came later.
    pub(crate) passed_over: u64,
}

struct Director {
    model: Model,
    /// The owner before, if it comes again.
    coming: Option<usize>,
    /// The turn at which each thread that waits came.
    came: Vec<Option<u64>>,
    passed: Vec<u64>,
    outcome: Outcome,
}

struct Shared<L> {
    lock: L,
    play: Play,
    director: Mutex<Director>,
    nodes: Vec<AtomicU32>,
    /// How many threads may come for the first time.
    gate: AtomicUsize,
    /// Turns that have begun.
    turns: AtomicU64,
    /// Not atomic on purpose: only the lock protects it.
    count: std::cell::UnsafeCell<u64>,
}

// SAFETY: `count` is touched by the owner of the lock alone.
unsafe impl<L: Sync> Sync for Shared<L> {}

fn fail(what: &str) -> ! {
    eprintln!("the stage: {what}");
    std::process::exit(101);
}

/// Polls after which it is taken not to happen any more: half a minute of them at the least, where
/// a turn takes milliseconds. Looks, not time: a machine may be slow, and a process may be stopped.
const LOOKS: u32 = 500_000;

/// Waits for it, without being in any thread's way.
fn until(condition: impl Fn() -> bool) {
    for _ in 0..LOOKS {
        if condition() {
            return;
        }
        thread::sleep(Duration::from_micros(20));
    }
    fail("what the model says will happen does not");
}

impl<L: RawLock<OnStage> + Sync> Shared<L> {
    fn word(&self) -> u32 {
        // SAFETY: the lock is one transparent word, an atomic.
        unsafe { &*(&raw const self.lock).cast::<AtomicU32>() }.load(Ordering::Relaxed)
    }

    fn node(&self, thread: usize) -> Option<NodeId> {
        NodeId::from_number(self.nodes[thread].load(Ordering::Relaxed))
    }

    /// Whether `thread` is the last of the queue, and linked unless it is the first, too.
    fn is_queued(&self, thread: usize, first: bool) -> bool {
        let Some(node) = self.node(thread) else { return false };
        let links = |other| {
            let other = self.node(other)?;
            Some(P.node(other).next.load(Ordering::Relaxed) == node.number())
        };
        word::tail(self.word()) == Some(node)
            && (first || (0..self.nodes.len()).any(|other| links(other) == Some(true)))
    }

    /// Whether the head, and everybody behind it, is asleep.
    fn is_asleep(&self, model: &Model) -> bool {
        let sleeps = |thread: &usize, state: u32| {
            let node = self.node(*thread).map(|node| P.node(node));
            node.is_some_and(|node| {
                node.state.load(Ordering::Relaxed) == state
                    && node.kick.load(Ordering::Relaxed) == ASLEEP
            })
        };
        let mut behind = model.main.iter().skip(1).chain(&model.second);
        behind.all(|thread| sleeps(thread, HALTED))
            && model.main.front().is_none_or(|head| sleeps(head, HASHED))
            && (model.main.is_empty() || self.word() & SLEEPER != 0)
    }

    /// Waits until `thread` is in the queue, if a thread comes, and until nothing is left to happen.
    fn settles(&self, director: &mut Director, comes: Option<usize>) {
        let turn = self.turns.load(Ordering::Relaxed);
        if let Some(thread) = comes {
            let first = director.model.main.is_empty();
            until(|| self.is_queued(thread, first));
            director.came[thread] = Some(turn);
            director.passed[thread] = 0;
            director.model.comes(thread);
        }
        if self.play.halts {
            until(|| self.is_asleep(&director.model));
        } else {
            director.model.arrange();
            let expected = director.model.counts;
            until(|| {
                let counted = Counts::now();
                counted.splices >= expected.splices && counted.skips >= expected.skips
            });
        }
    }

    /// `me` owns the lock.
    fn owns(&self, me: usize) {
        let turn = self.turns.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the owner's.
        unsafe { *self.count.get() += 1 };
        let mut guard = self.director.lock().unwrap_or_else(PoisonError::into_inner);
        let director = &mut *guard;
        // The pending waiter has no place in the queue.
        if director.came[me].is_some() {
            let next = director.model.takes();
            if next != Some(me) {
                fail(&format!("turn {turn} is {next:?}'s, not {me}'s: {:?}", director.model));
            }
        }
        let came = director.came[me].take();
        let waited = turn - came.unwrap_or(turn);
        let outcome = &mut director.outcome;
        outcome.order.push(me);
        outcome.longest = outcome.longest.max(waited);
        outcome.passed_over = outcome.passed_over.max(director.passed[me]);
        for (passed, other) in director.passed.iter_mut().zip(&director.came) {
            *passed += u64::from(other.is_some_and(|other| came.is_some_and(|came| other < came)));
        }
        let comes = director.coming.take();
        self.settles(director, comes);
        let counted = Counts::now();
        if counted != director.model.counts {
            fail(&format!("turn {turn}: {counted:?}, not {:?}", director.model));
        }
        if turn < self.play.turns {
            director.coming = Some(me);
        }
    }

    fn plays(&self, me: usize) {
        loop {
            self.acquire(self.play.comes[me]);
            let turn = self.turns.load(Ordering::Relaxed);
            self.owns(me);
            // SAFETY: acquired above.
            unsafe { self.lock.release(&P) };
            if turn >= self.play.turns {
                return;
            }
            // No thread takes the lock past the queue: it is taken when this thread comes again.
            until(|| self.turns.load(Ordering::Relaxed) > turn + 1);
        }
    }

    fn acquire(&self, comes: Comes) {
        match comes {
            Comes::Plainly | Comes::InRealTime => self.lock.acquire(&P),
            Comes::InHandler => {
                handle::<L>(libc::SIGUSR1, acquires_and_says_so::<L>, &self.lock);
                // SAFETY: the handler only locks.
                assert_eq!(unsafe { libc::raise(libc::SIGUSR1) }, 0);
            }
            Comes::InterruptingAWait => self.acquire_above_a_wait(),
        }
    }

    /// This thread waits for a lock that it has itself, and is interrupted by a handler that gives it back.
    fn acquire_above_a_wait(&self) {
        handle::<L>(libc::SIGUSR2, acquires_and_lets_go::<L>, &self.lock);
        // SAFETY: asks for this thread's handle.
        let me = unsafe { libc::pthread_self() };
        BELOW.acquire(&BELOW_P);
        thread::scope(|scope| {
            scope.spawn(|| {
                // SAFETY: a transparent word.
                let word = unsafe { &*(&raw const BELOW).cast::<AtomicU32>() };
                until(|| word.load(Ordering::Relaxed) & SLEEPER != 0);
                // SAFETY: the thread waits for this one's end.
                assert_eq!(unsafe { libc::pthread_kill(me, libc::SIGUSR2) }, 0);
            });
            BELOW.acquire(&BELOW_P);
        });
        // SAFETY: acquired just above.
        unsafe { BELOW.release(&BELOW_P) };
    }
}

/// The lock below the one on the stage. Only one thread may use it.
static BELOW: CnaParavirtLock<AtomicU32> = qspin_core::lock::ConstLock::UNLOCKED;
const BELOW_P: Threads<NoEvents> = Threads::NEW;

/// What handlers acquire: they have no argument of their own.
static IN_HANDLER: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());

fn handle<L>(signal: libc::c_int, handler: extern "C" fn(libc::c_int), lock: &L) {
    IN_HANDLER.store((&raw const *lock).cast_mut().cast(), Ordering::Relaxed);
    // SAFETY: a valid action; the handlers here only lock.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        assert_eq!(libc::sigaction(signal, &action, std::ptr::null_mut()), 0);
    }
}

extern "C" fn acquires_and_says_so<L: RawLock<OnStage>>(_: libc::c_int) {
    let _interrupt = Interrupt::enter();
    // SAFETY: set by `handle`; the lock outlives the threads.
    unsafe { &*IN_HANDLER.load(Ordering::Relaxed).cast::<L>() }.acquire(&P);
}

extern "C" fn acquires_and_lets_go<L: RawLock<OnStage>>(_: libc::c_int) {
    // SAFETY: as above.
    unsafe { &*IN_HANDLER.load(Ordering::Relaxed).cast::<L>() }.acquire(&P);
    // SAFETY: this thread acquired it before it waited for it.
    unsafe { BELOW.release(&BELOW_P) };
}

/// Gives this thread a real-time policy, if that is allowed.
fn become_real_time() -> std::io::Result<()> {
    let parameter = libc::sched_param { sched_priority: 1 };
    // SAFETY: a valid place; 0 is this thread.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameter) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Whether a thread may have a real-time policy here; the error says why not.
pub(crate) fn real_time_is_allowed() -> std::io::Result<()> {
    thread::spawn(become_real_time).join().expect("it does not panic")
}

/// Plays it. The tunables of the process must be such that waiters of a lock that halts do so at once.
pub(crate) fn play<L: RawLock<OnStage> + Sync>(play: Play) -> Outcome {
    // From now on locks go by it.
    let _ = topology::in_force();
    let threads = play.comes.len();
    let setting = Setting {
        places: vec![0; threads],
        urgent: play.comes.iter().map(|comes| *comes != Comes::Plainly).collect(),
        distance: |from, to| topology::in_force().distance(from, to),
        threshold: u64::from(play.threshold),
        skip_bits: play.skip_bits,
        awake: !play.halts,
    };
    let mut tuning = super::halting::halting();
    tuning.numa_threshold_ns = TICK * play.threshold;
    tuning.numa_skip_bits = play.skip_bits;
    super::halting::set(tuning);
    let outcome =
        Outcome { order: Vec::new(), counts: Counts::default(), longest: 0, passed_over: 0 };
    let shared = Shared {
        lock: L::new(),
        director: Mutex::new(Director {
            model: Model::new(setting),
            coming: None,
            came: vec![None; threads],
            passed: vec![0; threads],
            outcome,
        }),
        nodes: (0..threads).map(|_| AtomicU32::new(0)).collect(),
        gate: AtomicUsize::new(0),
        turns: AtomicU64::new(0),
        count: 0.into(),
        play,
    };
    let shared = &shared;
    thread::scope(|scope| {
        shared.lock.acquire(&P);
        for me in 0..threads {
            scope.spawn(move || {
                let comes = shared.play.comes[me];
                until(|| shared.gate.load(Ordering::Acquire) > me);
                let level = u32::from(comes == Comes::InterruptingAWait);
                if comes == Comes::InRealTime {
                    become_real_time().expect("it was allowed before");
                }
                let number = cpu::current();
                let node = number.and_then(|number| NodeId::new(number, level));
                let mut director = shared.director.lock().unwrap();
                director.model.setting.places[me] = topology::place(number);
                drop(director);
                let node = node.expect("there are numbers enough");
                shared.nodes[me].store(node.number(), Ordering::Relaxed);
                shared.plays(me);
            });
            shared.gate.store(me + 1, Ordering::Release);
            if me == 0 && !shared.play.halts {
                // The second of all is the pending waiter: it waits for the word, not in the queue.
                until(|| shared.word() & PENDING != 0);
                continue;
            }
            until(|| shared.is_queued(me, shared.director.lock().unwrap().model.main.is_empty()));
            let mut director = shared.director.lock().unwrap();
            shared.settles(&mut director, Some(me));
        }
        // SAFETY: acquired above.
        unsafe { shared.lock.release(&P) };
    });
    let acquired = shared.play.turns + threads as u64;
    // SAFETY: all threads have ended.
    assert_eq!(unsafe { *shared.count.get() }, acquired, "each acquisition counts once");
    assert_eq!(shared.word(), 0, "the lock is free");
    let mut director = shared.director.lock().unwrap();
    let mut outcome = std::mem::replace(
        &mut director.outcome,
        Outcome { order: Vec::new(), counts: Counts::default(), longest: 0, passed_over: 0 },
    );
    outcome.counts = Counts::now();
    assert_eq!(outcome.counts, director.model.counts);
    assert_eq!(outcome.order.len() as u64, acquired);
    outcome
}
