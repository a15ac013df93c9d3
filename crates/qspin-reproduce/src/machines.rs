//! The tables of documents 002, 003 and 004: locks on bare machines.

use super::studies::start;
use super::{CellPlan, Constants, Role, Value, throughput};
use crate::published::Table;
use qspin_sim::catalog::Named;
use qspin_sim::hypervisor::{Hypervisor, Pinning};
use qspin_sim::machine::Machine;
use qspin_sim::outcome::Outcome;
use qspin_sim::scenario::{Lock, Placement, Scenario};
use qspin_sim::workload::{
    FutexMutex, KernelLockBench, Locktorture, LongDelays, Step, SystemCalls, Workload,
};

const MILLISECOND: f64 = 1e6;

/// Linux's figures, where the defaults here are others: a newcomer lines up at once.
pub(super) fn as_in_linux(scenario: &mut Scenario) {
    scenario.tuning.insert("owner_looks".to_owned(), 0);
    // Without a hypervisor below that shares processors out, a simple lock of powerpc does not yield.
    scenario.tuning.insert("simple_looks".to_owned(), 1 << 24);
}

/// A scenario of a machine on which nobody is overcommitted.
pub(super) fn scenario(machine: Machine, workload: Workload, lock: Lock, cpus: u32) -> Scenario {
    Scenario {
        lock,
        cpus,
        duration_ns: 4.0 * MILLISECOND,
        watchdog_ns: 1e9,
        start_ns: 1e4,
        placement: Placement::InOrder,
        pinning: Pinning::Own,
        hogs: 0,
        hog_pinning: Pinning::Any,
        hogs_even: false,
        tuning: Default::default(),
        workload,
        machine,
        hypervisor: None,
    }
}

fn label(table: &Table, row: usize) -> Result<u32, String> {
    let label = table.rows[row].labels.first().map_or("", String::as_str);
    label.parse().map_err(|_| format!("{}: `{label}` is no number of CPUs", table.name))
}

/// The X5's transfers, as calibrated on lock torture.
fn with_x5(mut machine: Machine, constants: &Constants) -> Machine {
    let get = |name| constants.get("x5-4", name, start("x5-4", name));
    let costs = &mut machine.costs;
    costs.same_socket = get("same_socket");
    costs.same_cache = costs.same_socket;
    let (hop, old) = (get("other_socket"), costs.other_socket);
    costs.further_hop *= hop / old;
    costs.other_socket = hop;
    costs.near_bias = get("near_bias");
    costs.queued = get("queued");
    costs.invalidate = get("invalidate");
    machine
}

/// The lock of a column, and how long it has to be simulated: several flushes of its queue.
fn lock_of(column: &str, stock_ms: f64) -> Option<(Lock, u32, f64)> {
    match column {
        "stock" => Some((Lock::Native, 1_000_000, stock_ms)),
        "CNA" => Some((Lock::Cna, 1_000_000, (2.0 * stock_ms).max(8.0))),
        "CNA-10ms" => Some((Lock::Cna, 10_000_000, 40.0)),
        _ => None,
    }
}

/// The tables of document 002.
pub(super) fn document_002(table: &Table, constants: &Constants) -> Result<Vec<CellPlan>, String> {
    let big = matches!(table.name.as_str(), "002-fsmark-nosync" | "002-fsmark-fsync" | "002-aim7");
    let machine = Machine::named(if big { "oracle-x5-8" } else { "oracle-x5-4" })?;
    let machine = with_x5(machine, constants);
    let processors = machine.shape.processors() - 2;
    let study = table.name.trim_start_matches("002-");
    let study = if study == "locktorture" { "x5-4" } else { study };
    let get = |name| constants.get(study, name, start(study, name));
    let last = table.rows.len() - 1;
    let mut cells = Vec::new();
    for row in 0..table.rows.len() {
        let threads = label(table, row)?;
        let cpus = threads.min(processors);
        for &column in &table.values {
            let name = table.columns[column].as_str();
            let Some((lock, threshold, ms)) = lock_of(name, 4.0) else { continue };
            let (workload, value, fitted): (Workload, Value, bool) = match study {
                "x5-4" => (
                    torture(get("inside_ns"), get("outside_ns")),
                    // 30 s of a run of a minute, in 10^7: half of the time its writers pause.
                    throughput(3.0),
                    name != "CNA-10ms" && [1, 2, 8, 36].contains(&threads),
                ),
                "open1" => (open1(get("outside_ns")), throughput(1.0), alone(threads, lock)),
                "lock2" => (lock2(get("outside_ns")), throughput(2.0), alone(threads, lock)),
                "leveldb" => (leveldb(get("outside_ns")), throughput(1.0), alone(threads, lock)),
                "aim7" => (
                    files(get("outside_ns"), get("inside_ns")),
                    throughput(1e6),
                    lock == Lock::Native && [2, 20, 1000].contains(&threads),
                ),
                _ => (
                    files(get("outside_ns"), get("inside_ns")),
                    throughput(1e6),
                    lock == Lock::Native && (threads == 1 || row == last),
                ),
            };
            let mut one = scenario(machine.clone(), workload, lock, cpus);
            one.duration_ns = ms * MILLISECOND;
            one.tuning.insert("numa_threshold_ns".to_owned(), threshold);
            as_in_linux(&mut one);
            match study {
                // Kernel threads and those of fsmark and AIM7 are free, and spread; will-it-scale pins
                // its threads to one core after the other.
                "open1" | "lock2" => {}
                _ => one.placement = Placement::Spread,
            }
            if study == "leveldb" {
                one.hypervisor = Some(Hypervisor::named("linux-bare-metal")?);
            }
            let role = if fitted { Role::Calibrated } else { Role::Predicted };
            cells.push(CellPlan {
                row,
                column,
                role,
                scenarios: vec![one],
                value,
                scaled: big,
                claim: None,
            });
        }
    }
    Ok(cells)
}

/// One thread, of the old lock: what the code around the lock takes.
fn alone(threads: u32, lock: Lock) -> bool {
    threads == 1 && lock == Lock::Native
}

fn torture(inside_ns: f64, outside_ns: f64) -> Workload {
    Workload::Locktorture(Locktorture {
        inside_ns,
        outside_ns,
        short_delay_ns: 2e3,
        long_delay_ns: 1e8,
        long_delays: LongDelays::Averaged,
    })
}

/// will-it-scale's `open1`: opens and closes a file of each thread's own. Linux 5.12, `fs/file.c`: a free
/// descriptor is found and marked in the bitmap, and `next_fd` beside the lock; the other bitmap and the
/// table of files are read. At the end the slot is cleared in table and bitmap, and `next_fd` again.
fn open1(outside_ns: f64) -> Workload {
    let step = |outside_ns, inside_ns, reads, writes| Step {
        outside_ns,
        inside_ns,
        lock: 0,
        reads,
        writes,
        beside: 1,
    };
    let steps = vec![step(0.4 * outside_ns, 20.0, 3, 1), step(0.6 * outside_ns, 15.0, 2, 2)];
    Workload::SystemCalls(SystemCalls { locks: 1, steps })
}

/// will-it-scale's `lock2`: locks and unlocks a byte of one file. Linux 5.12, `fs/locks.c`: both calls go
/// through the list of the file's locks under `flc_lock`, which lies beside it, and change a lock on it; the
/// first looks once more under the `file_lock` of the process whether the file was closed meanwhile.
fn lock2(outside_ns: f64) -> Workload {
    let step = |part: f64, inside_ns, lock, writes, beside| Step {
        outside_ns: part * outside_ns,
        inside_ns,
        lock,
        reads: 1,
        writes,
        beside,
    };
    let steps = vec![step(0.4, 30.0, 0, 1, 1), step(0.1, 5.0, 1, 0, 0), step(0.5, 30.0, 0, 1, 1)];
    Workload::SystemCalls(SystemCalls { locks: 2, steps })
}

fn leveldb(outside_ns: f64) -> Workload {
    Workload::FutexMutex(FutexMutex {
        outside_ns,
        inside_ns: 30.0,
        sections: 2,
        writes: 2,
        call_ns: 150.0,
        bucket_ns: 40.0,
    })
}

/// fsmark and AIM7's `disk_rr` on btrfs, of which no document says which lock it is that they meet at: pieces
/// of work, and sections that write two lines. How many of them make a file or a job is the scale.
fn files(outside_ns: f64, inside_ns: f64) -> Workload {
    let step = Step { outside_ns, inside_ns, lock: 0, reads: 2, writes: 2, beside: 1 };
    Workload::SystemCalls(SystemCalls { locks: 1, steps: vec![step] })
}

/// The grids of document 003.
pub(super) fn document_003(table: &Table, constants: &Constants) -> Result<Vec<CellPlan>, String> {
    let get = |name| constants.get("xeon-8380l", name, start("xeon-8380l", name));
    let mut machine = Machine::named("xeon-8380l")?;
    let costs = &mut machine.costs;
    costs.same_socket = get("same_socket");
    costs.same_cache = costs.same_socket;
    costs.other_socket = get("other_socket");
    costs.near_bias = get("near_bias");
    costs.queued = get("queued");
    costs.read_occupancy = get("read_occupancy");
    let length = table.name.trim_start_matches("003-");
    let non_critical = length.parse().map_err(|_| format!("{} is no grid", table.name))?;
    let mut cells = Vec::new();
    for row in 0..table.rows.len() {
        let cpus = label(table, row)?;
        for &column in &table.values {
            let critical = table.columns[column].parse().map_err(|_| "no length".to_owned())?;
            let of = |lock| {
                let bench = KernelLockBench {
                    critical,
                    non_critical,
                    rounds: 4000,
                    // 15 cycles at 2.9 GHz.
                    unit_ns: 5.2,
                    overhead_ns: get("overhead_ns"),
                };
                scenario(machine.clone(), Workload::KernelLockBench(bench), lock, cpus)
            };
            let fitted = non_critical == 1
                && [4, 16, 64].contains(&cpus)
                && [0, 4, 16, 64].contains(&critical);
            cells.push(CellPlan {
                row,
                column,
                role: if fitted { Role::Calibrated } else { Role::Predicted },
                scenarios: vec![of(Lock::Backoff), of(Lock::Tas)],
                value: Box::new(ratio),
                scaled: false,
                claim: None,
            });
        }
    }
    Ok(cells)
}

/// Throughput of the first of two over that of the second.
fn ratio(outcomes: &[Outcome]) -> Option<f64> {
    let [new, old] = outcomes else { return None };
    Some(new.throughput / old.throughput)
}

/// The big machine of document 004, as calibrated.
pub(super) fn power9(constants: &Constants) -> Result<Machine, String> {
    let mut machine = Machine::named("power9-16")?;
    let hop = constants.get("power9", "other_socket", start("power9", "other_socket"));
    machine.costs.further_hop *= hop / machine.costs.other_socket;
    machine.costs.other_socket = hop;
    Ok(machine)
}

/// The tables of document 004.
pub(super) fn document_004(table: &Table, constants: &Constants) -> Result<Vec<CellPlan>, String> {
    let machine = power9(constants)?;
    let mut cells = Vec::new();
    for row in 0..table.rows.len() {
        for &column in &table.values {
            let queued = table.columns[column] == "queued";
            let lock = if queued { Lock::Native } else { Lock::Simple };
            // Same-file open/close meets at the lock of the dentry's count of references, taken at open
            // and given back at close.
            let step = |outside_ns| Step {
                outside_ns,
                inside_ns: 10.0,
                lock: 0,
                reads: 0,
                writes: 0,
                beside: 1,
            };
            let calls = SystemCalls { locks: 1, steps: vec![step(800.0), step(700.0)] };
            let mut one = scenario(machine.clone(), Workload::SystemCalls(calls), lock, 1536);
            // Each release of the simple lock wakes all of them, which takes long to simulate: too long for
            // each to have had the lock once, so that its fairness has no figure.
            one.duration_ns = if queued { 20.0 } else { 8.0 } * MILLISECOND;
            one.hypervisor = Some(Hypervisor::named("power-bare-metal")?);
            as_in_linux(&mut one);
            let value: Value = match row {
                0 => throughput(1e6),
                _ => Box::new(|outcomes| outcomes.first()?.max_min),
            };
            let role = if queued && row == 0 { Role::Calibrated } else { Role::Predicted };
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
