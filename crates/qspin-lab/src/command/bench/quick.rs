//! `qspin bench --quick` without a load of the user's own: a few of the random loads, short and long,
//! calm and crowded, and one lock to take in the end.
//!
//! A lock is judged by long phases or not at all: where time is short, loads are left out, and no
//! phase is shortened.

use std::process::ExitCode;
use std::time::Duration;

use qspin_table::number::plural;
use qspin_table::{Cell as Shown, Columns, fixed};

use crate::bench::affinity::{Placement, allowed_cpus};
use crate::bench::busy::Pace;
use crate::bench::interrupt::Interrupt;
use crate::bench::load::Load;
use crate::bench::plan::{Cell, Fairness, HogsBeside, Plan, Setting, Variant};
use crate::bench::random::draw::{Drawn, draw, is_disturbed};
use crate::bench::random::regret::{Of, Summary, cells};
use crate::bench::random::{CELL, SEED, oracle, show};
use crate::bench::rows;
use crate::contender::catalog::Lock;
use crate::failure::Failure;
use crate::row::{Machine, Row};
use crate::this_machine;
use crate::verdict::choice::choose;

use super::contend::{self, Entrant};
use super::{Args, Files, INTERRUPTED, Workload, warn};

/// The locks where none is named: the defaults of ours, and those that people have.
pub(super) const LOCKS: [&str; 6] =
    ["mutex", "paravirt", "native", "std", "parking_lot", "pthread"];

/// All that is measured takes so long at most.
const BUDGET: Duration = Duration::from_secs(52);
/// Rounds where nothing is said: the fewest that have an interval.
const ROUNDS: usize = 6;
/// The least length of a phase: some thirty turns of 3 to 4 ms.
const PHASE: Duration = Duration::from_millis(120);
/// The least that a phase gives to each thread where threads outnumber CPUs.
const TURN: Duration = Duration::from_millis(30);
/// How long the run lasts that shows how threads share, for each thread of a CPU.
const SHARING: Duration = Duration::from_millis(120);
/// What a measurement takes beside its phase: threads that come and go, and warm up.
const COMING_AND_GOING: Duration = Duration::from_millis(25);
/// Threads are at most so many times the CPUs: with more, a minute shows no thread often enough.
const MAX_TIMES: usize = 4;
/// A critical section from this length on is long.
const LONG: Duration = Duration::from_micros(1);
/// So many drawn loads are looked at for one of a kind.
const DRAWS: u32 = 1000;
/// The seed where none is given: the same loads every time, so that two runs can be compared.
const SEED_OF_LOADS: u64 = 1;

/// Whether loads are drawn: the user has none in mind.
pub(super) fn draws(args: &Args) -> bool {
    let beside = args.varied().into_iter().chain(args.beside());
    args.quick
        && args.workload == Workload::Lengths
        && args.threads.is_empty()
        && args.critical.or(args.outside).is_none()
        && args.lines.is_none()
        && args.load() == HogsBeside::Hogs(0)
        && args.series().is_none()
        && args.compare_simulated.is_none()
        && !args.stats
        && beside.into_iter().all(|(_, given)| !given)
}

/// Measures a few loads and chooses.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let mut entrants = contend::entrants(args)?;
    entrants.retain(|entrant| !entrant.lock.is_for_one_thread());
    let files = Files::prepare(args)?;
    let interrupt = Interrupt::on_signals()?;
    let seed = args.seed.unwrap_or(SEED_OF_LOADS);
    let mut machine = this_machine::describe(seed);
    let cpus = allowed_cpus();
    let plan = plan(args, &entrants, Placement::new(args.pin, cpus), seed);
    warn(&machine.warnings);
    super::super::say(&card(&plan, &machine))?;
    let Some(found) = super::measure(&plan, &mut machine, &interrupt)? else {
        return Ok(ExitCode::from(INTERRUPTED));
    };
    let rows = rows::rows(&plan, &found);
    let text = text(&machine, &rows);
    files.write(&text, machine, rows)?;
    super::super::say(&text)?;
    super::ended(found)
}

/// The loads, in the order in which they are worth their time: one thread, then one of each kind in turn.
fn loads(seed: u64, cpus: usize) -> impl Iterator<Item = Drawn> {
    let alone = Drawn {
        number: 0,
        threads: 1,
        hogs: 0,
        load: Load::of(Duration::ZERO, Duration::from_nanos(100)),
    };
    let mut next = [1; 4];
    let drawn = (0..).map_while(move |index: usize| {
        let kind = index % next.len();
        let (crowded, long) = (kind % 2 == 1, kind >= 2);
        let fits = |cell: &Drawn| {
            cell.threads <= MAX_TIMES * cpus
                && (cell.threads > cpus) == (crowded || cpus == 1)
                && (cell.load.critical >= LONG) == long
        };
        let numbers = (next[kind]..next[kind] + DRAWS).filter(|number| !is_disturbed(*number));
        let found = numbers.map(|number| draw(seed, number, cpus, false)).find(fits)?;
        next[kind] = found.number + 1;
        Some(found)
    });
    std::iter::once(alone).chain(drawn)
}

/// As many loads as there is time for.
fn plan(args: &Args, entrants: &[Entrant], placement: Placement, seed: u64) -> Plan {
    let (pace, cpus) = (Pace::calibrate(), placement.cpus());
    let locks: Vec<Lock> = entrants.iter().map(|entrant| entrant.lock).collect();
    let named = locks.iter().map(|lock| lock.name).collect();
    let mut plan = Plan {
        settings: Vec::new(),
        cells: Vec::new(),
        placement,
        pin: args.pin.to_string(),
        rounds: args.rounds.map_or(ROUNDS, |rounds| rounds as usize),
        phase: args.seconds.unwrap_or(PHASE),
        turn: if args.seconds.is_some() { Duration::ZERO } else { TURN },
        waits: false,
        fairness: Some(Fairness {
            length: args.seconds.unwrap_or(SHARING * MAX_TIMES as u32),
            locks: named,
        }),
        cell_by_cell: true,
        counting: Duration::ZERO,
        budget: Some(BUDGET),
        seed,
        locks,
    };
    let mut left = BUDGET;
    for drawn in loads(seed, cpus) {
        let setting = plan.settings.len();
        let cell = |lock| Cell {
            lock,
            variant: Variant::default(),
            threads: drawn.threads,
            setting,
            hogs: drawn.hogs,
            shown: true,
        };
        plan.settings.push(numbered(drawn.load.setting(pace, seed), seed, drawn.number));
        let takes = takes(&plan, cell(0));
        if takes > left && setting > 0 {
            plan.settings.pop();
            break;
        }
        left = left.saturating_sub(takes);
        plan.cells.extend((0..plan.locks.len()).map(cell));
    }
    contend::inform(&mut plan.cells, entrants);
    plan
}

/// Says which of the random loads it is.
fn numbered(mut setting: Setting, seed: u64, number: u32) -> Setting {
    setting.params.insert(SEED.to_owned(), seed.into());
    setting.params.insert(CELL.to_owned(), number.into());
    setting
}

/// About how long all locks take under a cell's load.
fn takes(plan: &Plan, cell: Cell) -> Duration {
    let phase = plan.phase_of(cell) + COMING_AND_GOING;
    let sharing = match &plan.fairness {
        Some(fairness) if cell.threads > 1 => fairness.length + COMING_AND_GOING,
        _ => Duration::ZERO,
    };
    (phase * plan.rounds as u32 + sharing) * plan.locks.len() as u32
}

fn card(plan: &Plan, machine: &Machine) -> String {
    let names: Vec<&str> = plan.locks.iter().map(|lock| lock.name).collect();
    let all: Duration =
        plan.cells.iter().step_by(plan.locks.len()).map(|cell| takes(plan, *cell)).sum();
    format!(
        "machine   {}, {}, hypervisor {}\n\
         locks     {}\n\
         loads     {}: one thread, and random ones of seed {}, short and long, calm and crowded\n\
         run       {} of {:.2} s or longer for each load and lock, about {} s in all\n",
        machine.cpu,
        plural(f64::from(machine.cpus), "CPU"),
        machine.hypervisor,
        names.join(" "),
        plan.settings.len(),
        plan.seed,
        plural(plan.rounds as f64, "round"),
        plan.phase.as_secs_f64(),
        all.as_secs(),
    )
}

/// Each load, each lock over all of them, and the choice.
fn text(machine: &Machine, rows: &[Row]) -> String {
    let (loads, oracle) = (cells(rows), oracle(false));
    let mut text =
        "\nRegret: throughput of a load's best lock over the lock's own; * the best\n".to_owned();
    for load in &loads {
        text += &format!("  {}\n    {}\n", show::name(load), show::regrets(load, oracle));
    }
    let ranked = show::ranked(&loads, Of::Throughput, oracle);
    let table = Columns::<(&str, Summary)>::new()
        .text("over all loads", |(lock, _)| Shown::name(lock))
        .number("mean regret", "", |(_, it)| fixed(it.mean, 2))
        .number("worst", "", |(_, it)| show::ratio(it.worst))
        .table(&ranked);
    text += &format!("\n{}\n", table.terminal(None));
    if let Some(choice) = choose(machine, rows) {
        text += &format!("{}\n", choice.sentences().join("\n"));
    }
    text
}
