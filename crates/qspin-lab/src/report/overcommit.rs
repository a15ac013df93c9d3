//! The table of document 001: what a lock gains over another on a machine that is overcommitted
//! once to four times, for each way to pin the threads.
//!
//! The document measured a fixed amount of work in seconds, so its times are what an operation
//! takes here: wall time over the operations of all threads. *W/o* is the lock that one would have
//! without the change, *W/* the one with it; the difference is (w/o − w/) / w/o.
//!
//! A line compares rows of one run, which were interleaved. The lines of a table may come from
//! several runs, since a run has one way to pin and one overcommitment; a line that was measured
//! more than once is shown as it was measured last.

use std::collections::BTreeMap;

use maud::{Markup, html};
use qspin_table::{Columns, escape};
use serde_json::Value;

use super::Run;
use super::group::{label, load, mark};
use super::number::plural;
use crate::compare::{FEWEST_ROUNDS, compare};
use crate::row::{Machine, Row};

/// The two locks that a table compares, as `native,paravirt`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// Without the change.
    pub without: String,
    /// With it.
    pub with: String,
}

impl Default for Pair {
    fn default() -> Self {
        Self { without: "native".to_owned(), with: "paravirt".to_owned() }
    }
}

impl Pair {
    /// Reads `W/O,W/`.
    ///
    /// # Errors
    ///
    /// What is wrong with `text`, and what would be right.
    pub fn parse(text: &str) -> Result<Self, String> {
        const RIGHT: &str = "write two locks as native,paravirt";
        match text.split(',').map(str::trim).collect::<Vec<_>>()[..] {
            [one, other] if one == other => Err(format!("`{text}` names one lock twice: {RIGHT}")),
            [without, with] if !without.is_empty() && !with.is_empty() => {
                Ok(Self { without: without.to_owned(), with: with.to_owned() })
            }
            _ => Err(format!("`{text}` is no pair of locks: {RIGHT}")),
        }
    }
}

/// The times of one setting.
#[derive(Debug)]
pub struct Table {
    title: String,
    pair: Pair,
    unit: Unit,
    /// By name of the scenario.
    scenarios: BTreeMap<String, BTreeMap<u64, Line>>,
}

/// One degree of overcommitment.
#[derive(Debug, Clone, Copy)]
struct Line {
    hogs: u32,
    without: Time,
    with: Time,
    /// One has clearly the better throughput.
    clear: bool,
}

/// What an operation takes, ns.
#[derive(Debug, Clone, Copy)]
struct Time {
    /// `None` where nothing was done at all.
    mean: Option<f64>,
    std_dev: Option<f64>,
}

impl Time {
    /// Rows of earlier versions have no spread; of these it is the time of the median.
    fn of(row: &Row) -> Self {
        match row.op_ns {
            Some(spread) => Self { mean: Some(spread.mean), std_dev: spread.std_dev },
            None => {
                let median = Some(row.ops_per_s.median).filter(|rate| *rate > 0.0);
                Self { mean: median.map(|rate| 1e9 / rate), std_dev: None }
            }
        }
    }

    fn show(self, unit: Unit) -> String {
        let Some(mean) = self.mean else { return "stood still".to_owned() };
        let mean = mean / unit.ns;
        let decimals = match mean {
            // As published.
            _ if mean < 1e4 => 3,
            _ if mean < 1e6 => 1,
            _ => 0,
        };
        let std_dev = self
            .std_dev
            .map_or_else(|| "–".to_owned(), |std_dev| format!("{:.decimals$}", std_dev / unit.ns));
        format!("{mean:.decimals$} ({std_dev})")
    }
}

impl Line {
    fn of(without: &Row, with: &Row) -> Self {
        Self {
            hogs: with.hogs,
            without: Time::of(without),
            with: Time::of(with),
            clear: compare(with, without).outcome.is_clear(),
        }
    }

    /// The share of the time that is gained.
    fn gain(&self) -> Option<f64> {
        let (without, with) = (self.without.mean?, self.with.mean?);
        (without > 0.0).then(|| (without - with) / without)
    }

    /// The gain in percent, and whether it is clear.
    fn difference(&self) -> Option<String> {
        let mark = if self.clear { "" } else { " ≈" };
        self.gain().map(|gain| format!("{:.1}%{mark}", gain * 100.0))
    }
}

/// One unit a table, so that its columns can be read downwards.
#[derive(Debug, Clone, Copy)]
struct Unit {
    ns: f64,
    name: &'static str,
}

impl Unit {
    /// The largest of which the shortest time is at least one.
    fn of(shortest: f64) -> Self {
        match shortest {
            ns if ns >= 1e6 => Self { ns: 1e6, name: "ms" },
            ns if ns >= 1e3 => Self { ns: 1e3, name: "µs" },
            _ => Self { ns: 1.0, name: "ns" },
        }
    }
}

/// What rows of one table have in common, in words.
fn title(machine: &Machine, row: &Row) -> String {
    let mut parts = load(row, |param| param != "overcommit");
    parts.push(plural(f64::from(row.threads), "thread"));
    let cpus = row.params.get("cpus").and_then(Value::as_f64);
    let cpus = plural(cpus.unwrap_or_else(|| f64::from(machine.cpus)), "CPU");
    let mark = mark(row).map(|mark| format!(", {mark}")).unwrap_or_default();
    format!("{}: {} on {cpus}, {}{mark}", row.workload, parts.join(", "), machine.cpu)
}

/// In words what the scenario of a name is.
fn scenario(name: &str) -> &'static str {
    match name {
        "A" => "each thread has its CPU",
        "B" => "no pinning",
        "C" => "all threads on half of the CPUs",
        _ => "",
    }
}

fn overcommit(row: &Row) -> Option<u64> {
    row.params.get("overcommit").and_then(Value::as_u64)
}

/// The tables of all runs, one a setting, in the order of their first rows.
#[must_use]
pub fn tables(runs: &[Run], pair: &Pair) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    for Run { machine, rows, .. } in runs {
        let named = |name: &str| {
            let name = name.to_owned();
            rows.iter().filter(move |row| label(row) == name)
        };
        for without in named(&pair.without) {
            let Some(times) = overcommit(without) else { continue };
            let Some(with) = named(&pair.with).find(|with| comparable(without, with)) else {
                continue;
            };
            let title = title(machine, without);
            let at = tables.iter().position(|table| table.title == title).unwrap_or_else(|| {
                let (pair, scenarios) = (pair.clone(), BTreeMap::new());
                tables.push(Table { title, pair, unit: Unit::of(0.0), scenarios });
                tables.len() - 1
            });
            let scenario = tables[at].scenarios.entry(without.pin.clone()).or_default();
            scenario.insert(times, Line::of(without, with));
        }
    }
    for table in &mut tables {
        let lines = table.scenarios.values().flat_map(BTreeMap::values);
        let times = lines.flat_map(|line| [line.without.mean, line.with.mean]).flatten();
        table.unit = Unit::of(times.fold(f64::INFINITY, f64::min));
    }
    tables
}

/// Two rows of a run that differ in nothing but the lock.
fn comparable(one: &Row, other: &Row) -> bool {
    let params = |row: &Row| -> Vec<(String, Value)> {
        let params = row.params.iter().filter(|(name, _)| *name != "step");
        params.map(|(name, value)| (name.clone(), value.clone())).collect()
    };
    let key = |row: &Row| (row.kind.clone(), row.workload.clone(), row.pin.clone());
    key(one) == key(other)
        && params(one) == params(other)
        && (one.threads, one.lines, one.hogs) == (other.threads, other.lines, other.hogs)
        && (one.critical_ns, one.outside_ns) == (other.critical_ns, other.outside_ns)
}

impl Table {
    fn heading(&self) -> String {
        format!("W/o {} and W/ {}, overcommitted", self.pair.without, self.pair.with)
    }

    /// What the figures are.
    fn legend(&self) -> String {
        let lines = || self.scenarios.values().flat_map(BTreeMap::values);
        let mut text = format!(
            "Time of an operation of all threads together, {}: the average of the rounds and \
             their standard deviation; less is better. Difference: (w/o − w/) / w/o.",
            self.unit.name
        );
        if lines().any(|line| !line.clear) {
            text += &format!(
                " ≈: no clear difference of the throughputs, or fewer than {FEWEST_ROUNDS} rounds, \
                 which tell nothing apart."
            );
        }
        if lines().any(|line| line.without.std_dev.is_none() || line.with.std_dev.is_none()) {
            text += " (–): a single round, or a row that keeps no spread and shows its median.";
        }
        text
    }

    /// The degrees of overcommitment, and how many hogs made them.
    fn degree(times: u64, line: &Line) -> String {
        match line.hogs {
            0 => format!("{times}x"),
            hogs => format!("{times}x, {}", plural(f64::from(hogs), "hog")),
        }
    }

    /// As Markdown.
    #[must_use]
    pub(super) fn markdown(&self, heading: &str) -> String {
        let mut out = format!(
            "\n{heading} {}\n\n{}\n\n{}\n",
            escape(&self.heading()),
            escape(&self.title),
            self.legend()
        );
        for (name, lines) in &self.scenarios {
            let table = self.block(lines).markdown();
            out += &format!("\n**Scenario {}** ({})\n\n{table}", escape(name), scenario(name));
        }
        out
    }

    /// As a part of the page.
    #[must_use]
    pub(super) fn html(&self) -> Markup {
        html! {
            article.setting.overcommit {
                h3 { (self.heading()) }
                p.setting-name { (self.title) }
                p.sub { (self.legend()) }
                div.pair {
                    @for (name, lines) in &self.scenarios {
                        figure {
                            figcaption { "Scenario " (name) ": " (scenario(name)) }
                            (self.block(lines).html("", &format!("Scenario {name}")))
                        }
                    }
                }
            }
        }
    }

    fn block(&self, lines: &BTreeMap<u64, Line>) -> qspin_table::Table {
        let Self { pair, unit, .. } = self;
        let lines: Vec<(u64, Line)> = lines.iter().map(|(times, line)| (*times, *line)).collect();
        Columns::<(u64, Line)>::new()
            .text("overcommitted", |(times, line)| Self::degree(*times, line))
            .number(&format!("W/o {}, avg (std-dev)", pair.without), "", |(_, line)| {
                line.without.show(*unit)
            })
            .number(&format!("W/ {}, avg (std-dev)", pair.with), "", |(_, line)| {
                line.with.show(*unit)
            })
            .number("Difference", "", |(_, line)| line.difference())
            .table(&lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(line: &Line, unit: Unit) -> [String; 3] {
        let difference = line.difference().unwrap_or_else(|| "–".to_owned());
        [line.without.show(unit), line.with.show(unit), difference]
    }

    fn time(mean: f64, std_dev: f64) -> Time {
        Time { mean: Some(mean), std_dev: Some(std_dev) }
    }

    #[test]
    fn the_published_lines_come_out_as_published() {
        let seconds = Unit { ns: 1.0, name: "s" };
        let published = [
            ((273.270, 1.051), (251.613, 1.155), ["273.270 (1.051)", "251.613 (1.155)", "7.9%"]),
            ((541.343, 57.317), (443.4, 2.832), ["541.343 (57.317)", "443.400 (2.832)", "18.1%"]),
            (
                (1125.027, 5.337),
                (1007.63, 5.707),
                ["1125.027 (5.337)", "1007.630 (5.707)", "10.4%"],
            ),
        ];
        for (without, with, cells) in published {
            let (without, with) = (time(without.0, without.1), time(with.0, with.1));
            let line = Line { hogs: 0, without, with, clear: true };
            assert_eq!(self::cells(&line, seconds), cells);
        }
    }

    #[test]
    fn what_is_not_clear_or_not_there_says_so() {
        let ns = Unit::of(100.0);
        let line =
            Line { hogs: 0, without: time(100.0, 1.0), with: time(110.0, 2.0), clear: false };
        assert_eq!(cells(&line, ns), ["100.000 (1.000)", "110.000 (2.000)", "-10.0% ≈"]);
        let still = Time { mean: None, std_dev: None };
        let line = Line { hogs: 0, without: still, with: time(2e6, 1e5), clear: true };
        assert_eq!(cells(&line, ns), ["stood still", "2000000 (100000)", "–"]);
    }

    #[test]
    fn a_pair_is_two_locks() {
        assert_eq!(Pair::parse("native,paravirt"), Ok(Pair::default()));
        for wrong in ["native", "", ",", "native,", "a,b,c", "a,a", "a, a"] {
            assert!(Pair::parse(wrong).is_err(), "{wrong}");
        }
    }
}
