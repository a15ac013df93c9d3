//! What the simulator predicts for what was measured: side by side, and marked.
//!
//! # Model
//! The work of a cell is one step of a loop of system calls: so long outside, so long inside, so many lines
//! written. Threads are CPUs above an operating system. A lock that the simulator does not have is left out.

use std::collections::BTreeMap;

use qspin::tuning::Tuning;
use qspin_sim::batch::{self, Job};
use qspin_sim::workload::{Step, SystemCalls, Workload as Work};
use qspin_sim::{Hypervisor, Lock, Machine, Outcome, Pinning, Placement, Scenario};
use qspin_table::Columns;
use qspin_table::number::digits;

use crate::bench::affinity::Pin;
use crate::bench::interrupt::Interrupt;
use crate::bench::plan::{Cell, Plan};
use crate::bench::stats::interval;
use crate::bench::table::heading;
use crate::command::simulate;
use crate::failure::Failure;
use crate::report::group::label;
use crate::row::{Interval, Row};
use crate::this_machine;

use super::contend::Entrant;
use super::{Args, Workload};

mod many;

pub(super) use many::by_cell;

/// Runs of each cell: enough for an interval.
const SEEDS: u64 = 6;
/// Simulated time of a run where every CPU runs all the time, and where they take turns: some slices.
const ALONE_NS: f64 = 2e6;
const IN_TURNS_NS: f64 = 20e6;
/// Lines that a simulated section may write.
const MAX_LINES: u32 = 64;

/// What simulates beside a measurement.
pub(super) struct Simulator {
    machine: Machine,
    system: Hypervisor,
    pin: Pin,
}

impl Simulator {
    /// The simulator, where it was asked for; it measures the machine first.
    pub(super) fn asked(args: &Args, entrants: &[Entrant]) -> Result<Option<Self>, Failure> {
        let Some(machine) = &args.compare_simulated else { return Ok(None) };
        if args.workload != Workload::Lengths {
            return Err(Failure::usage("--compare-simulated simulates --workload lengths only"));
        }
        let mut given = args.varied().into_iter().chain(args.beside());
        if let Some((option, _)) = given.find(|(_, given)| *given) {
            return Err(Failure::usage(format!(
                "--compare-simulated simulates one pair of lengths: leave out {option}"
            )));
        }
        if args.lines() > MAX_LINES {
            return Err(Failure::usage(format!(
                "--compare-simulated simulates at most {MAX_LINES} lines"
            )));
        }
        knows_one(entrants)?;
        Self::of(machine, args).map(Some)
    }

    fn of(machine: &str, args: &Args) -> Result<Self, Failure> {
        let machine = simulate::machine(machine)?;
        Ok(Self { machine, system: this_machine::system()?, pin: args.pin })
    }

    /// The table of measured and simulated throughput.
    pub(super) fn compare(
        &self,
        plan: &Plan,
        rows: &[Row],
        interrupt: &Interrupt,
    ) -> Result<String, Failure> {
        let shown = plan.cells.iter().filter(|cell| cell.shown);
        let cells: Vec<(&Row, Scenario)> = shown
            .zip(rows)
            .filter_map(|(cell, row)| Some((row, self.scenario(cell, row)?)))
            .collect();
        let jobs: Vec<Job> = cells
            .iter()
            .flat_map(|(_, scenario)| (1..=SEEDS).map(move |seed| (scenario.clone(), seed)))
            .collect();
        if let Some(wrong) = cells.iter().find_map(|(_, scenario)| scenario.check().err()) {
            return Err(Failure::usage(format!("--compare-simulated: {wrong}")));
        }
        let bar = crate::command::bar(jobs.len() as u64, "SIMULATED ");
        let stopped = || interrupt.is_raised();
        let outcomes = batch::run_until(&jobs, stopped, |_, _| {
            bar.inc(1);
            true
        });
        bar.finish_and_clear();
        if interrupt.is_raised() {
            return Ok("SIMULATED beside measured: interrupted\n".to_owned());
        }
        let mut outcomes = outcomes.into_iter().flatten();
        let mut text = format!(
            "\nSIMULATED beside measured: {}; seeds 1 to {SEEDS}, the code around the lock is not in it\n",
            self.machine.name
        );
        let mut beside: Vec<(&Row, Interval)> = Vec::new();
        for (row, scenario) in &cells {
            let of_cell: Vec<_> = outcomes.by_ref().take(SEEDS as usize).collect();
            let rates: Result<Vec<f64>, _> =
                of_cell.into_iter().map(|it| it.map(|it: Outcome| it.throughput * 1e6)).collect();
            let rates = rates.map_err(|why| {
                anyhow::anyhow!("SIMULATED: the lock {} fails: {why}", scenario.lock.name())
            })?;
            beside.push((*row, interval(&rates)));
        }
        let shown = |at: Interval| format!("{} – {}", digits(at.lo / 1e3), digits(at.hi / 1e3));
        let columns = Columns::<(&Row, Interval)>::new()
            .text("lock", |(row, _)| label(row))
            .number("measured", "k ops/s", |(row, _)| row.ops_per_s.median / 1e3)
            .number("95 % interval", "", |(row, _)| shown(row.ops_per_s))
            .number("SIMULATED", "k ops/s", |(_, simulated)| simulated.median / 1e3)
            .number("95 % interval", "", |(_, simulated)| shown(*simulated))
            .number("SIMULATED /\nmeasured", "", |(row, simulated)| {
                simulated.median / row.ops_per_s.median
            });
        for of_threads in beside.chunk_by(|(one, _), (next, _)| one.threads == next.threads) {
            let heading = heading(of_threads[0].0, self.machine.shape.processors());
            text += &format!("\n{heading}\n{}\n", columns.table(of_threads));
        }
        Ok(text)
    }

    /// The cell as a scenario; `None` where the simulator does not have the lock.
    fn scenario(&self, cell: &Cell, row: &Row) -> Option<Scenario> {
        let step = Step {
            outside_ns: row.outside_ns,
            inside_ns: row.critical_ns,
            lock: 0,
            reads: 0,
            writes: row.lines,
            beside: 0,
            chain: 0.0,
            counts: 0,
        };
        let default = Tuning::DEFAULT;
        let tuned = Tuning::ALL
            .iter()
            .map(|it| (it.name.to_owned(), (it.get)(cell.variant.tuning), (it.get)(&default)))
            .filter(|(_, value, default)| value != default);
        let lock = Lock::named(&row.lock).ok()?;
        let work = Work::SystemCalls(SystemCalls { locks: 1, steps: vec![step] });
        let tuning = tuned.map(|(name, value, _)| (name, value)).collect();
        Some(Scenario { tuning, ..self.around(lock, row.threads, row.hogs, work) })
    }

    /// So many threads and hogs that do this, on the machine as the operating system spreads them.
    fn around(&self, lock: Lock, threads: u32, hogs: u32, workload: Work) -> Scenario {
        let processors = self.machine.shape.processors();
        let in_turns = threads + hogs > processors || self.pin == Pin::C;
        let half: Vec<u32> = (0..processors.div_ceil(2)).collect();
        let (pinning, placement) = match self.pin {
            Pin::A => (Pinning::Own, Placement::ThreadsFirst),
            Pin::B => (Pinning::Any, Placement::Spread),
            Pin::C => (Pinning::To(half.clone()), Placement::On(half)),
        };
        Scenario {
            lock,
            cpus: threads,
            duration_ns: if in_turns { IN_TURNS_NS } else { ALONE_NS },
            watchdog_ns: 1e10,
            start_ns: 1e4,
            placement,
            pinning,
            hogs,
            hog_pinning: Pinning::Any,
            hogs_even: false,
            tuning: BTreeMap::new(),
            workload,
            machine: self.machine.clone(),
            hypervisor: Some(self.system.clone()),
        }
    }
}

/// Refuses contenders of which the simulator has none.
fn knows_one(entrants: &[Entrant]) -> Result<(), Failure> {
    if entrants.iter().any(|entrant| Lock::named(entrant.lock.name).is_ok()) {
        return Ok(());
    }
    let known: Vec<&str> = Lock::ALL.iter().map(|lock| lock.name()).collect();
    Err(Failure::usage(format!(
        "--compare-simulated knows none of these locks: add one of {}",
        known.join(", ")
    )))
}
