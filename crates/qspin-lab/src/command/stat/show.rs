//! Counters as people and as programs read them.

use std::fmt::Write;
use std::time::Duration;

use qspin::events::{Averages, Event};
use qspin_table::{Columns, Table};
use serde_json::{Map, Value, json};

use crate::report::number::{digits, duration, rate};

use super::counters::Reading;
use super::header::Counter;
use super::process::Process;

/// The readings of the look before, and how long ago that was.
pub(super) type Before<'a> = Option<(&'a [Reading], Duration)>;

/// A group now and, where it is watched, in the interval before.
struct Group<'a> {
    now: &'a Reading,
    /// The group at the look before, where it was there.
    before: Option<&'a Reading>,
    interval: Duration,
}

impl<'a> Group<'a> {
    fn all(readings: &'a [Reading], before: Before<'a>) -> impl Iterator<Item = Self> {
        readings.iter().map(move |now| {
            let same = |had: &&Reading| had.identity == now.identity;
            let (before, interval) = match before {
                Some((before, interval)) => (before.iter().find(same), interval),
                None => (None, Duration::ZERO),
            };
            Self { now, before, interval }
        })
    }

    /// What was counted in the interval; `None` where that is not known, as after a reset.
    fn gained(&self, name: &str) -> Option<u64> {
        self.now.count(name).checked_sub(self.before?.count(name))
    }

    fn rate(&self, name: &str) -> Option<f64> {
        Some(self.gained(name)? as f64 / self.interval.as_secs_f64())
    }

    fn averages(&self) -> Averages {
        Averages::of(|event: Event| self.now.count(event.name()))
    }

    fn averages_of_interval(&self) -> Option<Averages> {
        self.before?;
        Some(Averages::of(|event: Event| self.gained(event.name()).unwrap_or(0)))
    }
}

/// A table a group, with the averages under it.
pub(super) fn text(process: &Process, readings: &[Reading], before: Before<'_>) -> String {
    let mut text = String::new();
    for group in Group::all(readings, before) {
        let _ = write!(text, "{process}, group {}", group.now.group);
        if let Some(time) = group.now.counted_for {
            let _ = write!(text, ", counted for {}", duration(time.as_nanos() as f64));
        }
        let _ = writeln!(text, "\n{}", table(&group, before.is_some()));
        let _ = writeln!(text, "averages: {}", averages(&group.averages()));
        if let Some(interval) = group.averages_of_interval() {
            let _ = writeln!(text, "of the last {}: {}", seconds(&group), averages(&interval));
        }
        text.push('\n');
    }
    text
}

fn seconds(group: &Group<'_>) -> String {
    duration(group.interval.as_nanos() as f64)
}

fn table(group: &Group<'_>, watched: bool) -> Table {
    let mut columns = Columns::<(Counter, u64)>::new()
        .text("counter", |(counter, _)| counter.name.clone())
        .text("Linux's name", |(counter, _)| counter.alias.clone().unwrap_or_default())
        .number("count", "", |(_, count)| *count);
    if watched {
        columns =
            columns.number("per second", "", |(counter, _)| group.rate(&counter.name).map(rate));
    }
    columns.table(&group.now.counts)
}

fn averages(averages: &Averages) -> String {
    let Averages { kick_latency_ns, wake_latency_ns, hops_a_hash } = averages;
    format!(
        "kick latency {}, wake latency {}, hops a hash {}",
        kick_latency_ns.map_or_else(none, duration),
        wake_latency_ns.map_or_else(none, duration),
        hops_a_hash.map_or_else(none, digits),
    )
}

fn none() -> String {
    "–".to_owned()
}

/// One line.
pub(super) fn json(process: &Process, readings: &[Reading], before: Before<'_>) -> String {
    let groups: Vec<Value> = Group::all(readings, before).map(|group| json_group(&group)).collect();
    let mut line = json!({ "pid": process.pid, "name": process.name });
    if let Some((_, interval)) = before {
        line["interval_s"] = json!(interval.as_secs_f64());
    }
    line["groups"] = groups.into();
    format!("{line}\n")
}

fn json_group(group: &Group<'_>) -> Value {
    let mut counters = Map::new();
    for (counter, count) in &group.now.counts {
        let mut value = json!({ "alias": counter.alias, "count": count });
        if let Some(rate) = group.rate(&counter.name) {
            value["per_s"] = json!(rate);
        }
        counters.insert(counter.name.clone(), value);
    }
    let mut value = json!({
        "group": group.now.group,
        "counted_for_s": group.now.counted_for.map(|time| time.as_secs_f64()),
        "counters": counters,
        "averages": json_averages(&group.averages()),
    });
    if let Some(interval) = group.averages_of_interval() {
        value["averages_of_interval"] = json_averages(&interval);
    }
    value
}

fn json_averages(averages: &Averages) -> Value {
    let Averages { kick_latency_ns, wake_latency_ns, hops_a_hash } = averages;
    json!({
        "kick_latency_ns": kick_latency_ns,
        "wake_latency_ns": wake_latency_ns,
        "hops_a_hash": hops_a_hash,
    })
}
