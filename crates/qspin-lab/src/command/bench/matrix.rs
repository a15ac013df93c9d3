//! `qspin bench --matrix`: one lock against what people would use instead, cell by cell.

use std::process::ExitCode;
use std::time::Duration;

use qspin_table::number::{list, plural};

use crate::bench::affinity::{Placement, allowed_cpus};
use crate::bench::busy::Pace;
use crate::bench::fairness;
use crate::bench::found::Found;
use crate::bench::interrupt::Interrupt;
use crate::bench::matrix::cells::{Kind, Limits, Scene, plan_cells};
use crate::bench::matrix::{Matrix, show};
use crate::bench::plan::{Fairness, Plan, Setting};
use crate::bench::rows;
use crate::contender::catalog::{self, Lock};
use crate::failure::Failure;
use crate::row;
use crate::this_machine::{self, QuotaGroup};
use crate::tune::Tune;

use super::contend::Entrant;
use super::simulated::{self, Simulator};
use super::{Args, Files, INTERRUPTED, Peers, Workload, contend, ended, measure, possible, warn};

/// The first rounds, without which there is no interval, may take more than their time by so much.
const RESERVE: f64 = 1.2;

/// What a run of its own takes beside its length: threads that come and go.
const COMING_AND_GOING: Duration = Duration::from_millis(100);

/// Refuses what does not fit a matrix.
pub(super) fn check(args: &Args) -> Result<(), Failure> {
    let Some(kind) = args.matrix else {
        return match args.table {
            Some(_) => Err(Failure::usage("--table is for a matrix: add --matrix default")),
            None => Ok(()),
        };
    };
    let given = [
        ("--workload", args.workload != Workload::Lengths),
        ("--quick", args.quick),
        ("--peers", args.peers != Peers::Rust),
        ("--lines", args.lines.is_some()),
        ("--hogs", args.hogs > 0),
        ("--overcommit", args.overcommit.is_some()),
        ("--ratio", args.ratio.is_some()),
        ("--stats", args.stats),
        ("--steps", args.steps.is_some()),
        ("--kick-ahead", args.kick_ahead.is_some()),
    ];
    match given.into_iter().chain(args.varied()).chain(args.beside()).find(|(_, given)| *given) {
        Some(("--quick", _)) => Err(Failure::usage("a quick matrix is --matrix quick")),
        Some((option, _)) => Err(Failure::usage(format!(
            "--matrix {} decides that itself: leave out {option}; --locks, --threads, --critical and \
             --outside restrict it",
            kind.name()
        ))),
        None => Ok(()),
    }
}

/// The locks that take part, and the one that is judged.
struct Field {
    entrants: Vec<Entrant>,
    subject: &'static str,
    yardsticks: Vec<&'static str>,
}

fn field(args: &Args, kind: Kind) -> Result<Field, Failure> {
    let entrants = if args.locks.is_empty() {
        let all = catalog::locks();
        let find = |name: &&str| all.iter().find(|lock| lock.name == *name).copied();
        let subject = find(&kind.subject())
            .ok_or_else(|| Failure::usage(format!("this build has no `{}`", kind.subject())))?;
        let tunes: Vec<Tune> = args.tunes().iter().map(|(_, tune)| *tune).collect();
        let others = kind.yardsticks().iter().chain(kind.others()).filter_map(find);
        [subject].into_iter().chain(others).map(|lock| Entrant::new(lock, &tunes)).collect()
    } else {
        contend::entrants(args)?
    };
    let names: Vec<&'static str> = entrants.iter().map(|entrant| entrant.lock.name).collect();
    if let Some(entrant) = entrants.iter().find(|entrant| entrant.lock.is_for_one_thread()) {
        let name = entrant.lock.name;
        return Err(Failure::usage(format!("{name} is for one thread only and fills no matrix")));
    }
    let subject = match names.iter().find(|name| **name == kind.subject()) {
        Some(subject) => subject,
        // Of others that are named, the first is judged.
        None => names[0],
    };
    let is_compared = |name: &&&'static str| **name != subject && names.contains(name);
    let yardsticks: Vec<&'static str> =
        kind.yardsticks().iter().filter(is_compared).copied().collect();
    if yardsticks.is_empty() {
        let all: Vec<String> = kind.yardsticks().iter().map(|name| (*name).to_owned()).collect();
        return Err(Failure::usage(format!(
            "a matrix compares {subject} with {}: name at least one of them",
            list(&all, "and")
        )));
    }
    Ok(Field { entrants, subject, yardsticks })
}

/// Measures a matrix and judges it.
pub(super) fn run(args: &Args, kind: Kind) -> Result<ExitCode, Failure> {
    let Field { entrants, subject, yardsticks } = field(args, kind)?;
    let simulator = Simulator::of_many(args, &entrants)?;
    let locks: Vec<Lock> = entrants.iter().map(|entrant| entrant.lock).collect();
    let files = Files::prepare(args)?;
    let interrupt = Interrupt::on_signals()?;
    let seed = args.seed();
    let mut machine = this_machine::describe(seed);
    let limits =
        Limits { threads: args.threads.clone(), critical: args.critical, outside: args.outside };
    let (settings, mut scenes) = kind.scenes(&limits, Pace::calibrate(), seed);
    let skipped = without_quotas(&settings, &mut scenes);
    machine.warnings.extend(skipped.clone());
    for scene in &mut scenes {
        scene.threads.sort_unstable();
        scene.threads = possible(scene.threads.clone(), &mut machine);
        scene.threads.dedup();
    }
    machine.warnings.dedup();
    let mut cells = plan_cells(&locks, &scenes);
    contend::inform(&mut cells, &entrants);
    let mut lengthy = kind.lengthy();
    if let Some(phase) = args.seconds {
        // Longer or shorter, as the rounds are.
        lengthy.fairness =
            lengthy.fairness.mul_f64(phase.as_secs_f64() / lengthy.phase.as_secs_f64());
        lengthy.phase = phase;
    }
    let judged: Vec<&'static str> = if args.locks.is_empty() {
        [subject].into_iter().chain(yardsticks.iter().copied()).collect()
    } else {
        locks.iter().map(|lock| lock.name).collect()
    };
    let mut plan = Plan {
        locks,
        settings,
        cells,
        placement: Placement::new(args.pin, allowed_cpus()),
        pin: args.pin.to_string(),
        rounds: args.rounds.map_or(lengthy.rounds, |rounds| rounds as usize),
        phase: lengthy.phase,
        turn: Duration::ZERO,
        waits: false,
        fairness: Some(Fairness { length: lengthy.fairness, locks: judged }),
        cell_by_cell: true,
        counting: Duration::ZERO,
        budget: None,
        seed,
    };
    if args.rounds.is_none() {
        let runs = (0..plan.cells.len()).filter(|&cell| fairness::has_one(&plan, cell)).count();
        let after = (lengthy.fairness + COMING_AND_GOING) * runs as u32;
        plan.budget = Some(lengthy.total.saturating_sub(after).div_f64(RESERVE));
    }
    warn(&machine.warnings);
    let Some(found) = measure(&plan, &mut machine, &interrupt)? else {
        return Ok(ExitCode::from(INTERRUPTED));
    };
    let mut text = format!("# The matrix `{}`\n\n{}\n", kind.name(), head(&machine, &plan, &found));
    for line in &skipped {
        text += &format!("{line}\n\n");
    }
    let rows = rows::rows(&plan, &found);
    text += &show::markdown(&Matrix::new(&rows, subject, yardsticks));
    let measured = if simulator.is_some() { rows.clone() } else { Vec::new() };
    files.write(&text, machine, rows)?;
    super::super::say(&text)?;
    let code = ended(found)?;
    if let Some(simulator) = simulator {
        super::super::say(&simulator.judge(&simulated::by_cell(&measured), &interrupt)?)?;
    }
    Ok(code)
}

/// Leaves out the cells with a quota where none can be made; says why.
fn without_quotas(settings: &[Setting], scenes: &mut Vec<Scene>) -> Vec<String> {
    let of = |scene: &Scene| settings[scene.setting].beside.quota_cpus;
    let Some(cpus) = scenes.iter().find_map(of) else { return Vec::new() };
    match QuotaGroup::make(cpus) {
        Ok(_) => Vec::new(),
        Err(why) => {
            scenes.retain(|scene| of(scene).is_none());
            vec![format!("Skipped: the cells with a quota of CPU time ({why}).")]
        }
    }
}

/// Where and how it was measured.
fn head(machine: &row::Machine, plan: &Plan, found: &Found) -> String {
    let mut text = format!(
        "{}, {}, hypervisor {}, kernel {}; {}. {} of {:.2} s, the contenders of a cell one \
         after the other in an order drawn anew, seed {}.\n",
        machine.cpu,
        plural(f64::from(machine.cpus), "CPU"),
        machine.hypervisor,
        machine.kernel,
        machine.started,
        plural(found.rounds as f64, "round"),
        plan.phase.as_secs_f64(),
        plan.seed,
    );
    for warning in &machine.warnings {
        text += &format!("\n* {warning}");
    }
    if !machine.warnings.is_empty() {
        text.push('\n');
    }
    text
}
