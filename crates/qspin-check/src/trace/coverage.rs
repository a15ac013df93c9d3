//! What a whole check, over all of its executions, has been through.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

use qspin_core::events::Event;
use qspin_core::site::Site;

/// A place of a check that is no event of a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reached {
    /// The last of the main queue has left the last of the secondary queue as the tail.
    TailReplaced,
    /// It was about to, and another waiter queued behind it first.
    TailRaceLost,
    /// A flush has put the secondary queue in front of a main one.
    FlushedInFront,
    /// The main queue was empty, and of the secondary one those came that were nearer than others.
    FartherStay,
    /// A waiter was halted in the secondary queue.
    HaltedAside,
    /// A head that had been claimed while it was halted has woken, and arranged the queue.
    ClaimedArranged,
    /// A waiter was kicked ahead while others that came before it were put aside.
    KickedAheadPast,
    /// The head of a queue has forbidden others to acquire the lock past it.
    HeadForbids,
    /// The awake waiter of a culled lock has, while no other was queued.
    AwakeForbids,
    /// A reader that had starved has come in through the gate, as the heir.
    HeirReads,
}

impl Reached {
    /// The place as shown to people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Reached::TailReplaced => "tail replaced by the secondary queue's",
            Reached::TailRaceLost => "newcomer behind a head about to replace the tail",
            Reached::FlushedInFront => "flush in front of others",
            Reached::FartherStay => "farther ones that stay in the secondary queue",
            Reached::HaltedAside => "waiter halted in the secondary queue",
            Reached::ClaimedArranged => "claimed head that arranges once awake",
            Reached::KickedAheadPast => "kick ahead past the secondary queue",
            Reached::HeadForbids => "barging forbidden by a head that starves",
            Reached::AwakeForbids => "barging forbidden by an awake waiter that starves",
            Reached::HeirReads => "starving reader through the gate, as the heir",
        }
    }
}

/// Sites consulted, events counted, interrupts that came.
#[derive(Debug, Clone, Default)]
pub struct Coverage {
    /// Each ordering that a lock asked for, and where.
    pub sites: Vec<(Site, Ordering)>,
    /// Events by number.
    pub events: BTreeMap<Event, u64>,
    /// Interrupts that came.
    pub interrupts: u64,
    /// Places that are no events.
    pub reached: BTreeSet<Reached>,
    /// How often a waiter was passed by others that had come after it, at most.
    pub passed: u32,
}

impl Coverage {
    /// Adds what another check has been through.
    pub fn merge(&mut self, other: &Coverage) {
        for &pair in &other.sites {
            if !self.sites.contains(&pair) {
                self.sites.push(pair);
            }
        }
        for (&event, &count) in &other.events {
            *self.events.entry(event).or_default() += count;
        }
        self.interrupts += other.interrupts;
        self.reached.extend(&other.reached);
        self.passed = self.passed.max(other.passed);
    }
}

thread_local! {
    static COVERAGE: RefCell<Coverage> = RefCell::default();
}

/// Begins a check: forgets what an earlier one has been through.
pub fn begin_check() {
    COVERAGE.take();
    super::paths::reset();
}

/// What was covered since the last [`begin_check`].
#[must_use]
pub fn coverage() -> Coverage {
    COVERAGE.with(|coverage| coverage.borrow().clone())
}

pub(super) fn consulted(site: Site, order: Ordering) {
    COVERAGE.with(|coverage| {
        let sites = &mut coverage.borrow_mut().sites;
        if !sites.contains(&(site, order)) {
            sites.push((site, order));
        }
    });
}

/// Counts an event.
pub fn add_events(event: Event, amount: u64) {
    if event == Event::SleepRequeue {
        super::waits::moved(amount);
    }
    COVERAGE.with(|coverage| *coverage.borrow_mut().events.entry(event).or_default() += amount);
}

pub(super) fn reached(place: Reached) {
    COVERAGE.with(|coverage| coverage.borrow_mut().reached.insert(place));
}

pub(super) fn passed(times: u32) {
    COVERAGE.with(|coverage| {
        let most = &mut coverage.borrow_mut().passed;
        *most = times.max(*most);
    });
}

/// Counts an interrupt that came.
pub fn interrupted() {
    COVERAGE.with(|coverage| coverage.borrow_mut().interrupts += 1);
}
