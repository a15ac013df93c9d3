//! Whole matrices and random loads, simulated blindly: judged by [`crate::bench::blind`].
//!
//! # Model
//! Nothing is fitted: the machine is described by its measured transfers, and a row says all that is simulated of its
//! load. Loads that the simulator has no words for (a quota, holders that leave their CPU, loads that change) and locks
//! that it does not have are left out, and counted.

use std::collections::BTreeMap;
use std::fmt::Write;

use qspin_sim::batch::{self, Job};
use qspin_sim::workload::{Lengths, ReadersWriters, Spread, Workload as Work};
use qspin_sim::{Lock, Outcome, Scenario};
use qspin_table::{Columns, fixed};
use serde_json::Value;

use super::{Args, Entrant, Simulator, knows_one};
use crate::bench::blind::{GOOD, Point, Score, score};
use crate::bench::interrupt::Interrupt;
use crate::bench::stats::median;
use crate::failure::Failure;
use crate::row::Row;

/// Runs of each cell: there are many cells.
const SEEDS: u64 = 3;

impl Simulator {
    /// The simulator for many cells, where it was asked for; it measures the machine first.
    pub(in crate::command::bench) fn of_many(
        args: &Args,
        entrants: &[Entrant],
    ) -> Result<Option<Self>, Failure> {
        let Some(machine) = &args.compare_simulated else { return Ok(None) };
        if let Some((option, _)) = args.tunes().first() {
            return Err(Failure::usage(format!(
                "--compare-simulated simulates many cells with default tunables: leave out {option}"
            )));
        }
        knows_one(entrants)?;
        Self::of(machine, args).map(Some)
    }

    /// What the simulation of these cells is worth, against the rows that were measured.
    pub(in crate::command::bench) fn judge(
        &self,
        cells: &[Vec<&Row>],
        interrupt: &Interrupt,
    ) -> Result<String, Failure> {
        let mut left_out: BTreeMap<String, usize> = BTreeMap::new();
        let mut simulated: Vec<(usize, &Row, Scenario)> = Vec::new();
        for (cell, row) in
            cells.iter().enumerate().flat_map(|(it, of)| of.iter().map(move |row| (it, *row)))
        {
            match self.scenario_of(row) {
                Ok(scenario) => simulated.push((cell, row, scenario)),
                Err(why) => *left_out.entry(why).or_default() += 1,
            }
        }
        if let Some(wrong) = simulated.iter().find_map(|(_, _, scenario)| scenario.check().err()) {
            return Err(Failure::usage(format!("--compare-simulated: {wrong}")));
        }
        let jobs: Vec<Job> = simulated
            .iter()
            .flat_map(|(_, _, scenario)| (1..=SEEDS).map(move |seed| (scenario.clone(), seed)))
            .collect();
        let bar = crate::command::bar(jobs.len() as u64, "SIMULATED ");
        let ended = batch::run_until(
            &jobs,
            || interrupt.is_raised(),
            |_, _| {
                bar.inc(1);
                true
            },
        );
        bar.finish_and_clear();
        if interrupt.is_raised() {
            return Ok("\nSIMULATED beside measured: interrupted\n".to_owned());
        }
        let mut points = Vec::new();
        for ((cell, row, scenario), runs) in simulated.iter().zip(ended.chunks(SEEDS as usize)) {
            let rates: Result<Vec<f64>, _> = runs
                .iter()
                .flatten()
                .map(|it| it.as_ref().map(|it: &Outcome| it.throughput))
                .collect();
            let mut rates = rates.map_err(|why| {
                anyhow::anyhow!("SIMULATED: the lock {} fails: {why}", scenario.lock.name())
            })?;
            let (measured, simulated) = (row.ops_per_s.median, median(&mut rates) * 1e6);
            if measured > 0.0 && simulated > 0.0 {
                let point = Point { cell: *cell, lock: &row.lock, measured, simulated };
                points.push((row.threads <= self.machine.shape.processors(), point));
            } else {
                *left_out.entry("nothing was done in the time".to_owned()).or_default() += 1;
            }
        }
        Ok(format!(
            "\nSIMULATED beside measured, blindly: {}; seeds 1 to {SEEDS}\n{}",
            self.machine.name,
            text(&points, &left_out)
        ))
    }

    /// The row as a scenario, or why it is none.
    fn scenario_of(&self, row: &Row) -> Result<Scenario, String> {
        let lock = Lock::named(&row.lock).map_err(|_| "a lock that is not simulated".to_owned())?;
        let (inside_ns, outside_ns) = (row.critical_ns, row.outside_ns);
        let number = |name: &str| row.params.get(name).and_then(Value::as_u64).map(|it| it as u32);
        for (name, what) in [
            ("quota", "a quota of CPU time"),
            ("holder", "holders that leave their CPU"),
            ("then_critical_ns", "a load that changes"),
        ] {
            if row.params.contains_key(name) {
                return Err(what.to_owned());
            }
        }
        let spread = match row.params.get("lengths").and_then(Value::as_str) {
            None => Spread::Fixed,
            Some("exponential") => Spread::Exponential,
            Some("tailed") => Spread::Tailed,
            Some(other) => return Err(format!("lengths that are {other}")),
        };
        let locks = number("locks").unwrap_or(1);
        let work = match (row.workload.as_str(), number("readers"), number("writers")) {
            ("rw", Some(readers), Some(writers)) if spread == Spread::Fixed && locks == 1 => {
                let written = f64::from(writers) / f64::from((readers + writers).max(1));
                Work::ReadersWriters(ReadersWriters { inside_ns, outside_ns, written })
            }
            ("rw", ..) => return Err("readers and writers of several locks or lengths".to_owned()),
            ("lengths", ..) => {
                Work::Lengths(Lengths { inside_ns, outside_ns, spread, locks, writes: row.lines })
            }
            (other, ..) => return Err(format!("the workload {other}")),
        };
        // Threads of the process that spin are tasks as others are.
        let hogs = row.hogs + number("hogs_inside").unwrap_or(0);
        Ok(self.around(lock, row.threads, hogs, work))
    }
}

/// Cells in the order in which they were measured: rows that differ in nothing but the lock.
pub(in crate::command::bench) fn by_cell(rows: &[Row]) -> Vec<Vec<&Row>> {
    let same = |one: &Row, other: &Row| {
        let of = |row: &Row| (row.threads, row.hogs, row.lines);
        (one.critical_ns, one.outside_ns) == (other.critical_ns, other.outside_ns)
            && of(one) == of(other)
            && one.workload == other.workload
            && one.params == other.params
    };
    rows.chunk_by(same).map(|of| of.iter().collect()).collect()
}

fn text(points: &[(bool, Point<'_>)], left_out: &BTreeMap<String, usize>) -> String {
    let of = |wanted: Option<bool>| {
        let some = points.iter().filter(|(fits, _)| wanted.is_none_or(|wanted| wanted == *fits));
        score(&some.map(|(_, point)| *point).collect::<Vec<_>>())
    };
    let lines: Vec<(&str, Score)> = [
        ("a CPU for each thread", Some(true)),
        ("more threads than CPUs", Some(false)),
        ("all", None),
    ]
    .into_iter()
    .filter_map(|(name, wanted)| Some((name, of(wanted)?)))
    .collect();
    if lines.is_empty() {
        return "no row could be simulated\n".to_owned();
    }
    let percent = |share: f64| format!("{:.1}", share * 100.0);
    let none = || "–".to_owned();
    let whole = |share: Option<f64>| share.map_or_else(none, |it| format!("{:.0}", it * 100.0));
    let rank = |figure: Option<f64>| figure.map_or_else(none, |it| format!("{it:.2}"));
    let columns = Columns::<(&str, Score)>::new()
        .text("threads", |(name, _)| (*name).to_owned())
        .number("cells", "", |(_, it)| it.cells.to_string())
        .number("figures", "", |(_, it)| it.points.to_string())
        .number("mean\nerror", "%", move |(_, it)| percent(it.mean_error))
        .number("median\nerror", "%", move |(_, it)| percent(it.median_error))
        .number("rank\nin a cell", "", move |(_, it)| rank(it.rank_in_cells))
        .number("rank\nof all", "", move |(_, it)| rank(it.rank_of_all))
        .number("chosen\nwell", "%", move |(_, it)| whole(it.chosen))
        .number("always\none lock", "%", move |(_, it)| {
            let constant = it.constant.as_ref();
            constant.map_or_else(none, |(lock, share)| format!("{:.0} {lock}", share * 100.0))
        })
        .number("drawn", "%", move |(_, it)| whole(it.drawn));
    let mut text = format!("{}\n", columns.table(&lines));
    let _ = writeln!(
        text,
        "chosen well: cells in which the lock that is simulated to be best has {:.0} % of the best measured throughput of \
         those simulated; beside it the lock that is that most often, and a lock that is drawn",
        GOOD * 100.0
    );
    let mut locks: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (_, point) in points {
        locks.entry(point.lock).or_default().push(point.ratio());
    }
    let locks: Vec<(&str, f64, usize)> = locks
        .into_iter()
        .map(|(lock, mut ratios)| (lock, median(&mut ratios), ratios.len()))
        .collect();
    let columns = Columns::<(&str, f64, usize)>::new()
        .text("lock", |(lock, ..)| (*lock).to_owned())
        .number("figures", "", |(.., count)| count.to_string())
        .number("SIMULATED /\nmeasured, median", "", |(_, ratio, _)| fixed(*ratio, 2));
    let _ = write!(text, "\n{}\n", columns.table(&locks));
    for (why, count) in left_out {
        let _ = writeln!(text, "left out: {count} with {why}");
    }
    text
}
