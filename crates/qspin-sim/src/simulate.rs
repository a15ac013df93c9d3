//! From a scenario and a seed to an outcome.

use std::rc::Rc;

use qspin_core::backoff::{BackoffLock, TasLock};
use qspin_core::lock::RawLock;
use qspin_core::mcs::McsLock;
use qspin_core::paravirt_ticket::ParavirtTicketLock;
use qspin_core::platform::CpuId;
use qspin_core::queued::{
    CnaLock, CnaParavirtLock, NativeLock, ParavirtLock, ParavirtQueuedLock, ParavirtStealingLock,
};
use qspin_core::simple::SimpleLock;
use qspin_core::ticket::TicketLock;
use qspin_core::yielding::YieldLock;

use crate::engine::World;
use crate::failure::Failure;
use crate::machine::Memory;
use crate::outcome::Outcome;
use crate::platform::{SimPlatform, SimWord};
use crate::scenario::{Lock, Scenario};
use crate::workload::{Station, Work, Workload};

/// Simulates `scenario`. The same scenario and seed give the same outcome, always.
///
/// # Errors
/// What is wrong with the scenario; or how the lock failed.
pub fn simulate(scenario: &Scenario, seed: u64) -> Result<Outcome, Failure> {
    let with = match scenario.lock {
        Lock::Native => simulate_lock::<NativeLock<SimWord>>,
        Lock::Tas => simulate_lock::<TasLock<SimWord>>,
        Lock::Backoff => simulate_lock::<BackoffLock<SimWord>>,
        Lock::Ticket => simulate_lock::<TicketLock<SimWord>>,
        Lock::Mcs => simulate_lock::<McsLock<SimWord>>,
        Lock::Cna => simulate_lock::<CnaLock<SimWord>>,
        Lock::Paravirt => simulate_lock::<ParavirtLock<SimWord>>,
        Lock::ParavirtStealing => simulate_lock::<ParavirtStealingLock<SimWord>>,
        Lock::ParavirtQueued => simulate_lock::<ParavirtQueuedLock<SimWord>>,
        Lock::ParavirtTicket => simulate_lock::<ParavirtTicketLock<SimWord>>,
        Lock::CnaParavirt => simulate_lock::<CnaParavirtLock<SimWord>>,
        Lock::Yield => simulate_lock::<YieldLock<SimWord>>,
        Lock::Simple => simulate_lock::<SimpleLock<SimWord>>,
    };
    with(scenario, seed)
}

/// Simulates `scenario` with any lock, whatever the scenario says.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_lock<L>(scenario: &Scenario, seed: u64) -> Result<Outcome, Failure>
where
    L: RawLock<SimPlatform> + 'static,
{
    run::<L>(scenario, seed, false)
}

/// The same, and checks after every event that the simulator's own invariants hold: that every
/// watcher has a copy of its line or a read pending, and that an owner is alone. Slow.
///
/// # Errors
/// As [`simulate`].
///
/// # Panics
/// Where an invariant is violated.
pub fn simulate_audited<L>(scenario: &Scenario, seed: u64) -> Result<Outcome, Failure>
where
    L: RawLock<SimPlatform> + 'static,
{
    run::<L>(scenario, seed, true)
}

fn run<L>(scenario: &Scenario, seed: u64, audits: bool) -> Result<Outcome, Failure>
where
    L: RawLock<SimPlatform> + 'static,
{
    scenario.check().map_err(Failure::Scenario)?;
    let tuning = scenario.tuning().map_err(Failure::Scenario)?;
    let work = &scenario.workload;
    let locks = work.locks();
    let lines = work.lines(scenario.cpus);
    let station = Rc::new(Station::<L>::new(locks, lines, work.pieces(), scenario.cpus));
    let mut memory = Memory::default();
    station.settle(&mut memory);
    let world = Rc::new(World::new(scenario, tuning, locks as usize, memory, seed));
    world.state.borrow_mut().audits = audits;
    let body = {
        let (station, work) = (Rc::clone(&station), work.clone());
        Rc::new(move |cpu: u32| {
            if let Some(cpu) = CpuId::new(cpu) {
                work.run(&station, &SimPlatform::new(cpu));
            }
        })
    };
    world.run(&body)?;
    let state = world.state.borrow();
    let outcome = Outcome::new(scenario, seed, &state, &world.events);
    if let Workload::Sections(sections) = work {
        let counted = |lock| {
            let word = if sections.beside {
                station.beside(lock, 0)
            } else {
                station.word(lock as usize, 0)
            };
            u64::from(state.values[world.memory.place(core::ptr::from_ref(word) as usize)])
        };
        let counted = (0..locks).map(counted).sum::<u64>();
        let sections = outcome.sections.iter().sum::<u64>();
        if counted != sections {
            return Err(Failure::Count { sections, counted });
        }
    }
    Ok(outcome)
}
