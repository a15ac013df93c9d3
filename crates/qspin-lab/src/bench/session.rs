//! A run: rounds of measurements, each round in an order of its own.
//!
//! Only finished rounds count, so that every contender has met the same moments of the machine.

use std::time::{Duration, Instant};

use crate::compare::is_too_few;
use crate::contender::catalog::{Engine, FLOOR, locks};
use qspin::events;

use super::fairness;
use super::found::{Found, Share};
use super::interrupt::Interrupt;
use super::plan::Plan;
use super::stand::{InForce, Stand};
use super::waits::merge;

/// What the first rounds may take, in budgets.
const RESERVE: f64 = 1.2;

/// Measures the whole plan.
/// Fails when a lock fails, or the machine cannot make the threads or hogs, in the first round. Later
/// the finished rounds are kept, and the failure with them.
pub fn run(plan: &Plan, interrupt: &Interrupt) -> anyhow::Result<Found> {
    let mut stand = Stand::new(plan, interrupt)?;
    stand.expect(plan.cells.len() * plan.rounds);
    let mut found = Found::nothing(plan.cells.len());
    let began = Instant::now();
    for order in plan.orders() {
        if exhausted(plan, &found, began.elapsed()) {
            break;
        }
        if plan.is_undisturbed() {
            found.distances.measure(plan.placement.all());
        }
        match round(plan, found.rounds, &order, &mut stand) {
            Ok(Some((shares, floor))) => found.take(shares, floor, order),
            Ok(None) => found.partial = true,
            Err(why) => found.stopped_by(why)?,
        }
        if found.partial {
            break;
        }
    }
    if !found.partial
        && let Err(why) = fairness::run(plan, &mut found, &mut stand)
    {
        found.stopped_by(why)?;
    }
    if !found.partial && !plan.counting.is_zero() {
        stand.clear()?;
        if let Err(why) = count_events(plan, &mut found, &mut stand) {
            found.stopped_by(why)?;
        }
    }
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

/// Measures every cell once; `None` when interrupted.
fn round(
    plan: &Plan,
    number: usize,
    order: &[usize],
    stand: &mut Stand<'_>,
) -> anyhow::Result<Option<(Vec<Share>, f64)>> {
    let mut shares = Vec::with_capacity(order.len());
    for &index in order {
        let cell = plan.cells[index];
        stand.say("", cell);
        let phase = plan.phase_of(cell);
        let job = plan.settings[cell.setting].job.in_round(number);
        let phases = (phase, if plan.waits { phase } else { Duration::ZERO });
        let Some(measured) = stand.measure(cell, job, phases, cell.variant.counting)? else {
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

/// Runs every lock that counts once more, counting, so that no other figure pays for it.
fn count_events(plan: &Plan, found: &mut Found, stand: &mut Stand<'_>) -> anyhow::Result<()> {
    for (&cell, findings) in plan.cells.iter().zip(&mut found.cells) {
        if !plan.locks[cell.lock].counts() {
            continue;
        }
        stand.say("events of ", cell);
        events::reset();
        let phases = (plan.phase_of(cell).min(plan.counting), Duration::ZERO);
        let job = plan.settings[cell.setting].job;
        let Some(measured) = stand.measure(cell, job, phases, true)? else {
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

    use std::collections::BTreeMap;

    use qspin::tuning::{self, Tuning};

    use super::*;
    use crate::bench::affinity::{Pin, Placement};
    use crate::bench::cell::{Conditions, Measured, Spoiled};
    use crate::bench::engine::{MutexEngine, MutexWork};
    use crate::bench::plan::{Beside, Cell, Job, Setting, Variant};
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
            plan.cells[0].variant = Variant { tuning, counting, ..Variant::default() };
            let failure = run(&plan, &Interrupt::never()).unwrap_err().to_string();
            assert!(failure.contains(said), "{failure}");
            assert_eq!(*tuning::get(), Tuning::DEFAULT);
        }
    }

    #[test]
    fn stopping_the_counting_of_events_stops_the_run() {
        let _alone = alone();
        let (plan, interrupt) = (plan(), Interrupt::never());
        let mut found = run(&plan, &interrupt).unwrap();
        assert_eq!((found.rounds, found.partial), (2, false));
        interrupt.raise();
        count_events(&plan, &mut found, &mut Stand::new(&plan, &interrupt).unwrap()).unwrap();
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
