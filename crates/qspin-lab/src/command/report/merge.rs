//! `qspin report merge`: the parts of a sweep become what one computer would have made of all of it.
//!
//! What is written is, byte for byte, what `qspin simulate --out` writes without `--shard`. So a part that is
//! missing, there twice, interrupted, or of something else, is refused, and nothing is written.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;

use crate::failure::Failure;
use crate::output::Output;
use crate::row::{Machine, Row};
use crate::shard::Shard;

/// Put the parts of a sweep together, as `qspin simulate --shard` made them.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Files of all parts, in any order.
    #[arg(required = true, value_name = "PART.jsonl")]
    parts: Vec<PathBuf>,
    /// File for the rows of the whole; without it, the standard output.
    #[arg(long, value_name = "FILE.jsonl")]
    out: Option<PathBuf>,
}

/// A part beyond that is none that `qspin simulate` wrote.
const LARGEST: u64 = 1 << 30;

/// One part, as it was written.
struct Part {
    name: String,
    machine: Machine,
    shard: Shard,
    rows: Vec<String>,
}

/// Reads, puts together, and writes; nothing is written where something is wrong.
///
/// # Errors
///
/// What is wrong with the parts, and what would be right.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let out = args.out.as_deref().map(Output::prepare).transpose()?;
    if let Some(out) = &out
        && args.parts.iter().any(|part| part.canonicalize().is_ok_and(|it| it == out.path()))
    {
        return Err(Failure::usage(format!(
            "the whole would replace the part {}; name another file with --out",
            out.path().display()
        )));
    }
    let parts = args.parts.iter().map(|path| read(path)).collect::<Result<Vec<Part>, Failure>>()?;
    let text = merge(parts)?;
    match out {
        Some(out) => {
            let path = out.path().to_owned();
            out.finish(&text)?;
            crate::command::tell(&format!("wrote {}", path.display()));
        }
        None => crate::command::say(&text)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> Result<Part, Failure> {
    let name = path.display().to_string();
    let wrong = |why: &dyn std::fmt::Display| {
        Failure::usage(format!(
            "{name}: {why}; name a file that `qspin simulate --shard I/N --out` wrote"
        ))
    };
    let about = fs::metadata(path).map_err(|error| wrong(&error.kind()))?;
    if !about.is_file() || about.len() > LARGEST {
        return Err(wrong(&"it is no file of at most 1 GiB"));
    }
    let text = fs::read_to_string(path).map_err(|error| wrong(&error.kind()))?;
    if !text.is_empty() && !text.ends_with('\n') {
        return Err(wrong(&"the last line is torn"));
    }
    let mut lines = text.lines();
    let first = lines.next().ok_or_else(|| wrong(&"it is empty"))?;
    let mut machine: Machine =
        serde_json::from_str(first).map_err(|_| wrong(&"it does not begin with a machine row"))?;
    let Some(shard) = machine.shard.take() else {
        return Err(wrong(&"it is no part of a sweep: its machine row has no shard"));
    };
    if machine.kind != "machine" || shard.number < 1 || shard.number > shard.of {
        return Err(wrong(&"its machine row is none"));
    }
    let mut rows = Vec::new();
    for (number, line) in lines.enumerate() {
        let row: Row = serde_json::from_str(line)
            .map_err(|error| wrong(&format!("line {} is no row: {error}", number + 2)))?;
        if row.partial {
            return Err(interrupted(&name, &shard));
        }
        rows.push(line.to_owned());
    }
    if rows.len() != shard.numbers().len() {
        return Err(interrupted(&name, &shard));
    }
    Ok(Part { name, machine, shard, rows })
}

fn interrupted(name: &str, shard: &Shard) -> Failure {
    let Shard { number, of, .. } = shard;
    Failure::usage(format!(
        "{name}: part {number}/{of} was not simulated to its end; simulate --shard {number}/{of} again"
    ))
}

/// The text of the whole.
fn merge(parts: Vec<Part>) -> Result<String, Failure> {
    let mut whole: BTreeMap<u32, Part> = BTreeMap::new();
    for part in parts {
        if let Some(first) = whole.values().next() {
            let same = |it: &Part| (it.shard.of, it.shard.cells, it.shard.plan.clone());
            // P2: equal but for the number.
            if same(first) != same(&part) || first.machine != part.machine {
                return Err(Failure::usage(format!(
                    "{} and {} are parts of different sweeps: same scenario, options, number of parts and \
                     version of qspin are needed",
                    first.name, part.name
                )));
            }
        }
        let Shard { number, of, .. } = part.shard;
        if let Some(twice) = whole.get(&number) {
            let names = format!("{} and {}", twice.name, part.name);
            return Err(Failure::usage(format!(
                "part {number}/{of} is there twice, in {names}: give it once"
            )));
        }
        whole.insert(number, part);
    }
    let Some(first) = whole.values().next() else {
        return Err(Failure::usage("no part was given"));
    };
    let Shard { of, cells, .. } = first.shard;
    if let Some(missing) = (1..=of).find(|number| !whole.contains_key(number)) {
        let left = of as usize - whole.len();
        let more = if left > 1 { format!(" and {} more", left - 1) } else { String::new() };
        return Err(Failure::usage(format!(
            "part {missing}/{of}{more} is missing: simulate --shard {missing}/{of}, or name its file"
        )));
    }
    let machine = serde_json::to_string(&first.machine).context("a machine is no JSON")?;
    let mut rows = vec![String::new(); cells];
    for part in whole.into_values() {
        for (number, row) in part.shard.numbers().zip(part.rows) {
            rows[number] = row;
        }
    }
    Ok([machine].into_iter().chain(rows).map(|line| line + "\n").collect())
}
