//! The spin budget: how often a waiter polls, by what it knows of others.
//!
//! What the machine says of where threads run is the test's.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use qspin::events::NoEvents;
use qspin::platform::Threads;
use qspin::tuning::Tuning;
use qspin_core::lock::{ConstLock as _, RawLock as _, RawTimedLock as _};
use qspin_core::locks::mutex::DefaultLock;
use qspin_core::node::{Node, NodeId};
use qspin_core::platform::{Budget, CpuId, Platform, Until};
use qspin_core::sleepers::{self, SleepBucket, SleepPlatform, Sleeper, SpinBudget};
use qspin_core::waiting::Bucket;

static THREADS: Threads<NoEvents> = Threads::NEW;

/// Threads as ever, but where they run is the test's, as is what a waiter meets meanwhile.
struct Seen {
    runs_on: Cell<Option<u32>>,
    /// What was done: `p` for a slice of pauses, `y` for a yield, `s` for a sleep; in brackets what another waiter did.
    steps: RefCell<String>,
    /// So many others wait for this lock, each from the first pause of the one before.
    come: Cell<Option<(u32, &'static Lock)>>,
    /// Its owner releases it when a thread sleeps, or at this pause from now on.
    owned: Cell<Option<&'static Lock>>,
    free_at: Cell<Option<u32>>,
    /// What the clock says, in ns: it is late once a thread has slept for a time.
    now: Cell<u64>,
    /// How long a yield takes, in ns.
    yield_ns: Cell<u64>,
    /// How long a thread takes to wake, in ns; and what was learned of that.
    wake_after: Cell<u64>,
    wake_ns: AtomicU32,
    rationed: Cell<bool>,
    tuning: Cell<&'static Tuning>,
    hints: [AtomicU32; 1],
    buckets: [SleepBucket<AtomicU32>; 1],
}

type Lock = DefaultLock<AtomicU32>;

impl Seen {
    fn new() -> Self {
        let new = Self {
            runs_on: Cell::new(None),
            steps: RefCell::default(),
            come: Cell::default(),
            owned: Cell::default(),
            free_at: Cell::default(),
            now: Cell::default(),
            yield_ns: Cell::default(),
            wake_after: Cell::default(),
            wake_ns: AtomicU32::new(0),
            rationed: Cell::default(),
            tuning: Cell::new(&TUNING),
            // Not quiet: marks are set.
            hints: [const { AtomicU32::new(0) }],
            buckets: [SleepBucket::EMPTY],
        };
        // The thread that had this thread's number before may have left a barging quantum behind that is over: a
        // thread that waits after that sleeps at once, once.
        new.steps(None, None, |lock| lock.acquire(&new));
        new
    }

    fn step(&self, step: char) {
        self.steps.borrow_mut().push(step);
    }

    fn release_owned(&self) {
        if let Some(lock) = self.owned.take() {
            // SAFETY: the test has acquired it for this.
            unsafe { lock.release(self) };
        }
    }

    /// What a waiter on CPU `on` does that waits by `acquire` for a lock that was taken on CPU `owner`, until it
    /// has slept or got it.
    fn steps(
        &self,
        owner: Option<u32>,
        on: Option<u32>,
        acquire: impl Fn(&'static Lock),
    ) -> String {
        let lock: &'static Lock = Box::leak(Box::new(Lock::UNLOCKED));
        self.runs_on.set(owner);
        lock.acquire(self);
        self.owned.set(Some(lock));
        self.runs_on.set(on);
        self.steps.take();
        acquire(lock);
        // SAFETY: it was acquired just now.
        unsafe { lock.release(self) };
        let steps = self.steps.take();
        let end = steps.find('s').map_or(steps.len(), |sleeps| sleeps + 1);
        steps[..end].to_owned()
    }
}

const TUNING: Tuning = Tuning {
    // Two slices, and then five with a yield.
    mutex_spin_ns: 4000,
    mutex_awake_us: 10,
    rotate_turns: 1 << 24,
    ..Tuning::DEFAULT
};

/// With time for five yields of any length before it is the heir.
const HEIR_TUNING: Tuning = Tuning { mutex_heir_us: 6, ..TUNING };

impl Platform for Seen {
    type Word = AtomicU32;
    type Address = AtomicUsize;
    type Events = NoEvents;
    fn events(&self) -> &NoEvents {
        &NoEvents
    }
    fn tuning(&self) -> &Tuning {
        self.tuning.get()
    }
    fn cpu(&self) -> Option<CpuId> {
        THREADS.cpu()
    }
    fn node(&self, id: NodeId) -> &Node<AtomicU32> {
        THREADS.node(id)
    }
    fn wait_until(&self, word: &AtomicU32, until: Until, budget: Budget, order: Ordering) -> u32 {
        let seen = word.load(order);
        if budget == Budget::Unbounded || until.met_by(seen) {
            return THREADS.wait_until(word, until, budget, order);
        }
        self.relax(1);
        word.load(order)
    }
    fn runs_on(&self) -> Option<u32> {
        self.runs_on.get()
    }
    fn relax(&self, _: u32) {
        self.step('p');
        self.free_at.set(self.free_at.get().and_then(|left| left.checked_sub(1)));
        if self.free_at.get() == Some(0) {
            self.release_owned();
        }
        if let Some((others, lock)) = self.come.take() {
            self.come.set((others > 1).then_some((others - 1, lock)));
            self.step('(');
            // Long enough for all of its budget: it sleeps until its time is over.
            assert!(!lock.acquire_until(self, 1));
            self.step(')');
        }
    }
    fn yield_cpu(&self) {
        self.step('y');
        self.now.set(self.now.get() + self.yield_ns.get());
    }
    fn has_cpu_quota(&self) -> bool {
        self.rationed.get()
    }
    fn now_ns(&self) -> u64 {
        self.now.get()
    }
    fn fence(&self, order: Ordering) {
        THREADS.fence(order);
    }
    fn halt(&self, _: NodeId) {
        self.step('s');
        self.release_owned();
        self.now.set(self.now.get() + self.wake_after.get());
    }
    fn kick(&self, _: NodeId) {}
    fn hash(&self) -> &[Bucket<AtomicU32, AtomicUsize>] {
        &[]
    }
}

impl SleepPlatform for Seen {
    fn hints(&self) -> &[AtomicU32] {
        &self.hints
    }
    fn buckets(&self) -> &[SleepBucket<AtomicU32>] {
        &self.buckets
    }
    fn sleeper(&self, id: NodeId) -> &Sleeper<AtomicU32, AtomicUsize> {
        THREADS.sleeper(id)
    }
    fn token(&self) -> u32 {
        THREADS.token()
    }
    fn asymmetric(&self) -> bool {
        false
    }
    fn light_barrier(&self, order: Ordering) {
        THREADS.light_barrier(order);
    }
    fn heavy_barrier(&self, order: Ordering) {
        THREADS.heavy_barrier(order);
    }
    fn halt_until(&self, _: NodeId, _: u64) {
        self.step('z');
        self.now.set(1);
    }
    fn wait_briefly(&self, word: &AtomicU32, until: Until, rounds: u32) -> bool {
        THREADS.wait_briefly(word, until, rounds)
    }
    fn timed_backoff(&self) {}
    fn wake_ns(&self) -> Option<&AtomicU32> {
        (self.wake_after.get() != 0).then_some(&self.wake_ns)
    }
}

/// Yields of an heir, a slice before each: sixteen times those of others. Before, it polls for what sleeping costs.
const HEIR: usize = 16 * 5;
const HEIR_POLLS: usize = 2;

/// What a waiter does for which nothing was learned.
const ALL: &str = "pppypypypypys";

const SOMEWHERE: Option<u32> = Some(3);
const ELSEWHERE: Option<u32> = Some(4);

#[test]
fn a_waiter_alone_polls_then_yields_then_sleeps() {
    // CPU 3 and CPU 4 are told apart; so are 0 and one that is not known.
    for (owner, on) in [
        (None, None),
        (None, SOMEWHERE),
        (SOMEWHERE, None),
        (SOMEWHERE, ELSEWHERE),
        (None, Some(0)),
        (Some(0), None),
    ] {
        let p = Seen::new();
        assert_eq!(
            p.steps(owner, on, |lock| lock.acquire(&p)),
            ALL,
            "owner on {owner:?}, waiter on {on:?}"
        );
    }
}

#[test]
fn where_polls_are_in_vain_waiters_learn_to_yield_at_once_and_to_poll_again() {
    let p = Seen::new();
    let waits = |free_at: Option<u32>, count: usize| {
        let all = (0..count).map(|_| {
            p.free_at.set(free_at);
            p.steps(None, None, |lock| lock.acquire(&p))
        });
        all.collect::<Vec<_>>()
    };
    // The first wait was that of `Seen::new`. One in sixteen tries.
    let vain = waits(None, 403);
    let at_once = "py".repeat(34);
    let ready =
        vain.iter().position(|steps| steps.starts_with(&at_once[..8])).expect("it is learned");
    // Four waits teach it, and one that tries may come next.
    assert!(ready <= 8, "{:?}", &vain[..ready]);
    assert!(vain[..ready].iter().all(|steps| steps == ALL), "{vain:?}");
    let tried = vain[ready..].iter().filter(|steps| *steps == ALL).count();
    assert!((8..60).contains(&tried), "{tried} of {}", vain.len() - ready);
    // The owner releases it at the second poll: those that try have it by that.
    let short = waits(Some(2), 400);
    assert!(short[..8].iter().any(|steps| steps.starts_with("pyp")), "{short:?}");
    assert!(short[300..].iter().all(|steps| steps == "pp"), "{short:?}");
}

#[test]
fn where_short_waits_for_readers_are_in_vain_waiters_yield_or_poll_for_as_long_as_sleeping_costs() {
    let p = Seen::new();
    // How often a waiter polls that would acquire the lock by poll `free_at`, before it yields.
    let polls = |free_at: u32| {
        let mut budget = SpinBudget::of_rwlock(&p, 0);
        let polls = Cell::new(0);
        while budget.only_spins() && polls.get() < free_at {
            polls.set(polls.get() + 1);
            budget.spend(&p, |_| polls.get() < free_at);
        }
        polls.get()
    };
    // Four slices of 500 ns are 2 µs; sleeping costs more than the tunable allows, 4 µs.
    let (vain, short, long) = (1, 4, 8);
    let waits = |free_at: u32, count: usize| (0..count).map(|_| polls(free_at)).collect::<Vec<_>>();
    let times = |all: &[u32], times: u32| all.iter().filter(|polls| **polls == times).count();
    // Nothing helps: the first ones learn to yield at once; one wait was that of `Seen::new`. Of the others some try the
    // short wait, and a few the long one.
    let all = waits(u32::MAX, 800);
    assert!(all[..3].iter().all(|polls| *polls == short), "{all:?}");
    assert!((16..100).contains(&times(&all[4..], short)), "{all:?}");
    assert!((2..50).contains(&times(&all, long)), "{all:?}");
    assert!(times(&all, vain) > 600, "{all:?}");
    // The owner releases the lock a moment later: those that poll on have it by that.
    let later = waits(6, 1600);
    assert!(later[1500..].iter().all(|polls| *polls == 6), "{later:?}");
    assert_eq!(polls(u32::MAX), long);
    // No more.
    let all = waits(u32::MAX, 800);
    assert!((2..50).contains(&times(&all[20..], long)), "{all:?}");
    // Sections become short.
    let brief = waits(3, 400);
    assert!(brief[300..].iter().all(|polls| *polls == 3), "{brief:?}");
    assert_eq!(polls(u32::MAX), short);
    // A quota allows the short wait, and no yield.
    (0..20).for_each(|_| assert!([vain, short, long].contains(&polls(u32::MAX))));
    p.rationed.set(true);
    assert_eq!(polls(u32::MAX), short);
    let mut budget = SpinBudget::of_rwlock(&p, 0);
    (0..short).for_each(|_| budget.spend(&p, |_| true));
    assert!(budget.is_spent());
}

#[test]
fn a_waiter_that_keeps_the_owner_from_running_gives_way_at_once() {
    let p = Seen::new();
    for cpu in [0, 1, 127, 128, 4095] {
        assert_eq!(p.steps(Some(cpu), Some(cpu), |lock| lock.acquire(&p)), "yyyys", "CPU {cpu}");
    }
}

#[test]
fn a_waiter_beside_two_others_does_not_yield() {
    // Each counts itself as awake and pauses; then the next comes.
    for (others, expected) in [(1, "p(pppypypypypyz"), (2, "p(p(ppz")] {
        let p = Seen::new();
        let lock: &'static Lock = Box::leak(Box::new(Lock::UNLOCKED));
        lock.acquire(&p);
        p.come.set(Some((others, lock)));
        p.now.set(0);
        assert!(!lock.acquire_until(&p, 1));
        let steps = p.steps.take();
        assert!(steps.starts_with(expected), "{steps}");
    }
}

#[test]
fn where_there_is_a_quota_no_waiter_yields_to_an_owner_that_runs() {
    let p = Seen::new();
    p.rationed.set(true);
    assert_eq!(p.steps(SOMEWHERE, ELSEWHERE, |lock| lock.acquire(&p)), "ps");
    assert_eq!(p.steps(SOMEWHERE, SOMEWHERE, |lock| lock.acquire(&p)), "yyyys");
    p.rationed.set(false);
    assert_eq!(p.steps(SOMEWHERE, ELSEWHERE, |lock| lock.acquire(&p)), "pppypypypypys");
}

#[test]
fn a_waiter_that_yields_for_too_long_is_the_heir() {
    let p = Seen::new();
    let heir_ns = u64::from(HEIR_TUNING.mutex_heir_us) * 1000;
    p.tuning.set(&HEIR_TUNING);
    // Five yields without that; it is one from that on at which it has waited for so long.
    for (yield_ns, yields) in [(heir_ns / 6, 5), (heir_ns / 2, 2 + HEIR), (heir_ns, 1 + HEIR)] {
        p.now.set(1);
        p.yield_ns.set(yield_ns);
        let steps = p.steps(None, None, |lock| lock.acquire(&p));
        let (before, as_heir) = match yields.checked_sub(HEIR) {
            None => (yields, String::new()),
            Some(before) => (before, "p".repeat(HEIR_POLLS) + &"py".repeat(HEIR)),
        };
        let expected = format!("pp{}{as_heir}s", "py".repeat(before));
        assert_eq!(steps, expected, "yields of {yield_ns} ns");
    }
}

#[test]
fn each_sleeper_lets_others_wait_a_tenth_longer_before_they_starve() {
    let p = Seen::new();
    let after = |p: &Seen| sleepers::starves_after_ns(p, 0);
    let heir_ns = u64::from(TUNING.mutex_heir_us) * 1000;
    assert_eq!(after(&p), heir_ns);
    let slept = sleepers::with_sleeper(&p, |me| {
        assert!(sleepers::enqueue(&p, me, 0, 0, sleepers::End::Last));
        let with_one = after(&p);
        assert!(sleepers::cancel(&p, me));
        with_one
    });
    assert_eq!(slept, Some(heir_ns + heir_ns / 10));
    assert_eq!(after(&p), heir_ns);
}

#[test]
fn yields_that_take_time_are_fewer() {
    // Ten microseconds in all, two of them for each slice. A yield that lets others run counts as one at least.
    for (yield_ns, expected) in [(0, ALL), (1499, ALL), (1500, "pppypypys"), (2000, "pppypypys")] {
        let p = Seen::new();
        p.yield_ns.set(yield_ns);
        assert_eq!(p.steps(None, None, |lock| lock.acquire(&p)), expected, "{yield_ns} ns");
    }
}

#[test]
fn after_a_yield_that_let_others_run_a_waiter_only_looks_before_it_yields_again() {
    for (yield_ns, looks) in [(0, false), (1499, false), (1500, true)] {
        let p = Seen::new();
        p.yield_ns.set(yield_ns);
        let mut budget = SpinBudget::new(&p, 0, 0);
        let slices = RefCell::new(Vec::new());
        while !budget.is_spent() {
            budget.spend(&p, |pauses| {
                slices.borrow_mut().push(pauses);
                true
            });
        }
        let slices = slices.into_inner();
        let yields = p.steps.take().len();
        let (before, after) = slices.split_at(slices.len() - yields + 1);
        assert!(yields > 1, "{slices:?}");
        assert!(before.iter().all(|pauses| *pauses == before[0]), "{slices:?}");
        let is_look = |pauses: &u32| *pauses < before[0] / 4;
        assert!(after.iter().all(|pauses| is_look(pauses) == looks), "{yield_ns} ns: {slices:?}");
    }
}

/// A platform on which waiters have learned that yields are long, and what it costs to sleep: twice `wake_ns`.
fn with_hogs(wake_ns: u64) -> Seen {
    let p = Seen::new();
    p.yield_ns.set(1_000_000_000);
    p.wake_after.set(wake_ns);
    (0..400).for_each(|_| drop(p.steps(None, None, |lock| lock.acquire(&p))));
    p
}

#[test]
fn what_it_costs_to_sleep_is_measured_and_one_long_delay_says_little() {
    let learned = |p: &Seen| u64::from(p.wake_ns.load(Ordering::Relaxed));
    for wake_ns in [2000, 5000, 20_000] {
        let p = with_hogs(wake_ns);
        assert!(learned(&p).abs_diff(wake_ns) <= wake_ns / 8, "{} of {wake_ns}", learned(&p));
        // Every other thread had no CPU to wake on.
        for index in 0..400 {
            p.wake_after.set(if index % 2 == 0 { wake_ns } else { 4_000_000 });
            p.steps(None, None, |lock| lock.acquire(&p));
        }
        assert!(learned(&p) <= wake_ns * 5 / 4, "{} of {wake_ns}", learned(&p));
    }
}

#[test]
fn a_waiter_that_does_not_yield_pays_at_most_twice_what_the_clairvoyant_pays() {
    /// Slices of polling, as the budget has them.
    const SLICE_NS: u64 = 2000;
    for wake_ns in [2000, 5000, 20_000, 40_000] {
        let p = with_hogs(wake_ns);
        let sleep_ns = 2 * u64::from(p.wake_ns.load(Ordering::Relaxed));
        let steps = p.steps(None, None, |lock| lock.acquire(&p));
        let steps =
            if steps.contains('y') { p.steps(None, None, |lock| lock.acquire(&p)) } else { steps };
        let polled_ns = SLICE_NS * steps.matches('p').count() as u64;
        for length_ns in (0..60).map(|step| (100.0 * 1.2_f64.powi(step)) as u64) {
            let paid = if length_ns <= polled_ns { length_ns } else { polled_ns + sleep_ns };
            let least = length_ns.min(sleep_ns);
            assert!(
                paid <= 2 * least + SLICE_NS,
                "{paid} for {least}: {length_ns} ns, sleeping {sleep_ns}"
            );
        }
    }
}

#[test]
fn where_yields_are_too_long_waiters_learn_to_sleep_instead_and_to_yield_again() {
    let p = Seen::new();
    let waits = |yield_ns: u64, count: usize| {
        p.yield_ns.set(yield_ns);
        let all = (0..count).map(|_| p.steps(None, None, |lock| lock.acquire(&p)));
        all.collect::<Vec<_>>()
    };
    // Two tell; then waiters poll for what sleeping is thought to cost, three slices, and sleep. One in sixteen tries.
    let long = waits(TUNING.mutex_awake_us as u64 * 1000, 400);
    assert_eq!(long[..2], ["pppys", "pppys"]);
    let (tried, slept): (Vec<_>, Vec<_>) = long[2..].iter().partition(|steps| steps.contains('y'));
    assert!(slept.iter().all(|steps| *steps == "ppps"), "{slept:?}");
    // Polls were in vain as well.
    assert!(tried.iter().all(|steps| ["pppys", "pys"].contains(&steps.as_str())), "{tried:?}");
    assert!((8..60).contains(&tried.len()), "{} of 398", tried.len());
    let short = waits(0, 400);
    assert!(short[300..].iter().all(|steps| steps.matches('y').count() >= 5), "{short:?}");
}

#[test]
fn a_waiter_that_was_notified_polls_for_a_moment_and_sleeps() {
    let p = Seen::new();
    assert_eq!(p.steps(None, None, |lock| lock.acquire_notified(&p)), "ps");
    assert_eq!(p.steps(SOMEWHERE, SOMEWHERE, |lock| lock.acquire_notified(&p)), "s");
}

#[test]
fn an_heir_stays_awake_for_long_and_an_empty_budget_is_spent() {
    let p = Seen::new();
    let mut heir = SpinBudget::of_heir(&p, 0);
    let mut slices = 0;
    while !heir.is_spent() {
        heir.spend(&p, |_| true);
        slices += 1;
    }
    assert_eq!(slices, HEIR_POLLS + HEIR);
    assert_eq!(p.steps.take(), "y".repeat(HEIR));
    let mut heir = SpinBudget::of_heir(&p, 0);
    p.steps.take();
    while !heir.is_spent() {
        heir.give_way(&p);
    }
    assert_eq!(p.steps.take(), "yyyy", "an owner that is here");
    assert!(SpinBudget::none().is_spent());
    assert!(!SpinBudget::none().only_spins());
}

#[test]
fn a_waiter_does_not_yield_once_the_lock_is_free() {
    let p = Seen::new();
    let mut heir = SpinBudget::of_heir(&p, 0);
    heir.spend(&p, |_| false);
    assert_eq!(p.steps.take(), "");
}
