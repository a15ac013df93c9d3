//! `qspin simulate`: predicts locks on a machine that a text file describes.

mod choice;
mod random;
mod rows;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use qspin_reproduce::shard::{Part, Shard};
use qspin_sim::batch::{self, Job};
use qspin_sim::plan::Cell;
use qspin_sim::{Failure as Failed, Lock, Outcome, Plan, Scenario, simulate_traced};

use crate::bench::interrupt::Interrupt;
use crate::failure::Failure;
use crate::output::Output;
use crate::quantity::{parse_count, parse_seed};
use crate::row::{self, Machine, Row};
use crate::this_machine as host;

pub(in crate::command) use choice::machine;

/// Predict locks on a machine that a text file describes. Everything that it prints is SIMULATED.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The scenario: machine, locks, numbers of CPUs, and what they do.
    #[arg(value_name = "SCENARIO.toml", required_unless_present = "random")]
    scenario: Option<PathBuf>,
    /// Instead of a scenario, so many machines and loads drawn at random from --seed: how far each lock is from the best
    /// of each.
    #[arg(long, value_name = "CELLS", allow_negative_numbers = true,
          value_parser = clap::value_parser!(u32).range(1..=100_000),
          conflicts_with_all = ["scenario", "threads", "variants", "loads", "machine", "hypervisor", "seeds", "trace", "shard"])]
    random: Option<u32>,
    /// This cell of the seed alone.
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true, requires = "random",
          value_parser = clap::value_parser!(u32).range(1..))]
    cell: Option<u32>,
    /// Locks, instead of the scenario's.
    #[arg(long, value_name = "LOCK,…", allow_hyphen_values = true, value_delimiter = ',',
          value_parser = Lock::named)]
    locks: Vec<Lock>,
    /// Numbers of simulated CPUs, instead of the scenario's.
    #[arg(long, visible_alias = "cpus", value_name = "N,…", allow_hyphen_values = true,
          value_delimiter = ',', value_parser = parse_cpus)]
    threads: Vec<u32>,
    /// Variants of the scenario; all without it.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    variants: Vec<String>,
    /// Loads of the scenario; all without it.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    loads: Vec<String>,
    /// Another machine than the scenario's: one that comes with qspin, by its name; one that a file
    /// describes; or `this`, which is measured first.
    #[arg(long, value_name = "NAME|FILE.toml|this")]
    machine: Option<String>,
    /// Another hypervisor than the scenario's, by its name; `none` for none.
    #[arg(long, value_name = "NAME")]
    hypervisor: Option<String>,
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
    #[arg(long, value_name = "FILE.json", conflicts_with = "shard")]
    trace: Option<PathBuf>,
    /// Part I of N of the cells, for one of several computers; `qspin report merge` puts the parts
    /// together.
    #[arg(long, value_name = "I/N", allow_hyphen_values = true, value_parser = Part::parse,
          requires = "out")]
    shard: Option<Part>,
}

fn parse_cpus(text: &str) -> Result<u32, String> {
    parse_count(text, "CPUs", qspin_sim::scenario::MAX_CPUS, ", several as 1,2,4,8")
}

/// Simulates, and reports.
///
/// # Errors
///
/// Wrong input; a lock that fails in the simulation.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    if let Some(count) = args.random {
        return random::run(args, count);
    }
    if args.shard.is_some() && args.machine.as_deref() == Some("this") {
        return Err(Failure::usage(
            "each part would measure this machine anew: describe it once by `qspin calibrate --measure --out \
             FILE.toml`, and give --machine FILE.toml to all parts",
        ));
    }
    let plan = choice::plan(args)?;
    let mut cells = plan.cells();
    let all = cells.len();
    if args.trace.is_some() && all != 1 {
        return Err(Failure::usage(format!(
            "--trace shows one cell, and these are {all}: choose one by --locks, --threads, --variants \
             and --loads"
        )));
    }
    let out = args.out.as_deref().map(Output::prepare).transpose()?;
    let trace = args.trace.as_deref().map(Output::prepare).transpose()?;
    if let (Some(out), Some(trace)) = (&out, &trace)
        && out.path() == trace.path()
    {
        return Err(Failure::usage("--out and --trace name one file; name two"));
    }
    let mut machine = describe(args, &plan);
    if let Some(part) = args.shard {
        let named = cells.iter().map(|it| {
            (format!("{:?} {:?}", it.variant, it.load), std::slice::from_ref(&it.scenario))
        });
        machine.shard = Some(Shard::new(part, named, args.seeds).context("a scenario is no JSON")?);
        cells = part.of(cells);
    }
    let interrupt = Interrupt::on_signals()?;
    if let (Some(trace), Some(cell)) = (trace, cells.first()) {
        write_trace(args, &cell.scenario, trace)?;
    }
    let (outcomes, failed) = simulate_all(args, &cells, &interrupt);
    let partial = outcomes.iter().any(|of_cell| of_cell.len() < args.seeds as usize);
    if partial {
        machine.warnings.push("Not all runs came to their end: what was finished is here.".into());
    }
    let rows: Vec<Row> = cells
        .iter()
        .zip(&outcomes)
        .filter_map(|(cell, of_cell)| rows::row(cell, plan.locks.len() > 1, of_cell, args.seeds))
        .collect();
    let lines = row::to_json_lines(&machine, &rows)?;
    if let Some(out) = out
        && (!rows.is_empty() || cells.is_empty())
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
        None if partial => Ok(ExitCode::from(super::INTERRUPTED)),
        None => Ok(ExitCode::SUCCESS),
    }
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
    cells: &[Cell],
    interrupt: &Interrupt,
) -> (Vec<Vec<Outcome>>, Option<String>) {
    let seeds = u64::from(args.seeds);
    let jobs: Vec<Job> = cells
        .iter()
        .flat_map(|cell| {
            let job = move |number| (cell.scenario.clone(), args.seed.wrapping_add(number));
            (0..seeds).map(job)
        })
        .collect();
    let (ended, failed) = simulate_jobs(&jobs, interrupt);
    let of_cell = |some: &[Option<Outcome>]| some.iter().flatten().cloned().collect();
    (ended.chunks(seeds as usize).map(of_cell).collect(), failed)
}

/// What each run showed that came to its end; and how the first one failed that did, after which no other is begun.
fn simulate_jobs(jobs: &[Job], interrupt: &Interrupt) -> (Vec<Option<Outcome>>, Option<String>) {
    let bar = super::bar(jobs.len() as u64, "SIMULATED {msg} ");
    let stopped = || interrupt.is_raised();
    let results = batch::run_until(jobs, stopped, |number, result| {
        bar.set_message(jobs[number].0.lock.name());
        bar.inc(1);
        result.is_ok()
    });
    bar.finish_and_clear();
    let mut failed = None;
    let mut ended = Vec::with_capacity(jobs.len());
    for (job, result) in jobs.iter().zip(results) {
        ended.push(match result {
            Some(Ok(outcome)) => Some(outcome),
            Some(Err(failure)) => {
                failed.get_or_insert_with(|| describe_failure(job, &failure));
                None
            }
            None => None,
        });
    }
    (ended, failed)
}

fn describe_failure((scenario, seed): &Job, failure: &Failed) -> String {
    let (lock, cpus) = (scenario.lock.name(), scenario.cpus);
    format!("SIMULATED: the lock {lock} on {cpus} CPUs fails with seed {seed}: {failure}")
}

/// The machine row: the simulated machine, not this one.
fn describe(args: &Args, plan: &Plan) -> Machine {
    let shape = &plan.base.machine.shape;
    let mut machine = simulated(host::describe(args.seed));
    machine.cpu = format!("SIMULATED {}", plan.base.machine.name);
    machine.cpus = shape.processors();
    machine.numa_nodes = shape.sockets;
    machine.hypervisor = "none".to_owned();
    if plan.base.hypervisor.is_some() {
        machine.hypervisor = "SIMULATED".to_owned();
    }
    machine.quota_cpus =
        plan.base.hypervisor.as_ref().and_then(|it| (it.quota > 0.0).then(|| it.quota / it.period));
    machine.command = choice::command(args);
    machine.warnings = vec![format!(
        "SIMULATED: nothing was measured; these figures follow from the description in {}.",
        choice::scenario(args)
    )];
    machine
}

/// A machine row without what is this computer's, or of now: what is simulated is the same whenever and wherever that is
/// done, and shards of it are compared by this row.
fn simulated(machine: Machine) -> Machine {
    Machine {
        kernel: "SIMULATED".to_owned(),
        started: "SIMULATED".to_owned(),
        topology: None,
        governor: None,
        load: 0.0,
        ..machine
    }
}
