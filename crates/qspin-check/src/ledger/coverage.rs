//! What a whole check, over all of its executions, has been through.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use qspin_core::events::Event;
use qspin_core::site::Site;

/// Sites consulted, events counted, interrupts that came.
#[derive(Debug, Clone, Default)]
pub struct Coverage {
    /// Each ordering that a lock asked for, and where.
    pub sites: Vec<(Site, Ordering)>,
    /// Events by number.
    pub events: BTreeMap<Event, u64>,
    /// Interrupts that came.
    pub interrupts: u64,
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
    COVERAGE.with(|coverage| *coverage.borrow_mut().events.entry(event).or_default() += amount);
}

/// Counts an interrupt that came.
pub fn interrupted() {
    COVERAGE.with(|coverage| coverage.borrow_mut().interrupts += 1);
}
