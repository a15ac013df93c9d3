//! `qspin report merge`: the parts of a sweep become what one computer would have made of all of it.
//!
//! What is written is, byte for byte, what `qspin simulate --out` writes without `--shard`, or what `qspin reproduce
//! --json` prints. So a part that is missing, there twice, interrupted, or of something else, is refused, and
//! nothing is written.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;

use crate::command::reproduce::parts;
use crate::failure::Failure;
use crate::output::Output;
use crate::row::{Machine, Row};
use crate::shard::Shard;

/// Put the parts of a sweep together, as `qspin simulate --shard` or `qspin reproduce --shard` made them.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Files of all parts, in any order.
    #[arg(required = true, value_name = "PART.jsonl")]
    parts: Vec<PathBuf>,
    /// File for the whole: the rows of `simulate`, the JSON of `reproduce`; without it, the standard output.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// A part beyond that is none that qspin wrote.
const LARGEST: u64 = 1 << 30;

/// What the parts of one whole have in common, and nothing else has.
#[derive(PartialEq)]
enum Of {
    /// `qspin simulate`: a machine row without its shard.
    Sweep(Box<Machine>),
    /// `qspin reproduce`, without the shard.
    Tables(Box<parts::Head>),
}

/// One part, as it was written.
struct Part {
    name: String,
    of: Of,
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
            "{name}: {why}; name a file that `qspin simulate --shard I/N --out` or `qspin reproduce --shard I/N \
             --out` wrote"
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
    let (of, shard) = if let Some(mut head) = parts::Head::parse(first) {
        let shard = head.shard.take();
        (Of::Tables(Box::new(head)), shard)
    } else {
        let mut machine: Machine = serde_json::from_str(first)
            .map_err(|_| wrong(&"it does not begin with a machine row"))?;
        let shard = machine.shard.take().filter(|_| machine.kind == "machine");
        (Of::Sweep(Box::new(machine)), shard)
    };
    let Some(shard) = shard else {
        return Err(wrong(&"it is no part of a sweep: its machine row has no shard"));
    };
    if shard.number < 1 || shard.number > shard.of {
        return Err(wrong(&"its first line names no part"));
    }
    let mut rows = Vec::new();
    for (number, line) in lines.enumerate() {
        let partial = match of {
            Of::Sweep(_) => serde_json::from_str(line).map(|row: Row| row.partial),
            Of::Tables(_) => parts::check(line).map(|()| false),
        };
        if partial.map_err(|error| wrong(&format!("line {} is no row: {error}", number + 2)))? {
            return Err(interrupted(&name, &of, &shard));
        }
        rows.push(line.to_owned());
    }
    if rows.len() != shard.numbers().len() {
        return Err(interrupted(&name, &of, &shard));
    }
    Ok(Part { name, of, shard, rows })
}

/// How to make a part.
fn remedy(of: &Of, number: u32, parts: u32) -> String {
    let command = match of {
        Of::Sweep(_) => "simulate",
        Of::Tables(_) => "reproduce",
    };
    format!("{command} --shard {number}/{parts}")
}

fn interrupted(name: &str, of: &Of, shard: &Shard) -> Failure {
    let (number, parts) = (shard.number, shard.of);
    let again = remedy(of, number, parts);
    Failure::usage(format!(
        "{name}: part {number}/{parts} was not simulated to its end; {again} again"
    ))
}

/// The text of the whole.
fn merge(parts: Vec<Part>) -> Result<String, Failure> {
    let mut whole: BTreeMap<u32, Part> = BTreeMap::new();
    for part in parts {
        if let Some(first) = whole.values().next() {
            let same = |it: &Part| (it.shard.of, it.shard.cells, it.shard.plan.clone());
            // P2: equal but for the number.
            if same(first) != same(&part) || first.of != part.of {
                return Err(Failure::usage(format!(
                    "{} and {} are parts of different sweeps: same scenario or tables, options, number \
                     of parts and version of qspin are needed",
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
            "part {missing}/{of}{more} is missing: {}, or name its file",
            remedy(&first.of, missing, of)
        )));
    }
    let mut rows = vec![String::new(); cells];
    for part in whole.values() {
        for (number, row) in part.shard.numbers().zip(&part.rows) {
            rows[number].clone_from(row);
        }
    }
    match &first.of {
        Of::Sweep(machine) => {
            let machine = serde_json::to_string(machine).context("a machine is no JSON")?;
            Ok([machine].into_iter().chain(rows).map(|line| line + "\n").collect())
        }
        Of::Tables(head) => parts::whole(head, &first.shard, &rows),
    }
}
