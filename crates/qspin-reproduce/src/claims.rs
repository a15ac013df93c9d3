//! What documents state in words: that nothing changes, or in which direction something does.
//!
//! No constant is fitted to any of it. Of the load in question nothing is published but its name, so
//! each of the loads here is an assumption from what such a program does; what follows from another
//! is a matter of `qspin simulate`.

use super::machines::scenario;
use super::{CellPlan, Claim, Constants, Role, Value};
use crate::published::Table;
use qspin_sim::catalog::Named;
use qspin_sim::hypervisor::{Hypervisor, Pinning};
use qspin_sim::machine::Machine;
use qspin_sim::outcome::Outcome;
use qspin_sim::scenario::{Lock, Placement, Scenario};
use qspin_sim::workload::{Step, SystemCalls, Workload};

/// Within so much of 1 there is no difference: what the documents' own runs vary by.
const ALIKE: f64 = 0.03;
const MILLISECOND: f64 = 1e6;

fn alike(ratio: f64) -> bool {
    (ratio - 1.0).abs() <= ALIKE
}

fn calls(outside_ns: f64, inside_ns: f64, lines: u32, beside: u32) -> Workload {
    let step = Step { outside_ns, inside_ns, lock: 0, reads: lines, writes: lines, beside };
    Workload::SystemCalls(SystemCalls { locks: 1, steps: vec![step] })
}

/// What is compared of two simulations.
type Figure = fn(&Outcome) -> f64;

/// A scenario, its new and its old lock, what is compared of them, and whether the quotient is as stated.
type Statement = (Scenario, [Lock; 2], Figure, fn(f64) -> bool);

/// The first of two simulations over the second.
fn quotient(of: Figure) -> Value {
    Box::new(move |outcomes| {
        let [new, old] = outcomes else { return None };
        Some(of(new) / of(old))
    })
}

fn throughput(outcome: &Outcome) -> f64 {
    outcome.throughput
}

fn longest_wait(outcome: &Outcome) -> f64 {
    outcome.longest_wait_ns
}

fn of_locks(base: &Scenario, locks: [Lock; 2]) -> Vec<Scenario> {
    locks.map(|lock| Scenario { lock, ..base.clone() }).to_vec()
}

/// The tables of one claim each: 002-tpcc, 003-gcc and 004-single.
pub(super) fn of_one_cell(table: &Table, constants: &Constants) -> Result<Vec<CellPlan>, String> {
    let (base, locks, value, figure): (Scenario, [Lock; 2], Value, Option<f64>) =
        match table.name.as_str() {
            // A transaction is hundreds of microseconds of a database's own work; its locks are many, and
            // the kernel's that it meets at is taken a fifth of the time.
            "002-tpcc" => {
                let work = calls(4e5, 300.0, 2, 1);
                let mut base = scenario(Machine::named("epyc-7551")?, work, Lock::Cna, 126);
                base.duration_ns = 20.0 * MILLISECOND;
                base.start_ns = 4e5;
                base.placement = Placement::Spread;
                (base, [Lock::Cna, Lock::Native], quotient(throughput), Some(1.0))
            }
            // A copy of the compiler a core. Each gives pages back in batches, under the lock of the list of
            // pages in use: a lock's words, two heads of lists, some counts. Once a millisecond is some
            // ten thousand pages a second, so the lock is free most of the time; three times as often, the
            // old lock collapses and backoff gains eight times, which nobody has measured.
            "003-gcc" => {
                let work = calls(1e6, 400.0, 2, 2);
                let mut base = scenario(Machine::named("xeon-6-288")?, work, Lock::Backoff, 288);
                base.duration_ns = 10.0 * MILLISECOND;
                base.start_ns = 1e6;
                let gained: Value = Box::new(|outcomes| {
                    let [new, old] = outcomes else { return None };
                    Some(100.0 * (new.throughput / old.throughput - 1.0))
                });
                (base, [Lock::Backoff, Lock::Tas], gained, None)
            }
            _ => {
                let machine = super::machines::power9(constants)?;
                let mut base = scenario(machine, calls(750.0, 10.0, 0, 1), Lock::Native, 1);
                base.duration_ns = 2.0 * MILLISECOND;
                base.hypervisor = Some(Hypervisor::named("power-bare-metal")?);
                (base, [Lock::Native, Lock::Simple], quotient(throughput), Some(1.0))
            }
        };
    let words = if figure.is_some() { "no difference" } else { "about 4 % more" };
    let holds = if figure.is_some() { alike } else { |gain| (1.0..=7.0).contains(&gain) };
    let column = table.columns[table.values[0]].clone();
    let mut base = base;
    super::machines::as_in_linux(&mut base);
    Ok(vec![CellPlan {
        row: 0,
        column: table.values[0],
        role: Role::Predicted,
        scenarios: of_locks(&base, locks),
        value,
        scaled: false,
        claim: Some(Claim { column, words: words.to_owned(), figure, holds }),
    }])
}

/// Processors of the machine with two sockets, and virtual CPUs of the guest on it.
const PROCESSORS: u32 = 128;
const GUEST: u32 = 32;

/// dbench on tmpfs: 004-dbench. Its numbers are behind a link, so there is nothing to fit; a client creates,
/// writes and removes small files, and meets the others at the locks of directories and of the list of inodes.
pub(super) fn dbench(table: &Table, constants: &Constants) -> Result<Vec<CellPlan>, String> {
    let mut machine = super::machines::power9(constants)?;
    let shape = &mut machine.shape;
    (shape.sockets, shape.cores_per_socket, shape.threads_per_core) = (2, 16, 4);
    shape.hops.clear();
    let client = |cpus| -> Result<Scenario, String> {
        let mut one = scenario(machine.clone(), calls(4e3, 150.0, 1, 1), Lock::Native, cpus);
        one.hypervisor = Some(Hypervisor::named("power-bare-metal")?);
        one.placement = Placement::Spread;
        one.duration_ns = 3.0 * MILLISECOND;
        super::machines::as_in_linux(&mut one);
        Ok(one)
    };
    // The clients of a guest share its virtual CPUs, whose kernel takes no CPU from somebody who holds a
    // spinlock; each of them has a processor of its own.
    let guest = |clients: u32| -> Result<Scenario, String> {
        let mut one = client(clients)?;
        let mut hypervisor = Hypervisor::named("kvm-dedicated")?;
        hypervisor.holder_grace = MILLISECOND;
        one.hypervisor = Some(hypervisor);
        one.tuning.remove("simple_looks");
        (one.placement, one.pinning) = if clients > GUEST {
            (Placement::InOrder, Pinning::To((0..GUEST).collect()))
        } else {
            (Placement::InOrder, Pinning::Own)
        };
        one.duration_ns = 12.0 * MILLISECOND;
        Ok(one)
    };
    let bare = [Lock::Native, Lock::Simple];
    let virtualised = [Lock::ParavirtStealing, Lock::Simple];
    let rises = [Lock::ParavirtStealing, Lock::ParavirtStealing];
    let (faster, shorter): (Figure, Figure) = (throughput, longest_wait);
    let rows: [Statement; 7] = [
        (client(2)?, bare, faster, alike),
        (client(PROCESSORS)?, bare, faster, |ratio| ratio > 1.0 + ALIKE),
        (client(PROCESSORS)?, bare, shorter, |ratio| ratio < 1.0 - ALIKE),
        // Of throughput: which quantity it is the document does not say.
        (guest(8)?, virtualised, faster, |ratio| (0.8..1.0).contains(&ratio)),
        (guest(GUEST)?, virtualised, faster, |ratio| ratio > 1.0 + 3.0 * ALIKE),
        (guest(GUEST)?, virtualised, shorter, |ratio| ratio < 1.0 - 3.0 * ALIKE),
        (guest(2 * GUEST)?, rises, shorter, |ratio| ratio > 1.0 + ALIKE),
    ];
    let mut cells = Vec::new();
    for (row, (base, locks, of, holds)) in rows.into_iter().enumerate() {
        let mut scenarios = of_locks(&base, locks);
        if row == 6 {
            // Against itself, with as many clients as virtual CPUs.
            scenarios[1] = Scenario { lock: locks[1], ..guest(GUEST)? };
        }
        let words = table.rows[row].labels[3].clone();
        cells.push(CellPlan {
            row,
            column: table.values[0],
            role: Role::Predicted,
            scenarios,
            value: quotient(of),
            scaled: false,
            claim: Some(Claim {
                column: "queued to simple".to_owned(),
                words,
                figure: None,
                holds,
            }),
        });
    }
    Ok(cells)
}
