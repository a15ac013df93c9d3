//! From a scenario and a seed to an outcome.

use std::rc::Rc;

use qspin_core::for_each_lock;
use qspin_core::lock::{RawLock, RawSharedLock};
use qspin_core::locks::backoff::BackoffLock;
use qspin_core::platform::CpuId;

use crate::engine::World;
use crate::failure::Failure;
use crate::lock::Lock;
use crate::machine::Memory;
use crate::outcome::Outcome;
use crate::platform::{SimPlatform, SimWord};
use crate::scenario::{BACKOFF_CAP, Scenario};
use crate::shared::{Sharing, Writing};
use crate::timeline::Timeline;
use crate::workload::{Sections, Station, Work, Workload};

/// Simulates `scenario`. The same scenario and seed give the same outcome, always.
///
/// # Errors
/// The scenario is impossible, or the lock failed.
pub fn simulate(scenario: &Scenario, seed: u64) -> Result<Outcome, Failure> {
    chosen(scenario)(scenario, seed, Watching::Nothing).0
}

/// The same, with a record of what every CPU did when, also if the lock failed.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_traced(scenario: &Scenario, seed: u64) -> (Result<Outcome, Failure>, Timeline) {
    chosen(scenario)(scenario, seed, Watching::Steps)
}

/// What a run does besides running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Watching {
    Nothing,
    /// It records which CPU did what when.
    Steps,
    /// It checks its own invariants after every event.
    Invariants,
}

type Run = fn(&Scenario, u64, Watching) -> (Result<Outcome, Failure>, Timeline);

macro_rules! chosen {
    (
        ($chosen:ident) sleeping { $($sleeps:ident: $smodule:ident = $slock:path, $sabout:literal;)* }
        spinning { $($id:ident: $module:ident = $lock:path, $about:literal;)* }
        shared_sleeping { $($rsleeps:ident: $rsmodule:ident = $rslock:path, $rsabout:literal;)* }
        shared_spinning { $($rid:ident: $rmodule:ident = $rlock:path, $rabout:literal;)* }
    ) => {
        match $chosen {
            $(Lock::$id => {
                use $lock as Chosen;
                run::<Chosen<SimWord>>
            })*
            $(Lock::$sleeps => {
                use $slock as Chosen;
                run::<Chosen<SimWord>>
            })*
            $(Lock::$rsleeps => {
                use $rslock as Chosen;
                run_shared::<Chosen<SimWord>>
            })*
            $(Lock::$rid => {
                use $rlock as Chosen;
                run_shared::<Chosen<SimWord>>
            })*
        }
    };
}

fn chosen(scenario: &Scenario) -> Run {
    if scenario.lock == Lock::Backoff
        && let Some(&cap) = scenario.tuning.get(BACKOFF_CAP)
    {
        return backoff(cap);
    }
    let lock = scenario.lock;
    for_each_lock!(chosen, lock)
}

/// The lock `backoff` whose largest pause is `cap`: one of [`crate::scenario::BACKOFF_CAPS`], else the scenario is
/// refused before it runs.
fn backoff(cap: u32) -> Run {
    match cap {
        1 => run::<BackoffLock<SimWord, 1>>,
        2 => run::<BackoffLock<SimWord, 2>>,
        4 => run::<BackoffLock<SimWord, 4>>,
        8 => run::<BackoffLock<SimWord, 8>>,
        16 => run::<BackoffLock<SimWord, 16>>,
        32 => run::<BackoffLock<SimWord, 32>>,
        128 => run::<BackoffLock<SimWord, 128>>,
        256 => run::<BackoffLock<SimWord, 256>>,
        512 => run::<BackoffLock<SimWord, 512>>,
        1024 => run::<BackoffLock<SimWord, 1024>>,
        _ => run::<BackoffLock<SimWord, 64>>,
    }
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

/// As [`simulate_lock`], with any lock that readers share.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_shared_lock<L>(scenario: &Scenario, seed: u64) -> Result<Outcome, Failure>
where
    L: RawSharedLock<SimPlatform> + 'static,
{
    run_shared::<L>(scenario, seed, Watching::Nothing).0
}

/// As [`simulate_lock`], and checks after every event that the simulator's own invariants hold: that every watcher has a
/// copy of its line or a read pending, and that an owner has the only copy. Slow.
///
/// # Errors
/// As [`simulate`].
///
/// # Panics
/// If an invariant is violated.
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
    run_as::<L>(scenario, seed, watching, None)
}

/// A lock that readers share excludes as its writers do, and knows beside that how its readers acquire it.
fn run_shared<L>(
    scenario: &Scenario,
    seed: u64,
    watching: Watching,
) -> (Result<Outcome, Failure>, Timeline)
where
    L: RawSharedLock<SimPlatform> + 'static,
{
    run_as::<Writing<L>>(scenario, seed, watching, Some(Writing::SHARING))
}

fn run_as<L>(
    scenario: &Scenario,
    seed: u64,
    watching: Watching,
    sharing: Option<Sharing<L>>,
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
    let station = Station::<L>::new(locks, lines, work.pieces(), scenario.cpus);
    let station = Rc::new(station.shared_by(sharing));
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

/// The count kept under the locks must be the number of sections run under them.
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
