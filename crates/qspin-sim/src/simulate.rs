//! From a scenario and a seed to an outcome.

use std::rc::Rc;

use qspin_core::lock::RawLock;
use qspin_core::locks::backoff::{BackoffLock, TasLock};
use qspin_core::locks::mcs::McsLock;
use qspin_core::locks::paravirt_ticket::ParavirtTicketLock;
use qspin_core::locks::queued::{
    CnaLock, CnaParavirtLock, NativeLock, ParavirtLock, ParavirtQueuedLock, ParavirtStealingLock,
};
use qspin_core::locks::simple::SimpleLock;
use qspin_core::locks::ticket::TicketLock;
use qspin_core::locks::yielding::YieldLock;
use qspin_core::platform::CpuId;

use crate::engine::World;
use crate::failure::Failure;
use crate::machine::Memory;
use crate::outcome::Outcome;
use crate::platform::{SimPlatform, SimWord};
use crate::scenario::{Lock, Scenario};
use crate::timeline::Timeline;
use crate::workload::{Sections, Station, Work, Workload};

/// Simulates `scenario`. The same scenario and seed give the same outcome, always.
///
/// # Errors
/// What is wrong with the scenario; or how the lock failed.
pub fn simulate(scenario: &Scenario, seed: u64) -> Result<Outcome, Failure> {
    chosen(scenario, seed, Watching::Nothing).0
}

/// The same, with what everybody did when; also where the lock failed.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_traced(scenario: &Scenario, seed: u64) -> (Result<Outcome, Failure>, Timeline) {
    chosen(scenario, seed, Watching::Steps)
}

/// What a run does beside running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Watching {
    Nothing,
    /// It writes down who did what when.
    Steps,
    /// It checks its own invariants after every event.
    Invariants,
}

fn chosen(
    scenario: &Scenario,
    seed: u64,
    watching: Watching,
) -> (Result<Outcome, Failure>, Timeline) {
    let with = match scenario.lock {
        Lock::Native => run::<NativeLock<SimWord>>,
        Lock::Tas => run::<TasLock<SimWord>>,
        Lock::Backoff => run::<BackoffLock<SimWord>>,
        Lock::Ticket => run::<TicketLock<SimWord>>,
        Lock::Mcs => run::<McsLock<SimWord>>,
        Lock::Cna => run::<CnaLock<SimWord>>,
        Lock::Paravirt => run::<ParavirtLock<SimWord>>,
        Lock::ParavirtStealing => run::<ParavirtStealingLock<SimWord>>,
        Lock::ParavirtQueued => run::<ParavirtQueuedLock<SimWord>>,
        Lock::ParavirtTicket => run::<ParavirtTicketLock<SimWord>>,
        Lock::CnaParavirt => run::<CnaParavirtLock<SimWord>>,
        Lock::Yield => run::<YieldLock<SimWord>>,
        Lock::Simple => run::<SimpleLock<SimWord>>,
    };
    with(scenario, seed, watching)
}

/// Simulates `scenario` with any lock, whatever the scenario says.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_lock<L>(scenario: &Scenario, seed: u64) -> Result<Outcome, Failure>
where
    L: RawLock<SimPlatform> + 'static,
{
    run::<L>(scenario, seed, Watching::Nothing).0
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
    run::<L>(scenario, seed, Watching::Invariants).0
}

fn run<L>(
    scenario: &Scenario,
    seed: u64,
    watching: Watching,
) -> (Result<Outcome, Failure>, Timeline)
where
    L: RawLock<SimPlatform> + 'static,
{
    let tuning = scenario.check().and_then(|()| scenario.tuning());
    let tuning = match tuning {
        Ok(tuning) => tuning,
        Err(wrong) => return (Err(Failure::Scenario(wrong)), Timeline::default()),
    };
    let work = &scenario.workload;
    let locks = work.locks();
    let lines = work.lines(scenario.cpus);
    let station = Rc::new(Station::<L>::new(locks, lines, work.pieces(), scenario.cpus));
    let mut memory = Memory::default();
    station.settle(&mut memory);
    let world = Rc::new(World::new(scenario, tuning, locks as usize, memory, seed));
    {
        let mut state = world.state.borrow_mut();
        state.audits = watching == Watching::Invariants;
        state.timeline = (watching == Watching::Steps).then(Timeline::default);
        state.begin();
    }
    let body = {
        let (station, work) = (Rc::clone(&station), work.clone());
        Rc::new(move |cpu: u32| {
            if let Some(cpu) = CpuId::new(cpu) {
                work.run(&station, &SimPlatform::new(cpu));
            }
        })
    };
    let ran = world.run(&body);
    let timeline = world.state.borrow_mut().timeline.take().unwrap_or_default();
    let outcome = ran.and_then(|()| {
        let state = world.state.borrow();
        let outcome = Outcome::new(scenario, seed, &state, &world.events);
        match work {
            Workload::Sections(sections) => counts(&world, &station, sections, outcome),
            _ => Ok(outcome),
        }
    });
    (outcome, timeline)
}

/// What was counted under the locks is what was run under them.
fn counts<L>(
    world: &World,
    station: &Station<L>,
    sections: &Sections,
    outcome: Outcome,
) -> Result<Outcome, Failure>
where
    L: RawLock<SimPlatform>,
{
    let state = world.state.borrow();
    let counted = |lock| {
        let word =
            if sections.beside { station.beside(lock, 0) } else { station.word(lock as usize, 0) };
        u64::from(state.values[world.memory.place(core::ptr::from_ref(word) as usize)])
    };
    let counted = (0..sections.locks).map(counted).sum::<u64>();
    let sections = outcome.sections.iter().sum::<u64>();
    if counted != sections {
        return Err(Failure::Count { sections, counted });
    }
    Ok(outcome)
}
