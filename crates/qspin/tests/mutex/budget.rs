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
use qspin_core::sleepers::{SleepBucket, SleepPlatform, Sleeper, SpinBudget};
use qspin_core::waiting::Bucket;

static THREADS: Threads<NoEvents> = Threads::NEW;

/// Threads as ever, but where they run is the test's, as is what a waiter meets meanwhile.
struct Seen {
    runs_on: Cell<Option<u32>>,
    /// What was done: `p` for a slice of pauses, `y` for a yield, `s` for a sleep; in brackets what another waiter did.
    steps: RefCell<String>,
    /// So many others wait for this lock, each from the first pause of the one before.
    come: Cell<Option<(u32, &'static Lock)>>,
    /// Its owner releases it when somebody sleeps.
    owned: Cell<Option<&'static Lock>>,
    /// What the clock says, in ns: it is late once somebody has slept for a time.
    now: Cell<u64>,
    /// How long a yield takes, in ns.
    yield_ns: Cell<u64>,
    rationed: Cell<bool>,
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
            now: Cell::default(),
            yield_ns: Cell::default(),
            rationed: Cell::default(),
            // Not quiet: marks are set.
            hints: [const { AtomicU32::new(0) }],
            buckets: [SleepBucket::EMPTY],
        };
        // The thread that had this thread's number before may have left turns behind that are over: who waits
        // after that sleeps at once, once.
        new.steps(None, None, |lock| lock.acquire(&new));
        new
    }

    fn step(&self, step: char) {
        self.steps.borrow_mut().push(step);
    }

    /// What a waiter on CPU `on` does that waits by `acquire` for a lock that was taken on CPU `owner`, until it
    /// has slept.
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
        let end = steps.find('s').expect("it has slept");
        steps[..=end].to_owned()
    }
}

const TUNING: Tuning = Tuning {
    // Two slices, and then five with a yield.
    mutex_spin_ns: 4000,
    mutex_awake_us: 10,
    rotate_turns: 1 << 24,
    ..Tuning::DEFAULT
};

impl Platform for Seen {
    type Word = AtomicU32;
    type Address = AtomicUsize;
    type Events = NoEvents;
    fn events(&self) -> &NoEvents {
        &NoEvents
    }
    fn tuning(&self) -> &Tuning {
        &TUNING
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
    fn is_rationed(&self) -> bool {
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
        if let Some(lock) = self.owned.take() {
            // SAFETY: the test has acquired it for this.
            unsafe { lock.release(self) };
        }
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
    fn doze(&self) {}
}

/// Slices of an heir, with a yield each: sixteen times those of others.
const HEIR: usize = 16 * 5;

const SOMEWHERE: Option<u32> = Some(3);
const ELSEWHERE: Option<u32> = Some(4);

#[test]
fn a_waiter_alone_polls_then_yields_then_sleeps() {
    let p = Seen::new();
    let all = "pppypypypypys";
    for (owner, on) in [(None, None), (None, SOMEWHERE), (SOMEWHERE, None), (SOMEWHERE, ELSEWHERE)]
    {
        assert_eq!(
            p.steps(owner, on, |lock| lock.acquire(&p)),
            all,
            "owner on {owner:?}, waiter on {on:?}"
        );
    }
    // CPU 3 and CPU 4 are told apart; so are 0 and one that is not known.
    assert_eq!(p.steps(None, Some(0), |lock| lock.acquire(&p)), all);
    assert_eq!(p.steps(Some(0), None, |lock| lock.acquire(&p)), all);
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
    let p = Seen::new();
    static LOCK: Lock = Lock::UNLOCKED;
    LOCK.acquire(&p);
    // Each counts itself as awake and pauses; then the next comes.
    for (others, expected) in [(1, "p(pppypypypypyz"), (2, "p(p(ppz")] {
        p.come.set(Some((others, &LOCK)));
        p.now.set(0);
        assert!(!LOCK.acquire_until(&p, 1));
        let steps = p.steps.take();
        assert!(steps.starts_with(expected), "{steps}");
    }
    // SAFETY: acquired above.
    unsafe { LOCK.release(&p) };
}

#[test]
fn where_cpu_time_is_rationed_nobody_yields_to_an_owner_that_runs() {
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
    let heir_ns = u64::from(TUNING.mutex_heir_us) * 1000;
    // Five yields without that; it is one from that on at which it has waited for so long.
    for (yield_ns, yields) in [(heir_ns / 5, 5), (heir_ns / 2, 2 + HEIR), (heir_ns, 1 + HEIR)] {
        p.now.set(1);
        p.yield_ns.set(yield_ns);
        let steps = p.steps(None, None, |lock| lock.acquire(&p));
        assert_eq!(steps, format!("pp{}s", "py".repeat(yields)), "yields of {yield_ns} ns");
    }
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
    let mut heir = SpinBudget::of_heir(&p);
    let mut yields = 0;
    while !heir.is_spent() {
        heir.spend(&p, |_| true);
        yields += 1;
    }
    assert_eq!(yields, HEIR);
    let mut heir = SpinBudget::of_heir(&p);
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
    let mut heir = SpinBudget::of_heir(&p);
    heir.spend(&p, |_| false);
    assert_eq!(p.steps.take(), "");
}
