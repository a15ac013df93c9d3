//! Locks that fall off a cliff where threads outnumber CPUs.
//!
//! A little less throughput with more threads is normal. A collapse is a fall by [`FALL`] times
//! or more, against the same lock's own throughput when every thread had a CPU; where that was
//! not measured with contention, against the best lock at the same number of threads.

use crate::compare::{compare, is_too_few};
use crate::report::family::{Family, sleeps_in_order};
use crate::report::group::{Contender, Group};
use crate::row::Row;

use super::starvation;

/// The fall from which on one speaks of a collapse.
pub(super) const FALL: f64 = 4.0;
/// The same where there are too few rounds for intervals: a fall that chance does not make.
const FALL_BEYOND_CHANCE: f64 = 10.0;

/// One lock that collapses.
#[derive(Debug, Clone, PartialEq)]
pub struct Fallen {
    /// Name of the contender.
    pub name: String,
    /// How its waiters wait, which says why it collapses.
    pub family: Family,
    /// They sleep, and no newcomer passes one that does.
    pub sleeps_in_order: bool,
    /// The number of threads at which it is worst.
    pub threads: u32,
    /// Times less than the best lock at that number of threads.
    pub than_best: f64,
    /// Times less than itself when each thread had a CPU, and with how many threads that was.
    pub than_itself: Option<(f64, u32)>,
    /// Name of that best lock, where it is another one.
    pub best: Option<String>,
}

/// The collapse of a setting, worst lock first.
#[derive(Debug, Clone, PartialEq)]
pub struct Collapse {
    /// Never empty.
    pub fallen: Vec<Fallen>,
}

impl Collapse {
    /// Whether a lock is far below what another lock does: then it is never recommended.
    pub fn rules_out(&self, name: &str) -> bool {
        self.fallen.iter().any(|fallen| fallen.name == name && fallen.than_best >= FALL)
    }

    /// The lock to speak of: `native` where it is among them, since it is the one that this
    /// project is about; the worst otherwise.
    pub fn example(&self) -> &Fallen {
        self.fallen.iter().find(|fallen| fallen.name == "native").unwrap_or(&self.fallen[0])
    }
}

/// Finds the locks of a setting that collapse.
pub(super) fn find(group: &Group<'_>) -> Option<Collapse> {
    let mut fallen: Vec<Fallen> = group
        .contenders
        .iter()
        .filter(|contender| !contender.is_reference())
        .filter_map(|contender| worst_fall(group, contender))
        .collect();
    fallen.sort_by(|a, b| b.than_best.total_cmp(&a.than_best).then_with(|| a.name.cmp(&b.name)));
    (!fallen.is_empty()).then_some(Collapse { fallen })
}

fn worst_fall(group: &Group<'_>, contender: &Contender<'_>) -> Option<Fallen> {
    contender
        .rows
        .iter()
        .filter(|row| row.threads > 1 && group.is_over(row))
        .filter_map(|row| fall(group, contender, row))
        .max_by(|a, b| a.than_best.total_cmp(&b.than_best))
}

fn fall(group: &Group<'_>, contender: &Contender<'_>, row: &Row) -> Option<Fallen> {
    let least = if is_too_few(row.rounds as usize) { FALL_BEYOND_CHANCE } else { FALL };
    let best = best_at(group, row.threads)?;
    let than_best = ratio(best.1.ops_per_s.median, row.ops_per_s.median);
    let fits = contender
        .rows
        .iter()
        .rfind(|other| !group.is_over(other) && (other.threads > 1 || one_cpu(group)));
    let than_itself =
        fits.map(|fits| (ratio(fits.ops_per_s.median, row.ops_per_s.median), fits.threads));
    // The intervals must be apart too, by the comparison that everything uses; a
    // machine that was busy while all threads ran must not hide a fall against the other locks.
    let apart = |better: &Row| compare(better, row).ratio.lo >= least;
    // Or it lay on the ground already: other programs had the CPUs that the threads were to have.
    let lay = |fits: &Row| {
        best_at(group, fits.threads)
            .is_some_and(|(_, best)| ratio(best.ops_per_s.median, fits.ops_per_s.median) >= least)
    };
    let than_itself = than_itself.filter(|(ratio, _)| *ratio >= least);
    let fell = than_itself.is_some() || fits.is_none_or(|fits| lay(fits));
    let sure = fell && (fits.is_some_and(|fits| apart(fits)) || apart(best.1));
    sure.then(|| Fallen {
        name: contender.name.clone(),
        family: contender.family,
        sleeps_in_order: sleeps_in_order(contender.lock),
        threads: row.threads,
        than_best,
        than_itself,
        best: (best.0.name != contender.name).then(|| best.0.name.clone()),
    })
}

/// With a single CPU there is no contended row where all threads run: one thread must do.
fn one_cpu(group: &Group<'_>) -> bool {
    group.room().is_some_and(|room| room < 2.0)
}

/// The best lock that starves no thread; where that one lies on the ground itself, any lock.
fn best_at<'g, 'a>(group: &'g Group<'a>, threads: u32) -> Option<(&'g Contender<'a>, &'a Row)> {
    let locks = group.contenders.iter().filter(|contender| !contender.is_reference());
    let rows = locks.filter_map(|contender| Some((contender, contender.at(threads)?)));
    let ops = |at: &(&Contender<'_>, &Row)| at.1.ops_per_s.median;
    let best = rows.clone().max_by(|a, b| ops(a).total_cmp(&ops(b)))?;
    let fair = rows
        .filter(|(contender, row)| starvation::starves(group, contender, row).is_none())
        .max_by(|a, b| ops(a).total_cmp(&ops(b)));
    fair.filter(|fair| ratio(ops(&best), ops(fair)) < FALL).or(Some(best))
}

fn ratio(more: f64, less: f64) -> f64 {
    if less > 0.0 { more / less } else { f64::INFINITY }
}
