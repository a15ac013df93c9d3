//! What the charts show: from the rows of a setting to lines. Shared by the page and the picture.

use super::Run;
use super::chart::lines::{Callout, Lines, Point, Series};
use super::chart::ranks::{Rank, Ranks};
use super::group::{Contender, Group};
use super::number::{digits, duration, rate, times};
use crate::row::{Interval, Row};
use crate::verdict::Judgement;

/// Width of a chart beside another one.
pub(super) const HALF: f64 = 430.0;
/// Width of a chart on a phone: narrower than the column, so that its text is not scaled down.
pub(super) const NARROW: f64 = 385.0;
/// Width of a chart that has the page for itself.
pub(super) const FULL: f64 = 900.0;

/// Throughput against threads.
pub(super) fn throughput<'a>(group: &Group<'_>, judgement: &Judgement, width: f64) -> Lines<'a> {
    let stars: &[String] = judgement.all_round.as_ref().map_or(&[], |best| &best.names);
    let mut chart = lines(group, width, |row| {
        let ops = row.ops_per_s;
        Some((ops.median, Some((ops.lo, ops.hi))))
    });
    for series in &mut chart.series {
        series.starred = stars.contains(&series.name);
    }
    "Throughput against threads".clone_into(&mut chart.title);
    chart.axis = operations(width);
    chart.value = rate;
    chart.description = describe(&chart);
    chart.callout = gap(group, judgement, width);
    chart
}

/// The quantity in as many words as there is room for.
fn operations(width: f64) -> &'static str {
    if width > NARROW { "operations a second, all threads together" } else { "operations a second" }
}

/// CPU time an operation against threads.
pub(super) fn cpu_time<'a>(group: &Group<'_>) -> Lines<'a> {
    let mut chart = lines(group, HALF, |row| Some((row.cpu_ns_per_op?, None)));
    "CPU time an operation against threads".clone_into(&mut chart.title);
    chart.axis = "CPU time an operation";
    chart.value = duration;
    chart.description = describe(&chart);
    chart
}

/// Overhead an operation against threads.
pub(super) fn overhead<'a>(group: &Group<'_>) -> Lines<'a> {
    // Clocks are noisy: an overhead a little below nothing is nothing.
    let mut chart = lines(group, HALF, |row| Some((row.overhead_ns_per_op?.max(0.0), None)));
    "Overhead an operation against threads".clone_into(&mut chart.title);
    chart.axis = "wall time an operation beyond the work";
    chart.value = duration;
    chart.description = describe(&chart);
    chart
}

/// A lock and an unlock by one thread alone, cheapest first; `None` where it was not measured.
pub(super) fn uncontended<'a>(run: &Run, group: &Group<'_>) -> Option<Ranks<'a>> {
    let cost = |contender: &Contender<'_>| contender.at(1)?.uncontended_ns;
    let mut ranks = ranks(group, cost);
    ranks.sort_by(rising);
    let floor = group.contenders.iter().find(|contender| contender.lock == "floor");
    let floor = floor
        .and_then(|floor| Some(cost(floor)?.median))
        .or(run.machine.floor_ns)
        .filter(|floor| *floor > 0.0);
    (!ranks.is_empty()).then_some(Ranks {
        title: "Lock and unlock by one thread alone",
        axis: "a lock and an unlock, without contention",
        ranks,
        reference: floor.map(|floor| (floor, "the cheapest pair of instructions that locks")),
        value: duration,
        width: HALF,
    })
}

/// Throughput where only one number of threads was measured, highest first.
pub(super) fn ranking<'a>(group: &Group<'_>, threads: u32, width: f64) -> Ranks<'a> {
    let mut ranks = ranks(group, |contender| Some(contender.at(threads)?.ops_per_s));
    ranks.sort_by(|a, b| rising(b, a));
    Ranks {
        title: "Throughput",
        axis: operations(width),
        ranks,
        reference: None,
        value: rate,
        width,
    }
}

fn ranks(group: &Group<'_>, value: impl Fn(&Contender<'_>) -> Option<Interval>) -> Vec<Rank> {
    let rank = |contender: &Contender<'_>| {
        Some(Rank {
            name: contender.name.clone(),
            family: contender.family,
            own: contender.own,
            value: value(contender)?,
        })
    };
    let locks = group.contenders.iter().filter(|contender| !contender.is_reference());
    locks.filter_map(rank).collect()
}

fn rising(a: &Rank, b: &Rank) -> std::cmp::Ordering {
    let (left, right) = (a.value.median, b.value.median);
    left.total_cmp(&right).then_with(|| a.name.cmp(&b.name))
}

type Value = (f64, Option<(f64, f64)>);

fn lines<'a>(group: &Group<'_>, width: f64, value: fn(&Row) -> Option<Value>) -> Lines<'a> {
    let series = |contender: &Contender<'_>| Series {
        name: contender.name.clone(),
        family: contender.family,
        own: contender.own,
        starred: false,
        points: contender
            .rows
            .iter()
            .filter_map(|row| {
                let (value, interval) = value(row)?;
                Some(Point { threads: row.threads, value, interval })
            })
            .collect(),
    };
    Lines {
        title: String::new(),
        description: String::new(),
        axis: "",
        series: group
            .contenders
            .iter()
            .filter(|contender| !contender.is_reference())
            .map(series)
            .filter(|series| !series.points.is_empty())
            .collect(),
        room: group.room().zip(group.cpus).map(|(room, cpus)| {
            let name = if (room - cpus).abs() < f64::EPSILON {
                super::number::plural(cpus, "CPU")
            } else {
                format!("{} for threads", super::number::plural(room, "CPU"))
            };
            (room, name)
        }),
        callout: None,
        value: digits,
        width,
    }
}

/// The gap of the lock whose collapse the verdict speaks of.
fn gap(group: &Group<'_>, judgement: &Judgement, width: f64) -> Option<Callout> {
    let example = judgement.collapse.as_ref()?.example();
    let ops = |name: &str| {
        let contender = group.contenders.iter().find(|c| c.name == name)?;
        Some(contender.at(example.threads)?.ops_per_s.median)
    };
    let less = format!("{} times less", times(example.than_best));
    Some(Callout {
        threads: example.threads,
        from: ops(example.best.as_deref()?)?,
        to: ops(&example.name)?,
        words: if width > NARROW { format!("{}: {less}", example.name) } else { less },
    })
}

/// What the chart shows, for readers that cannot see it: the values at the largest number of threads.
fn describe(chart: &Lines<'_>) -> String {
    let mut ends: Vec<(&str, Point)> = chart
        .series
        .iter()
        .filter_map(|series| Some((series.name.as_str(), *series.points.last()?)))
        .collect();
    ends.sort_by(|a, b| b.1.value.total_cmp(&a.1.value).then_with(|| a.0.cmp(b.0)));
    let ends: Vec<String> = ends
        .iter()
        .map(|(name, point)| {
            format!("{name} {} with {} threads", (chart.value)(point.value), point.threads)
        })
        .collect();
    format!("The ends of the lines: {}.", ends.join("; "))
}
