//! The parts of a sweep become what one computer would have made of all of it.
//!
//! What comes of it is, byte for byte, what `qspin simulate --out` writes without `--shard`, or what `qspin reproduce
//! --json` prints. So a part that is missing, there twice, interrupted, or of something else, is refused.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs;
use std::path::Path;

use serde_json::{Map, Value};

use crate::parts;
use crate::shard::Shard;

/// A part beyond that is none that qspin wrote.
const LARGEST: u64 = 1 << 30;

/// Whether a line of a sweep is a row, and one that was interrupted.
pub type IsPartial = fn(&str) -> serde_json::Result<bool>;

/// What the parts of one whole have in common, and nothing else has.
#[derive(PartialEq)]
enum Of {
    /// `qspin simulate`: a machine row without its shard.
    Sweep(Map<String, Value>),
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

/// The text of the whole whose parts these files are, in any order.
///
/// # Errors
/// What is wrong with the parts, and what would be right.
pub fn merge<P: AsRef<Path>>(files: &[P], is_partial: IsPartial) -> Result<String, String> {
    let mut whole: BTreeMap<u32, Part> = BTreeMap::new();
    for file in files {
        let part = read(file.as_ref(), is_partial)?;
        if let Some(first) = whole.values().next() {
            let same = |it: &Part| (it.shard.of, it.shard.cells, it.shard.plan.clone());
            // SHARD-2: equal but for the number.
            if same(first) != same(&part) || first.of != part.of {
                return Err(format!(
                    "{} and {} are parts of different sweeps: same scenario or tables, options, number of parts \
                     and version of qspin are needed",
                    first.name, part.name
                ));
            }
        }
        let Shard { number, of, .. } = part.shard;
        if let Some(twice) = whole.get(&number) {
            let names = format!("{} and {}", twice.name, part.name);
            return Err(format!("part {number}/{of} is there twice, in {names}: give it once"));
        }
        whole.insert(number, part);
    }
    let Some(first) = whole.values().next() else {
        return Err("no part was given".to_owned());
    };
    let Shard { of, cells, .. } = first.shard;
    if let Some(missing) = (1..=of).find(|number| !whole.contains_key(number)) {
        let left = of as usize - whole.len();
        let more = if left > 1 { format!(" and {} more", left - 1) } else { String::new() };
        let remedy = remedy(&first.of, missing, of);
        return Err(format!("part {missing}/{of}{more} is missing: {remedy}, or name its file"));
    }
    let mut rows = vec![String::new(); cells];
    for part in whole.values() {
        for (number, row) in part.shard.numbers().zip(&part.rows) {
            rows[number].clone_from(row);
        }
    }
    match &first.of {
        Of::Sweep(machine) => {
            let machine = serde_json::to_string(machine).map_err(|error| error.to_string())?;
            Ok([machine].into_iter().chain(rows).map(|line| line + "\n").collect())
        }
        Of::Tables(head) => parts::whole(head, &first.shard, &rows),
    }
}

fn read(path: &Path, is_partial: IsPartial) -> Result<Part, String> {
    let name = path.display().to_string();
    let wrong = |why: &dyn Display| {
        format!(
            "{name}: {why}; name a file that `qspin simulate --shard I/N --out` or `qspin reproduce --shard I/N --out` \
             wrote"
        )
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
        let machine = serde_json::from_str(first).ok();
        let machine = machine.filter(|it: &Map<_, _>| it.get("kind") == Some(&"machine".into()));
        let mut machine = machine.ok_or_else(|| wrong(&"it does not begin with a machine row"))?;
        let shard = machine.shift_remove("shard").and_then(|it| serde_json::from_value(it).ok());
        (Of::Sweep(machine), shard)
    };
    let Some(shard) = shard else {
        return Err(wrong(&"it is no part of a sweep: its machine row has no shard"));
    };
    let Shard { number, of: parts, .. } = shard;
    if number < 1 || number > parts {
        return Err(wrong(&"its first line names no part"));
    }
    let rows: Vec<String> = lines.map(str::to_owned).collect();
    let mut partial = rows.len() != shard.numbers().len();
    for (line, row) in (2..).zip(&rows) {
        partial |= match of {
            Of::Sweep(_) => is_partial(row),
            Of::Tables(_) => parts::check(row).map(|()| false),
        }
        .map_err(|error| wrong(&format!("line {line} is no row: {error}")))?;
    }
    if partial {
        let again = remedy(&of, number, parts);
        return Err(format!(
            "{name}: part {number}/{parts} was not simulated to its end; {again} again"
        ));
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
