//! When a lock is fast because a thread does not get it.
//!
//! Throughput alone rewards a lock that one thread never lets go: no hand-over, no cache misses.
//! Such a lock is not recommended. Either of these shows it:
//! - a thread got the lock not once, or the busiest thread did [`UNEVEN`] times the operations of
//!   the idlest, or the busier half did more than [`HALF`] of all of them;
//! - the unluckiest thread's p99.9 wait is longer than [`LONG_NS`] and [`LONGER`] times what is
//!   usual at this number of threads: queue and scheduler make all threads wait where they
//!   outnumber CPUs, so only a wait that stands out counts.

use qspin_table::number::{duration, times};

use crate::report::group::{Contender, Group};
use crate::row::Row;

/// Operations of the busiest thread over those of the idlest, from which on sharing is no sharing.
pub(super) const UNEVEN: f64 = 10.0;
/// The share of the busier half of the threads above which the others starve; 0.5 is fair.
pub(super) const HALF: f64 = 0.9;
/// Waits up to this length are no starvation, ns: a few slices of a usual scheduler.
pub(super) const LONG_NS: f64 = 50e6;
/// How much longer than usual (the median of the other locks) a wait must be to stand out.
pub(super) const LONGER: f64 = 10.0;

/// How a lock starves threads.
#[derive(Debug, Clone, PartialEq)]
pub struct Starving {
    /// At this number of threads.
    pub threads: u32,
    /// What the figures show, as the rest of a sentence after "it".
    pub how: String,
}

/// Whether this row shows starvation.
pub(crate) fn starves(group: &Group<'_>, contender: &Contender<'_>, row: &Row) -> Option<Starving> {
    if row.threads < 2 {
        return None;
    }
    let how = uneven(row).or_else(|| late(group, contender, row))?;
    Some(Starving { threads: row.threads, how })
}

fn uneven(row: &Row) -> Option<String> {
    match row.fairness.max_min {
        None => Some("left a thread without a single turn".to_owned()),
        Some(ratio) if ratio >= UNEVEN => Some(format!(
            "gave the busiest thread {} times as many turns as the idlest",
            times(ratio)
        )),
        _ if row.fairness.factor > HALF => {
            Some(format!("gave {:.2} of all turns to half of the threads", row.fairness.factor))
        }
        _ => None,
    }
}

fn late(group: &Group<'_>, contender: &Contender<'_>, row: &Row) -> Option<String> {
    let worst = row.wait_ns?.worst_thread_p999;
    let mut others: Vec<f64> = group
        .contenders
        .iter()
        .filter(|other| other.name != contender.name && !other.is_reference())
        .filter_map(|other| other.at(row.threads)?.wait_ns)
        .map(|wait| wait.worst_thread_p999)
        .collect();
    others.sort_by(f64::total_cmp);
    let usual = *others.get(others.len() / 2)?;
    (worst > LONG_NS && worst > LONGER * usual).then(|| {
        format!(
            "let one thread wait {} (p99.9), against {} under most locks",
            duration(worst),
            duration(usual)
        )
    })
}
