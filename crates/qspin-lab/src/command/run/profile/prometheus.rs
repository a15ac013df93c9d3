//! Prometheus' text, for a scrape by file.

use std::fmt::Write;

use super::super::report::{Lock, Process};
use super::super::symbols::Names;

/// A label's value: what would end it is escaped.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn labels(process: &Process, lock: &Lock, names: &Names) -> String {
    let name = match lock.address {
        0 => "others".to_owned(),
        address => names.variable(address).unwrap_or_else(|| format!("{address:#x}")),
    };
    format!(
        "process=\"{}\",lock=\"{}\",address=\"{:#x}\"",
        process.number,
        escaped(&name),
        lock.address
    )
}

type Count = fn(&Lock) -> f64;
type Buckets = fn(&Lock) -> &[(u64, u64)];

const COUNTS: [(&str, &str, Count); 3] = [
    ("qspin_lock_acquisitions_total", "Acquisitions of the lock.", |lock| lock.acquisitions as f64),
    ("qspin_lock_contended_total", "Acquisitions that had to wait.", |lock| lock.contended as f64),
    ("qspin_lock_wait_seconds_total", "Time waited for the lock.", |lock| {
        lock.wait_ns as f64 / 1e9
    }),
];

const HISTOGRAMS: [(&str, &str, Buckets); 2] = [
    ("qspin_lock_wait_duration_seconds", "Waits for the lock, as sampled.", |lock| &lock.waits),
    ("qspin_lock_hold_duration_seconds", "Holds of the lock, as sampled.", |lock| &lock.holds),
];

pub(super) fn text(processes: &[(&Process, Names)]) -> String {
    let locks = || {
        processes.iter().flat_map(|(process, names)| {
            process.locks.iter().map(move |lock| (*process, lock, names))
        })
    };
    let mut text = String::new();
    for (name, help, count) in COUNTS {
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} counter");
        for (process, lock, names) in locks() {
            let _ = writeln!(text, "{name}{{{}}} {}", labels(process, lock, names), count(lock));
        }
    }
    for (name, help, buckets) in HISTOGRAMS {
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} histogram");
        for (process, lock, names) in locks() {
            let labels = labels(process, lock, names);
            let mut below = 0;
            let mut sum = 0.0;
            for (end, many) in buckets(lock) {
                below += many;
                // The middle of a bucket, about: two to a power of two.
                sum += *many as f64 * *end as f64 / 1e9 * 0.8;
                let _ = writeln!(
                    text,
                    "{name}_bucket{{{labels},le=\"{}\"}} {below}",
                    *end as f64 / 1e9
                );
            }
            let _ = writeln!(text, "{name}_bucket{{{labels},le=\"+Inf\"}} {below}");
            let _ =
                writeln!(text, "{name}_sum{{{labels}}} {sum}\n{name}_count{{{labels}}} {below}");
        }
    }
    text
}
