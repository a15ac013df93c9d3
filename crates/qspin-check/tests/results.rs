//! The page of results is of this source: it has every ordering and every planted bug, and no other, and the book tells the
//! figures that it holds.

use std::collections::BTreeSet;
use std::fs;

use qspin_check::genmc;
use qspin_check::mutation::{Expectation, expectation};
use qspin_check::plants;
use qspin_check::weakening::Weakening;
use qspin_core::site::Site;

fn read(file: &str) -> String {
    let path = format!("{}/../../{file}", env!("CARGO_MANIFEST_DIR"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The cells of the rows of a section's table.
fn rows(page: &str, section: &str) -> Vec<Vec<String>> {
    let (_, rest) = page.split_once(&format!("## {section}\n")).expect(section);
    let table = rest.split("\n## ").next().unwrap_or(rest);
    let cells =
        |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().into()).collect();
    table.lines().filter(|line| line.starts_with("| ")).skip(1).map(cells).collect()
}

#[test]
fn every_ordering_is_in_the_results_with_what_is_expected_of_it() {
    let page = read("data/results/verification.md");
    let rows = rows(&page, "Orderings");
    let found: BTreeSet<&str> = rows.iter().map(|row| row[0].as_str()).collect();
    let known: BTreeSet<&str> = Site::ALL.iter().map(|site| site.name()).collect();
    assert_eq!(found, known);
    let mut killed = 0;
    for row in &rows {
        let site = Site::ALL.iter().find(|site| site.name() == row[0]).unwrap();
        let orders = Weakening::steps_below(std::sync::atomic::Ordering::SeqCst).iter();
        let orders = orders.chain(Weakening::steps_below(std::sync::atomic::Ordering::AcqRel));
        let orders = orders.chain(Weakening::steps_below(std::sync::atomic::Ordering::Acquire));
        let to = orders.copied().find(|to| format!("{to:?}") == row[1]).expect("an ordering");
        match expectation(Weakening { site: *site, to }) {
            Some(Expectation::Dies(kind)) => {
                assert_eq!(row[2], kind.name(), "{}", row[0]);
                killed += 1;
            }
            Some(Expectation::Survives(reason)) => assert_eq!(row[2], format!("lives: {reason}")),
            None => panic!("nothing is expected of {}", row[0]),
        }
    }
    let headline = format!("{killed} of {} weakened orderings", rows.len());
    assert!(page.contains(&headline), "the results do not say: {headline}");
    let book = read("docs/verification.md");
    assert!(book.contains(&headline), "the book does not say: {headline}");
}

#[test]
fn both_checkers_verdicts_stand_beside_each_ordering() {
    let page = read("data/results/genmc.md");
    let rows = rows(&page, "Orderings");
    let found: BTreeSet<(String, String)> =
        rows.iter().map(|row| (row[0].clone(), row[1].clone())).collect();
    let all = genmc::weakenings();
    let known = all.iter().map(|one| (one.site.name().to_owned(), format!("{:?}", one.to)));
    assert_eq!(found, known.collect());
    for (row, one) in rows.iter().zip(&all) {
        let under_loom = match expectation(*one) {
            Some(Expectation::Dies(kind)) => kind.name(),
            _ => "lives",
        };
        assert_eq!(row[2], under_loom, "{one}");
        let dies = !row[3].starts_with("lives");
        assert!(
            !dies || under_loom != "lives",
            "{one} dies under GenMC, and is excused under loom"
        );
        assert_eq!(dies, !row[4].is_empty(), "{one}");
    }
    let killed = rows.iter().filter(|row| !row[3].starts_with("lives")).count();
    let headline = format!("{killed} of {} weakened", rows.len());
    assert!(page.contains(&headline), "the results do not say: {headline}");
    let book = read("docs/verification.md").replace('\n', " ");
    let headline = format!("{headline} orderings are killed under GenMC");
    assert!(book.contains(&headline), "the book does not say: {headline}");
}

#[test]
fn every_planted_bug_is_in_the_results() {
    let page = read("data/results/verification.md");
    let rows = rows(&page, "Bugs planted in the source");
    let found: Vec<&str> = rows.iter().map(|row| row[0].as_str()).collect();
    let known = plants::all().unwrap();
    assert_eq!(found, known.iter().map(|plant| plant.name.as_str()).collect::<Vec<_>>());
    let book = read("docs/verification.md");
    let headline = format!("{} bugs planted in the source", known.len());
    assert!(book.contains(&headline), "the book does not say: {headline}");
}
