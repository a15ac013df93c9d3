//! The tables in `data/published/` are what the documents print.
//!
//! The documents are not part of the project, so a test cannot compare with them. It compares with
//! `checksums.csv`, whose numbers come from a second transcription that was made without looking at
//! the first; and with what the documents say twice: speedups beside the two columns they come
//! from, and times that are the "after" of one patch and the "before" of the next.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use qspin_reproduce::published::{self, Ratio, Row, Table};

fn directory() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/published"))
}

fn table(name: &str) -> Table {
    published::table(name).unwrap_or_else(|error| panic!("{error}"))
}

fn tables() -> impl Iterator<Item = Table> {
    published::names().map(table)
}

/// What `checksums.csv` says of a row.
#[derive(Debug, Clone, PartialEq)]
struct RowSum {
    labels: String,
    numbers: usize,
    /// The plain sum, and the sum in which the n-th column counts n times: it notices two cells of a
    /// row that changed places. `None` for a row without numbers.
    sums: Option<(f64, f64)>,
}

/// What `checksums.csv` says of a table.
#[derive(Debug, Clone, PartialEq, Default)]
struct Checksum {
    rows: usize,
    cells: usize,
    sums: Vec<RowSum>,
}

fn checksums() -> BTreeMap<String, Checksum> {
    let mut reader = csv::Reader::from_path(directory().join("checksums.csv")).expect("is there");
    let header = ["table", "rows", "cells", "row", "numbers", "sum", "weighted sum"];
    assert_eq!(reader.headers().expect("a header"), header.as_slice());
    let mut tables = BTreeMap::<String, Checksum>::new();
    for record in reader.records() {
        let record = record.expect("a row of CSV");
        let count = |field: usize| record[field].parse::<usize>().expect("a count");
        let sum = |field: usize| record[field].parse::<f64>().expect("a sum");
        let table = tables.entry(record[0].to_string()).or_default();
        // Both stand on every line of a table; if they differed, one of them would be wrong below.
        assert!(table.sums.is_empty() || (table.rows, table.cells) == (count(1), count(2)));
        (table.rows, table.cells) = (count(1), count(2));
        table.sums.push(RowSum {
            labels: record[3].to_string(),
            numbers: count(4),
            sums: if count(4) == 0 { None } else { Some((sum(5), sum(6))) },
        });
    }
    tables
}

/// What differs between a table and its checksum; nothing if they agree.
fn differences(table: &Table, checksum: &Checksum) -> Vec<String> {
    let numbers = |row: &Row| row.cells.iter().flatten().count();
    let mut found = Vec::new();
    if table.rows.len() != checksum.rows || checksum.sums.len() != checksum.rows {
        found.push(format!("{} rows, {} expected", table.rows.len(), checksum.rows));
    }
    let cells = table.rows.iter().map(numbers).sum::<usize>();
    if cells != checksum.cells {
        found.push(format!("{cells} cells, {} expected", checksum.cells));
    }
    for (row, expected) in table.rows.iter().zip(&checksum.sums) {
        let labels = row.labels.join(" / ");
        let place = format!("{}.csv:{}", table.name, row.line);
        if labels != expected.labels {
            found.push(format!("{place}: row '{labels}', expected '{}'", expected.labels));
        }
        if numbers(row) != expected.numbers {
            found.push(format!("{place}: {} numbers, {} expected", numbers(row), expected.numbers));
        }
        let Some((sum, weighted)) = expected.sums else { continue };
        let cells = || row.cells.iter().zip(1_u32..).filter_map(|(cell, n)| Some(((*cell)?, n)));
        let is = cells().map(|(cell, _)| cell).sum::<f64>();
        let is_weighted = cells().map(|(cell, n)| cell * f64::from(n)).sum::<f64>();
        // A hundredth of the last digit that any document prints.
        for (is, expected) in [(is, sum), (is_weighted, weighted)] {
            if (is - expected).abs() > 1e-5 {
                found.push(format!("{place}: sum {is}, {expected} expected"));
            }
        }
    }
    found
}

#[test]
fn every_table_agrees_with_its_checksum() {
    let checksums = checksums();
    for table in tables() {
        let none: Vec<String> = Vec::new();
        assert_eq!(differences(&table, &checksums[&table.name]), none);
    }
}

/// A check that notices nothing would be passed by every table.
#[test]
fn a_checksum_notices_one_digit_two_swapped_cells_a_lost_row_and_a_wrong_label() {
    let checksums = checksums();
    for table in tables() {
        let checksum = &checksums[&table.name];
        let noticed = |what: &str, change: &mut dyn FnMut(&mut Table)| {
            let mut wrong = table.clone();
            change(&mut wrong);
            let same = wrong.rows == table.rows;
            assert!(same || !differences(&wrong, checksum).is_empty(), "{}: {what}", table.name);
        };
        for row in 0..table.rows.len() {
            noticed("a lost row", &mut |wrong| drop(wrong.rows.remove(row)));
            noticed("a label", &mut |wrong| wrong.rows[row].labels[0].push('0'));
            for column in 0..table.columns.len() {
                noticed("a digit", &mut |wrong| {
                    if let Some(cell) = &mut wrong.rows[row].cells[column] {
                        *cell += 0.001;
                    }
                });
                noticed("a lost cell", &mut |wrong| wrong.rows[row].cells[column] = None);
                for other in 0..column {
                    noticed("swapped cells", &mut |wrong| {
                        wrong.rows[row].cells.swap(column, other)
                    });
                }
            }
        }
    }
}

/// A table that only lies in the directory, or is only embedded, summed or described, is lost.
#[test]
fn directory_program_checksums_and_readme_know_the_same_tables() {
    let embedded: BTreeSet<String> = published::names().map(str::to_string).collect();
    let in_directory: BTreeSet<String> = std::fs::read_dir(directory())
        .expect("is there")
        .map(|entry| entry.expect("can be read").file_name().into_string().expect("is UTF-8"))
        .filter_map(|file| file.strip_suffix(".csv").map(str::to_string))
        .filter(|name| name != "checksums")
        .collect();
    assert_eq!(in_directory, embedded);
    assert_eq!(checksums().into_keys().collect::<BTreeSet<_>>(), embedded);
    let readme = std::fs::read_to_string(directory().join("README.md")).expect("is there");
    let described: BTreeSet<String> = readme
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` |"))
        .filter(|(name, _)| name.starts_with(|first: char| first.is_ascii_digit()))
        .map(|(name, _)| name.to_string())
        .collect();
    assert_eq!(described, embedded);
}

#[test]
fn what_is_embedded_is_what_lies_in_the_directory() {
    for table in tables() {
        let path = directory().join(format!("{}.csv", table.name));
        let read = Table::read(&path).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(read, table);
    }
}

#[test]
fn an_unknown_name_is_no_table() {
    let error = published::table("002-locktortures").expect_err("no table").to_string();
    let wanted = "002-locktortures: is no published table; there are: 000-haswell, ";
    assert!(error.starts_with(wanted), "{error}");
}

/// Document 002 prints the quotients of means that it had with more digits than it prints.
#[test]
fn printed_speedups_follow_from_their_columns() {
    let half = 0.0005 + 1e-9;
    let mut checked = 0;
    for table in tables().filter(|table| table.name.starts_with("002")) {
        let Ratio::Columns(quotients) = &table.ratio else { continue };
        for row in &table.rows {
            for quotient in quotients {
                let cell = |column: usize| row.cells[column].expect("no cell is missing");
                let (new, old) = (cell(quotient.new), cell(quotient.old));
                let printed = cell(quotient.printed.expect("is printed"));
                let least = (new - half) / (old + half) - half;
                let most = (new + half) / (old - half) + half;
                assert!((least..=most).contains(&printed), "{}.csv:{}", table.name, row.line);
                checked += 1;
            }
        }
    }
    assert_eq!(checked, 40 * 2 + 11 * 2 + 8, "quotients in document 002");
}

/// Document 001 prints what was gained, rounded to one decimal or cut after the second.
#[test]
fn printed_differences_follow_from_their_columns() {
    for name in ["001-A", "001-B", "001-C"] {
        let table = table(name);
        let printed = table.column("difference %").expect("is there");
        for row in &table.rows {
            let [(_, ratio)] = table.ratios(row)[..] else { panic!("{name}: one ratio a row") };
            let difference = (1.0 - ratio) * 100.0;
            let off = difference - row.cells[printed].expect("is printed");
            let allowed = if name == "001-A" { -0.05..=0.05 } else { -0.0005..=0.01 };
            assert!(allowed.contains(&off), "{name}.csv:{}: off by {off}", row.line);
        }
    }
}

/// The patches of document 000 are cumulative, and each table starts where the one before ended.
#[test]
fn a_patch_starts_where_the_one_before_it_ended() {
    for name in ["000-haswell", "000-westmere"] {
        let table = table(name);
        let cell = |patch: &str, vcpus: &str, column: &str| {
            let column = table.column(column).expect("is there");
            table.row(&[patch, vcpus]).expect("is there").cells[column].expect("is printed")
        };
        for vcpus in ["32", "48"] {
            for (earlier, later) in [("4", "5"), ("5", "6")] {
                let (ended, starts) = (cell(earlier, vcpus, "after"), cell(later, vcpus, "before"));
                assert!((ended - starts).abs() < 1e-9, "{name}: patch {later}, {vcpus} vCPUs");
            }
        }
    }
}

/// The statistics of document 000 name no machine; their quotients are one machine's latencies.
#[test]
fn the_statistics_are_those_of_the_westmere() {
    let statistics = table("000-statistics");
    let count = |counter: &str, unit: &str| {
        statistics.row(&[counter, unit]).expect("is there").cells[0].expect("is printed")
    };
    let kicks = count("lock_kick_count", "events") + count("unlock_kick_count", "events");
    let wakeup_us = count("wake_latencies", "ns") / count("kick_time_count", "events") / 1000.0;
    let kicking_us = count("kick_latencies", "ns") / kicks / 1000.0;
    let latencies = table("000-latencies");
    let printed = &latencies.row(&["Westmere-EX"]).expect("is there").cells;
    for (computed, printed) in [wakeup_us, kicking_us].into_iter().zip(printed) {
        assert!((computed - printed.expect("is printed")).abs() <= 0.05, "{computed}, {printed:?}");
    }
}
