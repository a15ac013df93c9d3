//! The tables of locks, in the documentation of the crate and in the book, are what the register says.
//!
//! `QSPIN_WRITE_TABLES=1 cargo test -p qspin --test locks_table` writes them.

use std::fs;
use std::path::Path;

use qspin_core::locks::{LOCKS, Lock};

/// What it is, without what else there is to say about it.
fn what(lock: &Lock) -> &str {
    lock.about.split([':', '.']).next().unwrap_or_default()
}

fn in_the_crate(lock: &Lock) -> String {
    let (module, bytes) = (lock.module, lock.bytes());
    format!("| [`{module}`] | {} | {bytes} | {} | {} |", what(lock), lock.fairness, lock.waiting)
}

fn in_the_book(lock: &Lock) -> String {
    let others = lock.aliases.iter().copied().chain([lock.module]);
    let others = others.filter(|other| other.replace('_', "-") != lock.name);
    let names: Vec<String> =
        [lock.name].into_iter().chain(others).map(|name| format!("`{name}`")).collect();
    let names = names.join(", ");
    format!(
        "| {names} | {} | {} | {} | {} |",
        lock.purpose,
        lock.bytes(),
        lock.fairness,
        lock.waiting
    )
}

/// The text of a file whose table, which begins behind this line, has these rows and then `last`.
fn with_table(text: &str, head: &str, row: fn(&Lock) -> String, last: &str) -> String {
    let (before, table) = text.split_once(head).expect("the head of the table");
    let after = table.find("\n\n").map_or("\n", |at| &table[at..]);
    let rows: String = LOCKS.iter().map(|lock| format!("\n{}", row(lock))).collect();
    format!("{before}{head}{rows}\n{last}{after}")
}

#[test]
fn the_tables_of_locks_are_current() {
    let files = [
        (
            "src/locks.md",
            include_str!("../src/locks.md"),
            "| module | the lock | bytes | in which order | how a waiter waits |\n|---|---|--:|---|---|",
            in_the_crate as fn(&Lock) -> String,
            "| [`select`] | One of them, chosen when the program starts | 4 | as chosen | as chosen |",
        ),
        (
            "../../docs/locks.md",
            include_str!("../../../docs/locks.md"),
            "| lock | for | bytes | in which order | how a waiter waits |\n|---|---|--:|---|---|",
            in_the_book,
            "| `select` | the choice is left to the machine | 4 | as chosen | as chosen |",
        ),
    ];
    for (file, text, head, row, last) in files {
        let right = with_table(text, head, row, last);
        if std::env::var_os("QSPIN_WRITE_TABLES").is_some() {
            fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join(file), &right).unwrap();
            continue;
        }
        for (line, right) in text.lines().zip(right.lines()) {
            assert_eq!(line, right, "{file} is not current: QSPIN_WRITE_TABLES=1 writes it");
        }
        assert_eq!(text, right, "{file} is not current: QSPIN_WRITE_TABLES=1 writes it");
    }
}

#[test]
fn the_sizes_are_those_of_the_types() {
    assert_eq!(
        size_of::<qspin::select::RawMutex>(),
        4,
        "of the one that the register does not have"
    );
}
