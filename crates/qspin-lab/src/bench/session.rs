//! A run: rounds of measurements, each round in an order of its own.
//!
//! Only finished rounds count, so that every contender has met the same moments of the machine.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use indicatif::{ProgressBar, ProgressStyle};
use quanta::Clock;

use crate::contender::catalog::{Engine, FLOOR, locks};
use qspin::events;

use super::cell::{Conditions, Measured, Spoiled};
use super::hogs::Hogs;
use super::interrupt::Interrupt;
use super::plan::{Cell, Job, Plan};
use super::waits::Waits;

/// What a cell has shown over the finished rounds.
#[derive(Debug, Default)]
pub struct Findings {
    /// Length of each round's throughput phase, s.
    pub seconds: Vec<f64>,
    /// Operations of each thread in each round.
    pub operations: Vec<Vec<u64>>,
    /// CPU time of all threads in each round, ns.
    pub cpu_ns: Vec<f64>,
    /// Cost of an uncontended pair in each round, ns; with one thread only.
    pub pair_ns: Vec<f64>,
    /// Waits of all rounds, by class of operation.
    pub waits: Vec<Waits>,
    /// Events, counted after the rounds.
    pub events: BTreeMap<String, u64>,
    /// Operations during which events were counted.
    pub events_ops: Option<u64>,
}

impl Findings {
    /// Operations of all threads in a round.
    #[must_use]
    pub fn total(&self, round: usize) -> f64 {
        self.operations[round].iter().sum::<u64>() as f64
    }
}

/// What a run has shown.
#[derive(Debug)]
pub struct Found {
    /// By index of the cell in the plan.
    pub cells: Vec<Findings>,
    /// Cost of the floor's pair in each round, ns.
    pub floor_ns: Vec<f64>,
    /// Finished rounds.
    pub rounds: usize,
    /// Whether somebody stopped it before all rounds were done.
    pub partial: bool,
    /// Order of the finished rounds.
    pub order: Vec<Vec<usize>>,
}

/// One cell's share of a round that has not finished yet.
struct Share {
    cell: usize,
    seconds: f64,
    operations: Vec<u64>,
    cpu_ns: f64,
    pair_ns: Option<f64>,
    waits: Vec<Waits>,
}

/// The fewest rounds that a budget leaves: fewer have no interval to speak of.
const FEWEST_ROUNDS: usize = 3;

/// Measures the whole plan.
///
/// # Errors
///
/// When a lock fails, or the machine cannot make the threads or hogs.
pub fn run(plan: &Plan, interrupt: &Interrupt) -> anyhow::Result<Found> {
    let clock = Clock::new();
    let most_hogs = plan.cells.iter().map(|cell| cell.hogs).max().unwrap_or(0);
    let mut hogs = Hogs::start(most_hogs).context("cannot start the hogs")?;
    let bar = progress(plan);
    let mut found = Found {
        cells: plan.cells.iter().map(|_| Findings::default()).collect(),
        floor_ns: Vec::new(),
        rounds: 0,
        partial: false,
        order: Vec::new(),
    };
    let began = Instant::now();
    for order in plan.orders() {
        if exhausted(plan, &found, began.elapsed()) {
            break;
        }
        let Some((shares, floor)) = round(plan, &order, &clock, interrupt, &mut hogs, &bar)? else {
            found.partial = true;
            break;
        };
        found.take(shares, floor, order);
    }
    if !found.partial {
        hogs.run(0);
        count_events(plan, &mut found, &clock, interrupt, &mut hogs, &bar)?;
    }
    bar.finish_and_clear();
    Ok(found)
}

/// Whether another round would end after the budget.
fn exhausted(plan: &Plan, found: &Found, elapsed: Duration) -> bool {
    let Some(budget) = plan.budget else {
        return false;
    };
    found.rounds >= FEWEST_ROUNDS && elapsed + elapsed / found.rounds as u32 > budget
}

fn progress(plan: &Plan) -> ProgressBar {
    let bar = ProgressBar::new((plan.cells.len() * plan.rounds) as u64);
    let style = ProgressStyle::with_template("{bar:30} {percent:>3} %  {eta:>4} left  {msg}");
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar
}

/// Measures every cell once; `None` when interrupted.
fn round(
    plan: &Plan,
    order: &[usize],
    clock: &Clock,
    interrupt: &Interrupt,
    hogs: &mut Hogs,
    bar: &ProgressBar,
) -> anyhow::Result<Option<(Vec<Share>, f64)>> {
    let mut shares = Vec::with_capacity(order.len());
    for &index in order {
        let cell = plan.cells[index];
        bar.set_message(format!("{} × {}", plan.locks[cell.lock].name, cell.threads));
        hogs.run(cell.hogs);
        let phase = plan.phase_with(cell.threads);
        let Some(measured) = measure(plan, cell, phase, plan.waits, clock, interrupt)? else {
            return Ok(None);
        };
        let pair_ns = match plan.locks[cell.lock].engine {
            Engine::Mutex(engine) if cell.threads == 1 => Some((engine.pair_ns)()),
            _ => None,
        };
        shares.push(Share {
            cell: index,
            seconds: measured.elapsed.as_secs_f64(),
            cpu_ns: measured.cpu_ns as f64,
            waits: merge(&measured.waits),
            operations: measured.operations,
            pair_ns,
        });
        bar.inc(1);
    }
    Ok(Some((shares, floor_pair_ns())))
}

/// The floor is measured in every round, also where it is not among the contenders.
fn floor_pair_ns() -> f64 {
    let floor = locks().into_iter().find(|lock| lock.name == FLOOR);
    match floor.map(|lock| lock.engine) {
        Some(Engine::Mutex(engine)) => (engine.pair_ns)(),
        _ => f64::NAN,
    }
}

/// One histogram a class out of one a thread and class.
fn merge(threads: &[Vec<Waits>]) -> Vec<Waits> {
    let classes = threads.first().map_or(0, Vec::len);
    (0..classes)
        .map(|class| {
            let mut all = Waits::default();
            for thread in threads {
                all.add_thread(&thread[class]);
            }
            all
        })
        .collect()
}

impl Found {
    fn take(&mut self, shares: Vec<Share>, floor: f64, order: Vec<usize>) {
        for share in shares {
            let cell = &mut self.cells[share.cell];
            cell.seconds.push(share.seconds);
            cell.operations.push(share.operations);
            cell.cpu_ns.push(share.cpu_ns);
            cell.pair_ns.extend(share.pair_ns);
            if cell.waits.is_empty() {
                cell.waits = share.waits;
            } else {
                for (all, round) in cell.waits.iter_mut().zip(&share.waits) {
                    all.add_round(round);
                }
            }
        }
        self.floor_ns.push(floor);
        self.order.push(order);
        self.rounds += 1;
    }
}

/// Measures one cell; `None` when interrupted.
fn measure(
    plan: &Plan,
    cell: Cell,
    phase: Duration,
    waits: bool,
    clock: &Clock,
    interrupt: &Interrupt,
) -> anyhow::Result<Option<Measured>> {
    let lock = plan.locks[cell.lock];
    let conditions = Conditions {
        threads: cell.threads,
        placement: &plan.placement,
        phase,
        waits,
        clock,
        interrupt,
    };
    let result = match (lock.engine, plan.settings[cell.setting].job) {
        (Engine::Mutex(engine), Job::Mutex(work)) => (engine.measure)(work, &conditions),
        (Engine::Rw(engine), Job::Rw(mix)) => (engine.measure)(mix, &conditions),
        _ => bail!("{} cannot run this workload", lock.name),
    };
    unspoiled(result, lock.name, cell.threads)
}

/// Sorts what kept a cell from being measured: `None` is an interrupt.
fn unspoiled(
    result: Result<Measured, Spoiled>,
    lock: &str,
    threads: usize,
) -> anyhow::Result<Option<Measured>> {
    match result {
        Ok(measured) => Ok(Some(measured)),
        Err(Spoiled::Interrupted) => Ok(None),
        Err(Spoiled::Threads { made, why }) => {
            bail!("the machine made {made} of {threads} threads: {why}; ask for fewer")
        }
        Err(Spoiled::Broken(what)) => bail!("{lock} with {threads} threads: {what}"),
    }
}

/// Runs every lock that counts once more, counting, so that no other figure pays for it.
fn count_events(
    plan: &Plan,
    found: &mut Found,
    clock: &Clock,
    interrupt: &Interrupt,
    hogs: &mut Hogs,
    bar: &ProgressBar,
) -> anyhow::Result<()> {
    const LONGEST: Duration = Duration::from_millis(50);
    bar.set_message("counting events");
    for (&cell, findings) in plan.cells.iter().zip(&mut found.cells) {
        let lock = plan.locks[cell.lock];
        let conditions = Conditions {
            threads: cell.threads,
            placement: &plan.placement,
            phase: plan.phase_with(cell.threads).min(LONGEST),
            waits: false,
            clock,
            interrupt,
        };
        hogs.run(cell.hogs);
        events::reset();
        let result = match (lock.engine, plan.settings[cell.setting].job) {
            (Engine::Mutex(engine), Job::Mutex(work)) => {
                engine.count.map(|count| count(work, &conditions))
            }
            (Engine::Rw(engine), Job::Rw(mix)) => engine.count.map(|count| count(mix, &conditions)),
            _ => None,
        };
        let Some(result) = result else { continue };
        // The rounds are complete: who stops now misses nothing but counts.
        let Some(measured) = unspoiled(result, lock.name, cell.threads)? else {
            return Ok(());
        };
        findings.events = events::snapshot()
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .map(|(event, count)| (event.name().to_owned(), count))
            .collect();
        findings.events_ops = Some(measured.all_operations);
    }
    Ok(())
}
