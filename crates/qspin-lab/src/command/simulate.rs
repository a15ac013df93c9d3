//! `qspin simulate`: predicts locks on a machine that a text file describes.

mod rows;
mod table;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::anyhow;
use indicatif::{ProgressBar, ProgressStyle};
use qspin_sim::batch::{self, Job};
use qspin_sim::{Failure as Failed, Lock, Outcome, Plan, Scenario, simulate_traced};

use crate::bench::interrupt::Interrupt;
use crate::failure::Failure;
use crate::machine;
use crate::output::Output;
use crate::quantity::parse_seed;
use crate::row::{self, Machine, Row};

/// Predict locks on a machine that a text file describes. Everything that it prints is SIMULATED.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The scenario: machine, locks, numbers of CPUs, and what they do.
    #[arg(value_name = "SCENARIO.toml")]
    scenario: PathBuf,
    /// Locks, instead of the scenario's.
    #[arg(long, value_name = "LOCK,…", allow_hyphen_values = true, value_delimiter = ',',
          value_parser = parse_lock)]
    locks: Vec<Lock>,
    /// Numbers of simulated CPUs, instead of the scenario's.
    #[arg(long, visible_alias = "cpus", value_name = "N,…", allow_hyphen_values = true,
          value_delimiter = ',', value_parser = parse_cpus)]
    threads: Vec<u32>,
    /// Runs of each cell, which differ in their seed: more than one give intervals.
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value = "1",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    seeds: u32,
    /// The first seed.
    #[arg(long, value_name = "SEED", allow_hyphen_values = true, default_value = "1",
          value_parser = parse_seed)]
    seed: u64,
    /// File for the rows, as JSON Lines.
    #[arg(long, value_name = "FILE.jsonl")]
    out: Option<PathBuf>,
    /// Print the rows instead of the table.
    #[arg(long)]
    json: bool,
    /// File for the timeline of one cell's first run, which ui.perfetto.dev and Chrome's
    /// about:tracing open: who held, who waited, who was preempted.
    #[arg(long, value_name = "FILE.json")]
    trace: Option<PathBuf>,
}

fn parse_lock(text: &str) -> Result<Lock, String> {
    let known = || Lock::ALL.iter().map(|lock| lock.name()).collect::<Vec<_>>().join(", ");
    let found = Lock::ALL.iter().find(|lock| lock.name() == text);
    found.copied().ok_or_else(|| format!("no lock is called `{text}`: choose from {}", known()))
}

fn parse_cpus(text: &str) -> Result<u32, String> {
    const MOST: u32 = qspin_sim::scenario::MOST_CPUS;
    match text.trim().parse() {
        Ok(cpus @ 1..=MOST) => Ok(cpus),
        _ => Err(format!("`{text}` is no number of CPUs: give 1 to {MOST}, several as 1,2,4,8")),
    }
}

/// The exit code of an interrupted run, as shells have it for SIGINT.
const INTERRUPTED: u8 = 130;
/// A scenario is written by a person.
const LONGEST_FILE: u64 = 1 << 20;

/// Simulates, and reports.
///
/// # Errors
///
/// Wrong input; a lock that fails in the simulation.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let plan = plan(args)?;
    let scenarios = plan.scenarios();
    if args.trace.is_some() && scenarios.len() != 1 {
        return Err(Failure::usage(format!(
            "--trace shows one cell, and these are {}: choose one by --locks and --threads",
            scenarios.len()
        )));
    }
    let out = args.out.as_deref().map(Output::prepare).transpose()?;
    let trace = args.trace.as_deref().map(Output::prepare).transpose()?;
    if let (Some(out), Some(trace)) = (&out, &trace)
        && out.path() == trace.path()
    {
        return Err(Failure::usage("--out and --trace name one file; name two"));
    }
    let interrupt = Interrupt::on_signals()?;
    if let Some(trace) = trace {
        write_trace(args, &scenarios[0], trace)?;
    }
    let (outcomes, failed) = simulate_all(args, &scenarios, &interrupt);
    let mut machine = describe(args, &plan);
    let partial = outcomes.iter().any(|of_cell| of_cell.len() < args.seeds as usize);
    if partial {
        machine.warnings.push("Not all runs came to their end: what was finished is here.".into());
    }
    let rows: Vec<Row> = scenarios
        .iter()
        .zip(&outcomes)
        .filter_map(|(scenario, of_cell)| rows::row(scenario, of_cell, args.seeds))
        .collect();
    let lines = row::to_json_lines(&machine, &rows)?;
    if let Some(out) = out
        && !rows.is_empty()
    {
        out.finish(&lines)?;
    }
    if args.json {
        super::say(&lines)?;
    } else {
        super::say(&table::tables(&plan, &rows, args.seed, args.seeds))?;
    }
    match failed {
        Some(why) => Err(anyhow!(why).into()),
        None if partial => Ok(ExitCode::from(INTERRUPTED)),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// What is asked for, by the file and by the command line.
fn plan(args: &Args) -> Result<Plan, Failure> {
    let path = args.scenario.display();
    let cannot = |why: &dyn std::fmt::Display| {
        Failure::usage(format!(
            "cannot read {path}: {why}; name a scenario, such as those in the folder scenarios"
        ))
    };
    let about = fs::metadata(&args.scenario).map_err(|error| cannot(&error.kind()))?;
    if !about.is_file() || about.len() > LONGEST_FILE {
        return Err(cannot(&"it is no text file of at most 1 MiB"));
    }
    let text = fs::read_to_string(&args.scenario).map_err(|error| cannot(&error.kind()))?;
    let wrong = |why: String| Failure::usage(format!("{path}: {why}"));
    let mut plan = Plan::from_toml(&text).map_err(wrong)?;
    if !args.locks.is_empty() {
        plan.locks.clone_from(&args.locks);
    }
    if !args.threads.is_empty() {
        plan.cpus.clone_from(&args.threads);
    }
    plan.check().map_err(wrong)?;
    Ok(plan)
}

fn write_trace(args: &Args, scenario: &Scenario, file: Output) -> Result<(), Failure> {
    let (result, timeline) = simulate_traced(scenario, args.seed);
    let title = format!(
        "SIMULATED: {} on {} CPUs of {}, seed {}",
        scenario.lock.name(),
        scenario.cpus,
        scenario.machine.name,
        args.seed
    );
    let path = file.path().to_owned();
    file.finish(&timeline.to_trace(&title, scenario.cpus))?;
    let cut = if timeline.is_cut() { "; it ends after the first million of steps" } else { "" };
    super::tell(&format!("wrote {}, SIMULATED{cut}", path.display()));
    match result {
        // What a lock does wrong is in the timeline; the runs below will say it again.
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Every run of every cell; and how the first one failed that did.
fn simulate_all(
    args: &Args,
    scenarios: &[Scenario],
    interrupt: &Interrupt,
) -> (Vec<Vec<Outcome>>, Option<String>) {
    let seeds = u64::from(args.seeds);
    let jobs: Vec<Job> = scenarios
        .iter()
        .flat_map(|it| (0..seeds).map(move |number| (it.clone(), args.seed.wrapping_add(number))))
        .collect();
    let bar = ProgressBar::new(jobs.len() as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:20} {pos}/{len} SIMULATED {msg} {eta}") {
        bar.set_style(style);
    }
    let results = batch::run(&jobs, |number, result| {
        bar.set_message(jobs[number].0.lock.name());
        bar.inc(1);
        result.is_ok() && !interrupt.is_raised()
    });
    bar.finish_and_clear();
    let mut failed = None;
    let mut outcomes = vec![Vec::new(); scenarios.len()];
    for (number, result) in results.into_iter().enumerate() {
        match result {
            Some(Ok(outcome)) => outcomes[number / seeds as usize].push(outcome),
            Some(Err(failure)) => {
                failed.get_or_insert_with(|| describe_failure(&jobs[number], &failure));
            }
            None => {}
        }
    }
    (outcomes, failed)
}

fn describe_failure((scenario, seed): &Job, failure: &Failed) -> String {
    let (lock, cpus) = (scenario.lock.name(), scenario.cpus);
    format!("SIMULATED: the lock {lock} on {cpus} CPUs fails with seed {seed}: {failure}")
}

/// The machine row: the simulated machine, not this one.
fn describe(args: &Args, plan: &Plan) -> Machine {
    let shape = &plan.base.machine.shape;
    let mut machine = machine::describe(args.seed);
    machine.cpu = format!("SIMULATED {}", plan.base.machine.name);
    machine.cpus = shape.processors();
    machine.numa_nodes = shape.sockets;
    machine.topology = None;
    machine.hypervisor = "none".to_owned();
    if plan.base.hypervisor.is_some() {
        machine.hypervisor = "SIMULATED".to_owned();
    }
    machine.quota_cpus =
        plan.base.hypervisor.as_ref().and_then(|it| (it.quota > 0.0).then(|| it.quota / it.period));
    machine.kernel = "SIMULATED".to_owned();
    machine.governor = None;
    machine.load = 0.0;
    machine.warnings = vec![format!(
        "SIMULATED: nothing was measured; these figures follow from the description in {}.",
        args.scenario.file_name().unwrap_or_default().to_string_lossy()
    )];
    machine
}
