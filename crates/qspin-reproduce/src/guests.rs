//! The tables of documents 000 and 001: guests whose processors are taken away.

use qspin_core::tuning::kick_ahead_level;

use super::machines::scenario;
use super::studies::start;
use super::{CellPlan, Constants, Role, Value, seconds};
use crate::published::Table;
use qspin_sim::catalog::Named;
use qspin_sim::hypervisor::{Hypervisor, Pinning};
use qspin_sim::machine::Machine;
use qspin_sim::outcome::Outcome;
use qspin_sim::scenario::{Lock, Placement, Scenario};
use qspin_sim::workload::{KernelBuild, Sections, Step, SystemCalls, Workload};

/// A kernel build, as a study has found it, whose CPUs sleep for that long at a time.
fn build(constants: &Constants, study: &str, pieces: u64, idle_ns: f64) -> Workload {
    let get = |name| constants.get(study, name, start(study, name));
    Workload::KernelBuild(KernelBuild {
        pieces,
        outside_ns: get("outside_ns"),
        inside_ns: get("inside_ns"),
        locks: 64,
        hot: get("hot"),
        idle: get("idle"),
        idle_ns,
    })
}

/// The tables of document 001: ticket locks against locks that yield.
pub(super) fn document_001(table: &Table, constants: &Constants) -> Result<Vec<CellPlan>, String> {
    let machine = Machine::named("ibm-x3650")?;
    let hypervisor = Hypervisor::named("kvm-2010")?;
    let mut cells = Vec::new();
    for (row, published) in table.rows.iter().enumerate() {
        let times: u32 = published.labels[0].parse().map_err(|_| "no overcommit".to_owned())?;
        for &column in &table.values {
            let patched = table.columns[column] == "with patch";
            let lock = if patched { Lock::Yield } else { Lock::Ticket };
            // Two simulated seconds of each processor, alone.
            let outside = constants.get("x3650", "outside_ns", start("x3650", "outside_ns"));
            let pieces = (4.0 * 2e9 / outside) as u64;
            // Serial steps of a build are longer than a slice.
            let work = build(constants, "x3650", pieces, 5e7);
            let mut one = scenario(machine.clone(), work, lock, 4);
            one.hogs = 4 * (times - 1);
            // So many on each processor: where the guest has but two of them, each times more takes as
            // much of those two.
            one.hogs_even = true;
            one.hog_pinning = Pinning::Own;
            one.watchdog_ns = 1e10;
            one.hypervisor = Some(hypervisor.clone());
            (one.pinning, one.placement) = match table.name.as_str() {
                "001-A" => (Pinning::Own, Placement::InOrder),
                "001-B" => (Pinning::Any, Placement::InOrder),
                _ => (Pinning::To(vec![2, 3]), Placement::On(vec![2, 3])),
            };
            let fitted = table.name == "001-A" || table.name == "001-C" && times == 1;
            let role = if fitted { Role::Calibrated } else { Role::Predicted };
            cells.push(CellPlan {
                row,
                column,
                role,
                scenarios: vec![one],
                value: seconds(),
                scaled: true,
                claim: None,
            });
        }
    }
    Ok(cells)
}

/// Looks of a waiter before it halts: 000-tunables says what it is 32 times of.
const SPIN_THRESHOLD: u32 = 1 << 15;

/// The guest of document 000, with the series up to patch `patch`.
fn guest(constants: &Constants, westmere: bool, patch: u32, cpus: u32) -> Result<Scenario, String> {
    let machine = Machine::named(if westmere { "westmere-ex" } else { "haswell-ex" })?;
    let mut hypervisor = Hypervisor::named("kvm-2015")?;
    // As the document measured them (000-latencies).
    (hypervisor.kick, hypervisor.wake) =
        if westmere { (9300.0, 67_600.0) } else { (7400.0, 89_800.0) };
    let outside = constants.get("haswell-ex", "outside_ns", start("haswell-ex", "outside_ns"));
    // An eighth of a second of each of the 32 processors, and so shorter steps.
    let pieces = (32.0 * 0.125e9 / outside) as u64;
    let work = build(constants, "haswell-ex", pieces, 5e6);
    let mut one = scenario(machine, work, Lock::ParavirtQueued, cpus);
    let ahead = if patch >= 4 { kick_ahead_level(cpus) } else { 0 };
    for (name, value) in [
        // Linux's figures, where the defaults here are others.
        ("owner_looks", 0),
        ("queue_looks", SPIN_THRESHOLD),
        ("head_looks", SPIN_THRESHOLD),
        ("pending_wait_looks", SPIN_THRESHOLD >> 5),
        ("check_looks", 256),
        ("kick_unconditionally", u32::from(patch >= 1)),
        ("pending", u32::from(patch >= 2)),
        ("kick_ahead", ahead),
        ("defer", u32::from(patch >= 5)),
        ("adaptive", u32::from(patch >= 6)),
        ("heed_preempted", 0),
    ] {
        one.tuning.insert(name.to_owned(), value);
    }
    one.watchdog_ns = 2e10;
    one.pinning = Pinning::Any;
    one.hypervisor = Some(hypervisor);
    Ok(one)
}

/// The tables of document 000.
pub(super) fn document_000(table: &Table, constants: &Constants) -> Result<Vec<CellPlan>, String> {
    match table.name.as_str() {
        "000-haswell" | "000-westmere" => patches(table, constants),
        "000-pending" => pending(table, constants),
        "000-latencies" => latencies(table, constants),
        _ => statistics(table, constants),
    }
}

fn patches(table: &Table, constants: &Constants) -> Result<Vec<CellPlan>, String> {
    let westmere = table.name == "000-westmere";
    let mut cells = Vec::new();
    for (row, published) in table.rows.iter().enumerate() {
        let number = |place: usize| published.labels[place].parse::<u32>().unwrap_or(0);
        let (patch, cpus) = (number(0), number(1));
        for &column in &table.values {
            let after = table.columns[column] == "after";
            let one = guest(constants, westmere, patch - u32::from(!after), cpus)?;
            let fitted = patch == 4 && !after && (cpus == 32 || !westmere);
            let role = if fitted { Role::Calibrated } else { Role::Predicted };
            cells.push(CellPlan {
                row,
                column,
                role,
                scenarios: vec![one],
                value: seconds(),
                scaled: true,
                claim: None,
            });
        }
    }
    Ok(cells)
}

/// The build, and the rates of two threads. How much of a build's system time is no lock's is not
/// published, so the row of system time is not simulated.
fn pending(table: &Table, constants: &Constants) -> Result<Vec<CellPlan>, String> {
    let mut cells = Vec::new();
    for &column in &table.values {
        let patched = table.columns[column] == "with patch";
        let patch = if patched { 2 } else { 1 };
        let one = guest(constants, true, patch, 32)?;
        let (role, scenarios) = (Role::Predicted, vec![one]);
        cells.push(CellPlan {
            row: 0,
            column,
            role,
            scenarios,
            value: seconds(),
            scaled: true,
            claim: None,
        });
        for (row, other) in [(2, 1), (3, 4)] {
            let mut pair = guest(constants, true, patch, 2)?;
            let step =
                Step { outside_ns: 20.0, inside_ns: 5.0, lock: 0, reads: 0, writes: 0, beside: 0 };
            pair.workload = Workload::SystemCalls(SystemCalls { locks: 1, steps: vec![step] });
            pair.pinning = Pinning::Own;
            pair.placement = Placement::On(vec![0, other]);
            pair.duration_ns = 2e6;
            // As printed, though it must be operations and not thousands of them.
            let value = super::throughput(1e6);
            let role = Role::Predicted;
            cells.push(CellPlan {
                row,
                column,
                role,
                scenarios: vec![pair],
                value,
                scaled: false,
                claim: None,
            });
        }
    }
    Ok(cells)
}

fn latencies(table: &Table, constants: &Constants) -> Result<Vec<CellPlan>, String> {
    let mut cells = Vec::new();
    for (row, published) in table.rows.iter().enumerate() {
        let westmere = published.labels[0].starts_with("Westmere");
        for &column in &table.values {
            let kicking = table.columns[column] == "kicking";
            let mut one = guest(constants, westmere, 3, 4)?;
            // Sections so long that whoever waits halts.
            let (inside_ns, outside_ns) = (1e6, 0.0);
            let sections = Sections { count: 20, inside_ns, outside_ns, locks: 1, beside: false };
            one.workload = Workload::Sections(sections);
            let kick = one.hypervisor.as_ref().map_or(0.0, |it| it.kick);
            let value: Value = if kicking {
                Box::new(move |_: &[Outcome]| Some(kick / 1e3))
            } else {
                Box::new(|outcomes: &[Outcome]| Some(outcomes.first()?.mean_wake_ns? / 1e3))
            };
            // Taken over, not searched for.
            let role = Role::Calibrated;
            cells.push(CellPlan {
                row,
                column,
                role,
                scenarios: vec![one],
                value,
                scaled: false,
                claim: None,
            });
        }
    }
    Ok(cells)
}

/// The counters, whose scale is that of one of them. Those that are sums of times are not simulated.
fn statistics(table: &Table, constants: &Constants) -> Result<Vec<CellPlan>, String> {
    let mut cells = Vec::new();
    for (row, published) in table.rows.iter().enumerate() {
        let counter = published.labels[0].clone();
        if counter.ends_with("latencies") {
            continue;
        }
        let fitted = counter == "pending_lock_count";
        for &column in &table.values {
            let one = guest(constants, true, 3, 32)?;
            let counter = counter.clone();
            let value: Value = Box::new(move |outcomes: &[Outcome]| {
                let count = outcomes.first()?.events.get(counter.as_str());
                Some(count.copied().unwrap_or(0) as f64)
            });
            let role = if fitted { Role::Calibrated } else { Role::Predicted };
            cells.push(CellPlan {
                row,
                column,
                role,
                scenarios: vec![one],
                value,
                scaled: true,
                claim: None,
            });
        }
    }
    Ok(cells)
}
