//! From the phases of a guest to rows.

use std::collections::BTreeMap;

use qspin_guest::histogram::{middle, percentile};
use serde_json::Value;

use super::reply::{Events, Phase};
use crate::bench::counters::locality;
use crate::bench::rows::of_rounds;
use crate::row::{Row, WaitNs};

/// What all rows of a run have in common.
#[derive(Debug, Clone)]
pub struct Setting {
    /// What executes the guest, and how it kicks.
    pub params: BTreeMap<String, Value>,
    /// What was tuned away from its default.
    pub tune: BTreeMap<String, Value>,
    /// Length of a critical section.
    pub critical_ns: f64,
    /// Length of the work between two.
    pub outside_ns: f64,
}

/// The row of a lock, from its phases; `None` without any.
#[must_use]
pub fn row(
    setting: &Setting,
    lock: &str,
    phases: &[&Phase],
    events: Option<&Events>,
    partial: bool,
) -> Option<Row> {
    phases.first()?;
    let operations: Vec<Vec<u64>> = phases.iter().map(|phase| phase.operations.clone()).collect();
    let rates: Vec<f64> = phases
        .iter()
        .map(|phase| phase.operations.iter().sum::<u64>() as f64 * 1e9 / phase.ns as f64)
        .collect();
    let mut platform = BTreeMap::new();
    for (name, count) in phases.iter().flat_map(|phase| &phase.platform) {
        *platform.entry(name.clone()).or_insert(0) += count;
    }
    let struck: u64 = phases.iter().map(|phase| phase.struck).sum();
    if setting.params.contains_key("preempt") {
        platform.insert("struck".to_owned(), struck);
    }
    let counted = events.map(|events| events.events.clone()).unwrap_or_default();
    Some(Row {
        params: setting.params.clone(),
        tune: setting.tune.clone(),
        critical_ns: setting.critical_ns,
        outside_ns: setting.outside_ns,
        wait_ns: waits(phases),
        partial,
        locality: locality(&counted),
        events_ops: events.map(|events| events.operations),
        events: counted,
        platform,
        ..of_rounds("vm", lock, rates, &operations)
    })
}

fn waits(phases: &[&Phase]) -> Option<WaitNs> {
    let mut all = BTreeMap::new();
    for (bucket, count) in phases.iter().flat_map(|phase| &phase.waits) {
        *all.entry(*bucket).or_insert(0_u64) += count;
    }
    let counts = || all.iter().map(|(bucket, count)| (*bucket, *count));
    // No percentile lies above the longest, as the middle of its bucket may.
    let max = phases.iter().map(|phase| phase.longest_ns).max()? as f64;
    let at = |thousandths| percentile(counts(), thousandths).map(|at| middle(at).min(max));
    let worst = phases.iter().map(|phase| phase.worst_cpu_p999).max()?;
    Some(WaitNs {
        p50: at(500)?,
        p99: at(990)?,
        p999: at(999)?,
        max,
        worst_thread_p999: middle(worst).min(max),
        samples: counts().map(|(_, count)| count).sum(),
        unfinished: phases.iter().map(|phase| phase.unfinished).sum(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(operations: &[u64], waits: &[(usize, u64)], longest_ns: u64) -> Phase {
        Phase {
            lock: "native".to_owned(),
            ns: 500_000_000,
            operations: operations.to_vec(),
            struck: 2,
            unfinished: 1,
            longest_ns,
            worst_cpu_p999: waits.last().map_or(0, |wait| wait.0),
            platform: BTreeMap::from([("halts_on".to_owned(), 3)]),
            waits: waits.to_vec(),
        }
    }

    #[test]
    fn rounds_are_put_together() {
        let setting = Setting {
            params: BTreeMap::new(),
            tune: BTreeMap::new(),
            critical_ns: 1.0,
            outside_ns: 2.0,
        };
        let (one, other) =
            (phase(&[10, 30], &[(5, 40)], 5), phase(&[20, 20], &[(5, 1), (100, 39)], 900));
        let row = row(&setting, "native", &[&one, &other], None, false).unwrap();
        assert_eq!((row.threads, row.rounds, row.ops_per_s.median), (2, 2, 80.0));
        assert_eq!(row.fairness.max_min, Some(2.0), "the median of 3 and 1");
        assert_eq!(row.platform["halts_on"], 6);
        let waits = row.wait_ns.unwrap();
        assert_eq!((waits.p50, waits.max, waits.samples, waits.unfinished), (5.0, 900.0, 80, 2));
        assert!(!row.platform.contains_key("struck"), "that was not asked for");
        assert_eq!(super::row(&setting, "native", &[], None, false), None);
        let preempt = ("preempt".to_owned(), Value::from("holder:5ms:p=0.01"));
        let setting = Setting { params: BTreeMap::from([preempt]), ..setting };
        let row = super::row(&setting, "native", &[&one, &other], None, false).unwrap();
        assert_eq!(row.platform["struck"], 4);
    }
}
