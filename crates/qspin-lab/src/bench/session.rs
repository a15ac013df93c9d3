//! A run: rounds of measurements, each round in an order of its own.
//!
//! Only finished rounds count, so that every contender has met the same moments of the machine.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::bail;
use indicatif::{ProgressBar, ProgressStyle};
use quanta::Clock;

use crate::compare::is_too_few;
use crate::contender::catalog::{Engine, FLOOR, locks};
use qspin::events;
use qspin::tuning::{self, Tuning};

use super::cell::{Conditions, Measured, Spoiled};
use super::fairness::{self, Fair};
use super::interrupt::Interrupt;
use super::plan::{Cell, Job, Plan};
use super::surroundings::Surroundings;
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
    /// What the run has shown that was made to see how fair the lock is.
    pub fair: Option<Fair>,
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

    /// CPU time an operation, ns, round by round.
    #[must_use]
    pub fn cpu_ns_per_op(&self) -> Vec<f64> {
        self.cpu_ns.iter().enumerate().map(|(round, ns)| ns / self.total(round)).collect()
    }

    /// Operations a second of all threads, round by round.
    #[must_use]
    pub fn rates(&self) -> Vec<f64> {
        (0..self.seconds.len()).map(|round| self.total(round) / self.seconds[round]).collect()
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
    /// Whether it ended before everything was done: somebody stopped it, or something failed.
    pub partial: bool,
    /// What failed after rounds had been finished.
    pub failure: Option<anyhow::Error>,
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

/// What the first rounds may take, in budgets.
const RESERVE: f64 = 1.2;

/// Measures the whole plan.
///
/// # Errors
///
/// When a lock fails, or the machine cannot make the threads or hogs, in the first round. Later
/// the finished rounds are kept, and the failure with them.
pub fn run(plan: &Plan, interrupt: &Interrupt) -> anyhow::Result<Found> {
    let clock = Clock::new();
    let mut around = Surroundings::start(plan)?;
    let bar = progress(plan);
    let mut found = Found {
        cells: plan.cells.iter().map(|_| Findings::default()).collect(),
        floor_ns: Vec::new(),
        rounds: 0,
        partial: false,
        failure: None,
        order: Vec::new(),
    };
    let began = Instant::now();
    for order in plan.orders() {
        if exhausted(plan, &found, began.elapsed()) {
            break;
        }
        let number = found.rounds;
        match round(plan, number, &order, &clock, interrupt, &mut around, &bar) {
            Ok(Some((shares, floor))) => found.take(shares, floor, order),
            Ok(None) => found.partial = true,
            Err(why) => found.stopped_by(why)?,
        }
        if found.partial {
            break;
        }
    }
    if !found.partial
        && let Err(why) = fairness::run(plan, &mut found, &clock, interrupt, &mut around, &bar)
    {
        found.stopped_by(why)?;
    }
    if !found.partial && !plan.counting.is_zero() {
        around.clear()?;
        if let Err(why) = count_events(plan, &mut found, &clock, interrupt, &mut around, &bar) {
            found.stopped_by(why)?;
        }
    }
    bar.finish_and_clear();
    Ok(found)
}

/// Whether another round would end after the budget; rounds that it takes to have intervals may
/// use the reserve as well.
fn exhausted(plan: &Plan, found: &Found, elapsed: Duration) -> bool {
    let Some(budget) = plan.budget.filter(|_| found.rounds > 0) else {
        return false;
    };
    let end = elapsed + elapsed / found.rounds as u32;
    let reserve = if is_too_few(found.rounds) { budget.mul_f64(RESERVE) } else { budget };
    end > reserve
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
    number: usize,
    order: &[usize],
    clock: &Clock,
    interrupt: &Interrupt,
    around: &mut Surroundings,
    bar: &ProgressBar,
) -> anyhow::Result<Option<(Vec<Share>, f64)>> {
    let mut shares = Vec::with_capacity(order.len());
    for &index in order {
        let cell = plan.cells[index];
        bar.set_message(format!("{} × {}", plan.short_name(cell), cell.threads));
        around.arrange(plan, cell)?;
        let phase = plan.phase_of(cell);
        let job = plan.settings[cell.setting].job.in_round(number);
        let waits = if plan.waits { phase } else { Duration::ZERO };
        let Some(measured) = measure(plan, cell, job, (phase, waits), clock, interrupt)? else {
            return Ok(None);
        };
        let pair_ns = match plan.locks[cell.lock].engine {
            Engine::Mutex(engine) if cell.threads == 1 => {
                let _tuned = InForce::put(cell.variant.tuning);
                Some((engine.pair_ns)())
            }
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
pub(super) fn merge(threads: &[Vec<Waits>]) -> Vec<Waits> {
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
    /// A failure spoils what it met, not the rounds that were finished before it.
    fn stopped_by(&mut self, why: anyhow::Error) -> anyhow::Result<()> {
        if self.rounds == 0 {
            return Err(why);
        }
        (self.partial, self.failure) = (true, Some(why));
        Ok(())
    }

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

/// Puts a tuning in force for as long as it lives, then the default again.
struct InForce;

impl InForce {
    fn put(tuning: &'static Tuning) -> Self {
        tuning::set(tuning);
        Self
    }
}

impl Drop for InForce {
    fn drop(&mut self) {
        tuning::set(&Tuning::DEFAULT);
    }
}

/// Measures one cell; `None` when interrupted.
pub(super) fn measure(
    plan: &Plan,
    cell: Cell,
    job: Job,
    (phase, waits): (Duration, Duration),
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
    let _tuned = InForce::put(cell.variant.tuning);
    let counting = cell.variant.counting;
    let result = match (lock.engine, job) {
        (Engine::Mutex(engine), Job::Mutex(work)) => {
            engine.count.filter(|_| counting).unwrap_or(engine.measure)(work, &conditions)
        }
        (Engine::Rw(engine), Job::Rw(mix)) => {
            engine.count.filter(|_| counting).unwrap_or(engine.measure)(mix, &conditions)
        }
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
    around: &mut Surroundings,
    bar: &ProgressBar,
) -> anyhow::Result<()> {
    bar.set_message("counting events");
    for (&cell, findings) in plan.cells.iter().zip(&mut found.cells) {
        let lock = plan.locks[cell.lock];
        let conditions = Conditions {
            threads: cell.threads,
            placement: &plan.placement,
            phase: plan.phase_of(cell).min(plan.counting),
            waits: Duration::ZERO,
            clock,
            interrupt,
        };
        around.arrange(plan, cell)?;
        let _tuned = InForce::put(cell.variant.tuning);
        events::reset();
        let result = match (lock.engine, plan.settings[cell.setting].job) {
            (Engine::Mutex(engine), Job::Mutex(work)) => {
                engine.count.map(|count| count(work, &conditions))
            }
            (Engine::Rw(engine), Job::Rw(mix)) => engine.count.map(|count| count(mix, &conditions)),
            _ => None,
        };
        let Some(result) = result else { continue };
        let Some(measured) = unspoiled(result, lock.name, cell.threads)? else {
            found.partial = true;
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

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use super::*;
    use crate::bench::affinity::{Pin, Placement};
    use crate::bench::engine::{MutexEngine, MutexWork};
    use crate::bench::plan::{Setting, Variant};
    use crate::bench::surroundings::Beside;
    use crate::bench::workload::lengths::Lengths;

    fn plan() -> Plan {
        let setting = Setting {
            workload: "lengths",
            params: BTreeMap::new(),
            critical_ns: 0.0,
            outside_ns: 0.0,
            lines: 1,
            job: Job::Mutex(MutexWork::Lengths(Lengths { critical: 0, outside: 0, lines: 1 })),
            beside: Beside::default(),
        };
        Plan {
            locks: locks().into_iter().filter(|lock| lock.name == "native").collect(),
            settings: vec![setting],
            cells: vec![Cell {
                lock: 0,
                variant: Variant::default(),
                threads: 1,
                setting: 0,
                hogs: 0,
                shown: true,
            }],
            placement: Placement::new(Pin::B, vec![0]),
            pin: "B".to_owned(),
            rounds: 2,
            phase: Duration::from_millis(1),
            turn: Duration::ZERO,
            waits: true,
            fairness: None,
            cell_by_cell: false,
            counting: Duration::from_millis(1),
            budget: None,
            seed: 1,
        }
    }

    /// The tunables are one for the whole process.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

    fn alone() -> MutexGuard<'static, ()> {
        ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A "measurement" that only says how many are kicked ahead, and whether it counts.
    fn tell<const COUNTING: bool>(_: MutexWork, _: &Conditions<'_>) -> Result<Measured, Spoiled> {
        Err(Spoiled::Broken(format!("{} ahead, {COUNTING}", tuning::get().kick_ahead)))
    }

    #[test]
    fn a_form_is_in_force_while_it_is_measured_and_the_default_after() {
        let _alone = alone();
        let mut plan = plan();
        let Engine::Mutex(engine) = plan.locks[0].engine else { unreachable!("it excludes") };
        let engine = MutexEngine { measure: tell::<false>, count: Some(tell::<true>), ..engine };
        plan.locks[0].engine = Engine::Mutex(engine);
        let ahead: &Tuning = Box::leak(Box::new(Tuning { kick_ahead: 2, ..Tuning::DEFAULT }));
        for (tuning, counting, said) in
            [(ahead, false, "2 ahead, false"), (&Tuning::DEFAULT, true, "0 ahead, true")]
        {
            plan.cells[0].variant = Variant { tuning, counting, step: None };
            let failure = run(&plan, &Interrupt::never()).unwrap_err().to_string();
            assert!(failure.contains(said), "{failure}");
            assert_eq!(*tuning::get(), Tuning::DEFAULT);
        }
    }

    #[test]
    fn who_stops_the_counting_of_events_has_stopped_the_run() {
        let _alone = alone();
        let (plan, interrupt) = (plan(), Interrupt::never());
        let mut found = run(&plan, &interrupt).unwrap();
        assert_eq!((found.rounds, found.partial), (2, false));
        interrupt.raise();
        let (clock, bar) = (Clock::new(), progress(&plan));
        count_events(&plan, &mut found, &clock, &interrupt, &mut Surroundings::default(), &bar)
            .unwrap();
        assert!(found.partial);
    }

    #[test]
    fn a_failure_leaves_the_finished_rounds() {
        let _alone = alone();
        let mut found = run(&plan(), &Interrupt::never()).unwrap();
        found.stopped_by(anyhow::anyhow!("no more threads")).unwrap();
        assert!(found.partial && found.failure.is_some() && found.rounds == 2);
        found.rounds = 0;
        assert!(found.stopped_by(anyhow::anyhow!("no thread at all")).is_err());
    }

    #[test]
    fn a_budget_has_a_reserve_for_the_rounds_that_make_an_interval() {
        let _alone = alone();
        let plan = Plan { budget: Some(Duration::from_secs(40)), ..plan() };
        let mut found = run(&plan, &Interrupt::never()).unwrap();
        let mut after = |rounds, seconds| {
            found.rounds = rounds;
            exhausted(&plan, &found, Duration::from_secs(seconds))
        };
        assert!(!after(0, 0) && !after(5, 40) && !after(8, 35));
        assert!(after(1, 30) && after(5, 41) && after(8, 36));
    }
}
