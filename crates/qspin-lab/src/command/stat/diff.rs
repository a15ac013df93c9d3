//! Two files of statistics, side by side: what has changed.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use qspin_table::{Columns, fixed};
use serde_json::Value;

use crate::command::run::FORMAT;
use crate::failure::Failure;

/// A lock of a file.
#[derive(Debug, Clone, Default, PartialEq)]
struct Lock {
    acquisitions: f64,
    contended: f64,
    wait_ns: f64,
}

/// Of both files, by the lock's name.
struct Row {
    name: String,
    old: Lock,
    new: Lock,
}

/// Shows what has changed from one file to the other, the lock first whose waits have changed most.
///
/// # Errors
/// A file that is none of `qspin run --stats=json`.
pub(super) fn run(old: &Path, new: &Path) -> Result<ExitCode, Failure> {
    let [old, new] = [read(old)?, read(new)?];
    crate::command::say(&text(old, new))?;
    Ok(ExitCode::SUCCESS)
}

fn text(mut old: BTreeMap<String, Lock>, new: BTreeMap<String, Lock>) -> String {
    let mut rows: Vec<Row> = new
        .into_iter()
        .map(|(name, new)| Row { old: old.remove(&name).unwrap_or_default(), name, new })
        .collect();
    rows.extend(old.into_iter().map(|(name, old)| Row { name, old, new: Lock::default() }));
    rows.sort_by(|a, b| {
        let change = |row: &Row| (row.new.wait_ns - row.old.wait_ns).abs();
        change(b).total_cmp(&change(a))
    });
    let ms = |ns: f64| fixed(ns / 1e6, 1);
    let share = |lock: &Lock| fixed(100.0 * lock.contended / lock.acquisitions.max(1.0), 2);
    let table = Columns::<Row>::new()
        .text("lock", |row| row.name.clone())
        .number("acquisitions", "old", |row| row.old.acquisitions as u64)
        .number("acquisitions", "new", |row| row.new.acquisitions as u64)
        .number("contended", "old %", move |row| share(&row.old))
        .number("contended", "new %", move |row| share(&row.new))
        .number("waited", "old ms", move |row| ms(row.old.wait_ns))
        .number("waited", "new ms", move |row| ms(row.new.wait_ns))
        .number("change", "ms", move |row| ms(row.new.wait_ns - row.old.wait_ns))
        .table(&rows);
    format!("{table}\n")
}

fn read(path: &Path) -> Result<BTreeMap<String, Lock>, Failure> {
    let wrong = |why: &str| {
        Failure::usage(format!(
            "{} {why}: give a file that `qspin run --stats=json --stats-out FILE` wrote",
            path.display()
        ))
    };
    let text =
        std::fs::read_to_string(path).map_err(|why| wrong(&format!("cannot be read ({why})")))?;
    let value: Value = serde_json::from_str(&text).map_err(|_| wrong("is no JSON"))?;
    if value["format"] != FORMAT {
        return Err(wrong("is no file of statistics"));
    }
    let mut locks = BTreeMap::<String, Lock>::new();
    let processes = value["processes"].as_array().into_iter().flatten();
    for lock in processes.flat_map(|process| process["locks"].as_array().into_iter().flatten()) {
        // An address is another one in another run: a lock without a name is known by where it is used.
        let name = lock["name"].as_str().filter(|name| !name.starts_with("0x"));
        let name = name.or(lock["where"].as_str()).unwrap_or("others");
        let number = |field: &str| lock[field].as_f64().unwrap_or(0.0);
        let sum = locks.entry(name.to_owned()).or_default();
        sum.acquisitions += number("acquisitions");
        sum.contended += number("contended");
        sum.wait_ns += number("wait_ns");
    }
    Ok(locks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_that_has_changed_most_comes_first_and_one_that_is_gone_is_shown() {
        let lock = |wait_ns| Lock { acquisitions: 10.0, contended: 1.0, wait_ns };
        let old = BTreeMap::from([("a".to_owned(), lock(5e6)), ("gone".to_owned(), lock(1e6))]);
        let new = BTreeMap::from([("a".to_owned(), lock(6e6)), ("b".to_owned(), lock(9e6))]);
        let text = text(old, new);
        let place =
            |name: &str| text.find(&format!("\n {name} ")).unwrap_or_else(|| panic!("{text}"));
        assert!(place("b") < place("a") && place("b") < place("gone"), "{text}");
        assert!(text.contains("-1.0"), "{text}");
    }

    #[test]
    fn what_is_no_file_of_statistics_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for text in ["", "{}", "nonsense", "{\"format\": \"other\"}"] {
            std::fs::write(file.path(), text).unwrap();
            assert!(matches!(read(file.path()), Err(Failure::Usage(_))), "{text}");
        }
    }
}
