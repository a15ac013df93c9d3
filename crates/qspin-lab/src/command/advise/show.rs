//! What `qspin advise` prints: for people, and as JSON.

use qspin::select::{Dedicated, Inputs, Threads};
use serde_json::{Value, json};

use crate::report::number::plural;
use crate::verdict::choice::DEFAULT;

/// CPUs as the kernel lists them.
fn list(cpus: &[usize]) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for &cpu in cpus {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => ranges.push((cpu, cpu)),
        }
    }
    let range = |&(first, last): &(usize, usize)| {
        if first == last { format!("{first}") } else { format!("{first}-{last}") }
    };
    ranges.iter().map(range).collect::<Vec<_>>().join(",")
}

/// Breaks a paragraph into lines that fit a page.
fn fold(paragraph: &str) -> String {
    let words: Vec<&str> = paragraph.split_whitespace().collect();
    textwrap::fill(&words.join(" "), textwrap::Options::new(100).break_words(false))
}

/// Each input: its name, its value, where it is from.
fn rows(inputs: &Inputs, topology: Option<&str>) -> Vec<[String; 3]> {
    let row = |name: &str, value: String, source: &str| [name.to_owned(), value, source.to_owned()];
    let cpus = format!("{} ({})", inputs.cpus.len(), list(&inputs.cpus));
    let quota = match &inputs.quota {
        None => row("CPU quota", "none".to_owned(), "control groups"),
        Some(quota) => {
            let over = if inputs.is_limited() { "" } else { ", not below the CPUs" };
            let value = format!("{:.2} CPUs{over}", quota.cpus);
            row("CPU quota", value, &quota.file.display().to_string())
        }
    };
    let threads = match inputs.threads {
        Threads::Said(threads) => row("threads", threads.to_string(), "said"),
        Threads::Now(_) | Threads::Unknown => {
            let than = if inputs.has_one_cpu() { "more than one" } else { "no more than CPUs" };
            row("threads", format!("not said: {than}"), "--threads N says it")
        }
    };
    let (hypervisor, source) = match &inputs.hypervisor {
        None => ("none".to_owned(), "CPUID, sysfs, stolen time"),
        Some(found) => (found.name.clone(), found.source),
    };
    let pv_unhalt = match inputs.hypervisor.as_ref().and_then(|found| found.pv_unhalt) {
        None => "not said",
        Some(true) => "yes",
        Some(false) => "no",
    };
    let stolen = match inputs.stolen {
        None => "not known".to_owned(),
        Some(share) => format!("{:.2} % since the start", share * 100.0),
    };
    let (dedicated, by) = match inputs.dedicated {
        Dedicated::Said(true) => ("yes", "said"),
        Dedicated::Said(false) => ("no", "said"),
        Dedicated::ByHypervisor => ("yes", "KVM_HINTS_REALTIME"),
        Dedicated::Doubted => ("no", "KVM_HINTS_REALTIME says so; stolen time disproves it"),
        Dedicated::Unknown => ("not said", "--dedicated says it"),
    };
    let halts = if inputs.can_halt { ("yes", "futexes") } else { ("no", "said") };
    let levels: Vec<String> = inputs.distances.iter().map(u32::to_string).collect();
    let levels = format!("levels {}", levels.join(" "));
    vec![
        row("CPUs", cpus, "affinity, cpuset"),
        quota,
        threads,
        row("hypervisor", hypervisor, source),
        row("  kicks halted CPUs", pv_unhalt.to_owned(), "KVM's PV_UNHALT"),
        row("stolen time", stolen, "/proc/stat"),
        row("dedicated CPUs", dedicated.to_owned(), by),
        row("halt and kick", halts.0.to_owned(), halts.1),
        row(
            "NUMA nodes",
            inputs.nodes.to_string(),
            &match topology {
                Some(described) => format!("QSPIN_TOPOLOGY={described}, which is fake"),
                None => "sysfs".to_owned(),
            },
        ),
        row("last-level caches", inputs.caches.to_string(), &levels),
    ]
}

/// What is doubtful although it decides nothing.
fn remarks(inputs: &Inputs) -> Vec<String> {
    let mut remarks = inputs.problems.clone();
    let doubted = inputs.dedicated == Dedicated::Doubted;
    if doubted || inputs.is_dedicated() && inputs.stolen.is_some_and(|share| share > 0.0) {
        remarks.push(
            "The CPUs are said to be dedicated, yet the hypervisor has given time of theirs to \
             others."
                .to_owned(),
        );
    }
    let deprived = inputs.hypervisor.as_ref().and_then(|found| found.pv_unhalt) == Some(false);
    if deprived && !inputs.is_dedicated() {
        remarks.push(
            "The hypervisor offers no PV_UNHALT, as with cpu-pm=on: a kernel in this guest falls back \
             to test-and-set. If that is because the CPUs are dedicated, say --dedicated."
                .to_owned(),
        );
    }
    // On one CPU it would change nothing.
    let unsaid = matches!(inputs.threads, Threads::Now(_) | Threads::Unknown);
    if unsaid && !inputs.has_one_cpu() {
        remarks.push(format!(
            "A program that will have more than {} must say so: by --threads here, by QSPIN_THREADS \
             or in code when it runs.",
            plural(inputs.cpus.len() as f64, "thread")
        ));
    }
    remarks
}

/// For people.
pub(super) fn text(inputs: &Inputs, topology: Option<&str>) -> String {
    let rows = rows(inputs, topology);
    let width =
        |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let (first, second) = (width(0), width(1));
    let verdict = inputs.verdict();
    let advice = format!(
        "Take `{DEFAULT}` (`qspin::Mutex`), the default; `qspin bench --quick` measures what it is worth here."
    );
    let queued = format!(
        "Of the queued locks `qspin::select` takes `{}` here: {}.",
        verdict.choice, verdict.reason
    );
    let mut text = format!("{}\n\n{}\n\n", fold(&advice), fold(&queued));
    for [name, value, source] in &rows {
        text += &format!("  {name:first$}  {value:second$}  {source}\n");
    }
    let changes = inputs.changes();
    text += "\nWhat would change that:\n";
    if changes.is_empty() {
        text += "  nothing alone\n";
    }
    let widest = changes.iter().map(|(what, _)| what.chars().count()).max().unwrap_or(0);
    for (what, choice) in &changes {
        text += &format!("  {what:widest$}  → {choice}\n");
    }
    for remark in remarks(inputs) {
        text += &format!("\n{}\n", fold(&remark));
    }
    text
}

/// For programs.
pub(super) fn json(inputs: &Inputs, topology: Option<&str>) -> String {
    let verdict = inputs.verdict();
    let hypervisor = inputs.hypervisor.as_ref().map(|found| {
        json!({"name": found.name, "source": found.source, "pv_unhalt": found.pv_unhalt,
               "realtime_hint": found.dedicated})
    });
    let quota = inputs
        .quota
        .as_ref()
        .map(|quota| json!({"cpus": quota.cpus, "file": quota.file.display().to_string()}));
    let said = match inputs.threads {
        Threads::Said(threads) => Some(threads),
        Threads::Now(_) | Threads::Unknown => None,
    };
    let dedicated = match inputs.dedicated {
        Dedicated::Said(said) => Some(said),
        Dedicated::ByHypervisor => Some(true),
        Dedicated::Doubted => Some(false),
        Dedicated::Unknown => None,
    };
    let changes: Vec<Value> = inputs
        .changes()
        .into_iter()
        .map(|(what, choice)| json!({"what": what, "choice": choice.name()}))
        .collect();
    let line = json!({
        "default": DEFAULT,
        "choice": verdict.choice.name(),
        "lock": verdict.choice.name(),
        "rule": verdict.rule,
        "reason": verdict.reason,
        "inputs": {
            "cpus": inputs.cpus,
            "quota": quota,
            "threads": said,
            "hypervisor": hypervisor,
            "stolen": inputs.stolen,
            "dedicated": dedicated,
            "can_halt": inputs.can_halt,
            "nodes": inputs.nodes,
            "caches": inputs.caches,
            "distances": inputs.distances,
            "topology": topology,
            "asked_for": inputs.hints.lock.map(|lock| lock.name()),
        },
        "changes": changes,
        "remarks": remarks(inputs),
    });
    format!("{line}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_are_folded_between_words() {
        assert_eq!(fold("one  two"), "one two");
        let long = fold(&"word ".repeat(50));
        assert_eq!(long.lines().count(), 3);
        assert!(long.lines().all(|line| line.len() <= 100 && line.starts_with("word")));
        assert_eq!(fold(&"x".repeat(200)).lines().count(), 1);
    }

    #[test]
    fn lists_of_cpus_are_ranges() {
        assert_eq!(list(&[0]), "0");
        assert_eq!(list(&[0, 1, 2, 8, 10, 11]), "0-2,8,10-11");
        assert_eq!(list(&[]), "");
    }
}
