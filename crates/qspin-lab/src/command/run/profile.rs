//! What the locks of a run did, for other tools: JSON, pprof's protobuf, folded stacks, Prometheus' text, and a page with
//! flame graphs.
//!
//! Two views of each stack: how long it waited for its lock, and how long others waited for its releases. Both stand in
//! each format that has stacks: as sample types, or as the roots `waits` and `keeps waiting`.

use serde_json::json;

use super::report::{Process, Report};
use super::symbols::{Frame, Maps, Names};
use super::table;

mod folded;
mod pprof;
mod prometheus;

/// How the statistics are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people.
    Table,
    /// For programs, and for `qspin stat --diff`.
    Json,
    /// For `go tool pprof`; needs --stats-out.
    Pprof,
    /// Stacks with nanoseconds, a line each, for flame graphs.
    Folded,
    /// For a scrape by file.
    Prom,
    /// A page with the table and both flame graphs.
    Html,
}

/// A stack of a lock.
struct Sample {
    process: u32,
    lock: String,
    /// The innermost call first; each with the functions that were inlined into it, innermost first.
    calls: Vec<(u64, Vec<Frame>)>,
    waits: u64,
    waited_ns: u64,
    releases: u64,
    delayed_ns: u64,
}

/// A process with what is known of its memory.
struct Named<'a> {
    process: &'a Process,
    map: &'a str,
}

fn named<'a>(report: &'a Report, maps: &'a Maps) -> Vec<Named<'a>> {
    let each = report.processes.iter().filter(|process| process.counts);
    each.map(|process| Named { process, map: table::map_of(process, maps) }).collect()
}

fn samples(named: &Named<'_>) -> Vec<Sample> {
    let mut names = Names::of(named.map);
    let stacks = named.process.stacks.iter().filter(|stack| stack.waits + stack.releases > 0);
    let each = stacks.map(|stack| {
        let lock = names.variable(stack.lock).unwrap_or_else(|| format!("{:#x}", stack.lock));
        Sample {
            process: named.process.number,
            lock,
            calls: stack.frames.iter().map(|call| (*call, names.frames(*call).to_vec())).collect(),
            waits: stack.waits,
            waited_ns: stack.waited_ns,
            releases: stack.releases,
            delayed_ns: stack.delayed_ns,
        }
    });
    each.collect()
}

/// The statistics as this format has them.
///
/// # Errors
/// A flame graph cannot be drawn.
pub(super) fn write(format: Format, report: &Report, maps: &Maps) -> anyhow::Result<Vec<u8>> {
    let all = named(report, maps);
    let samples = || all.iter().flat_map(samples).collect::<Vec<_>>();
    Ok(match format {
        Format::Table => table::text(report, maps).into_bytes(),
        Format::Json => {
            let each = all.iter().map(|named| {
                let mut value = table::json(named.process, named.map, None);
                value["pid"] = json!(named.process.number);
                value
            });
            let value = json!({ "format": FORMAT, "processes": each.collect::<Vec<_>>() });
            format!("{value}\n").into_bytes()
        }
        Format::Pprof => pprof::bytes(&samples()),
        Format::Folded => folded::text(&samples()).into_bytes(),
        Format::Prom => {
            let each = all.iter().map(|named| (named.process, Names::of(named.map)));
            prometheus::text(&each.collect::<Vec<_>>()).into_bytes()
        }
        Format::Html => folded::page(&table::text(report, maps), &samples())?.into_bytes(),
    })
}

/// The first word of a JSON file of statistics.
pub(in crate::command) const FORMAT: &str = "qspin-stats 1";
