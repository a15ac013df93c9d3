//! `qspin simulate --random`: regret on machines and under loads drawn at random.
//!
//! The cells are those of [`qspin_sim::random`]; what is said of them is what `qspin bench --random` says of measured ones
//! ([`crate::bench::random`]). The oracle is the best of the locks that take part.

use std::process::ExitCode;

use anyhow::anyhow;
use qspin_sim::batch::Job;
use qspin_sim::plan::Cell;
use qspin_sim::{Lock, Outcome, Scenario, random};

use super::{Args, rows};
use crate::bench::interrupt::Interrupt;
use crate::bench::random::{CELL, SEED, regret, show};
use crate::failure::Failure;
use crate::output::Output;
use crate::row::{self, Machine, Row};
use crate::this_machine as host;

/// Those that take part where none is named: the default, and each that is best of some kind of load or machine.
const LOCKS: [Lock; 8] = [
    Lock::Mutex,
    Lock::Paravirt,
    Lock::CnaParavirt,
    Lock::Native,
    Lock::Cna,
    Lock::Backoff,
    Lock::Simple,
    Lock::Yield,
];

/// Draws `count` cells, simulates each with all locks, and says what was regretted.
pub(super) fn run(args: &Args, count: u32) -> Result<ExitCode, Failure> {
    let locks = if args.locks.is_empty() { &LOCKS[..] } else { &args.locks };
    if locks.len() < 2 {
        return Err(Failure::usage(
            "a regret is to the best of several locks: name at least two, the one to be judged first",
        ));
    }
    let out = args.out.as_deref().map(Output::prepare).transpose()?;
    let numbers: Vec<u32> = args.cell.map_or_else(|| (1..=count).collect(), |cell| vec![cell]);
    let cells: Vec<(u32, Scenario)> = numbers
        .iter()
        .flat_map(|&number| {
            let drawn = random::draw(args.seed, number);
            locks.iter().map(move |&lock| (number, Scenario { lock, ..drawn.clone() }))
        })
        .collect();
    let interrupt = Interrupt::on_signals()?;
    let jobs: Vec<Job> = cells.iter().map(|(_, scenario)| (scenario.clone(), args.seed)).collect();
    let (ended, failed) = super::simulate_jobs(&jobs, &interrupt);
    if let Some(why) = failed {
        return Err(anyhow!(why).into());
    }
    // A cell counts as a whole.
    let finished = ended.chunks(locks.len()).zip(cells.chunks(locks.len()));
    let rows: Vec<Row> = finished
        .filter_map(|(of_cell, cells)| {
            let outcomes: Option<Vec<Outcome>> = of_cell.iter().cloned().collect();
            let rows =
                outcomes?.into_iter().zip(cells).filter_map(|(outcome, (number, scenario))| {
                    row_of(args.seed, *number, scenario, outcome)
                });
            Some(rows.collect::<Vec<Row>>())
        })
        .flatten()
        .collect();
    let partial = rows.len() < cells.len();
    if rows.is_empty() {
        super::super::tell("interrupted before the first cell was finished: nothing to report");
        return Ok(ExitCode::from(super::super::INTERRUPTED));
    }
    let mut machine = describe(args);
    if partial {
        machine.warnings.push("Not all cells came to their end: what was finished is here.".into());
    }
    let lines = row::to_json_lines(&machine, &rows)?;
    if let Some(out) = out {
        out.finish(&lines)?;
    }
    if args.json {
        super::super::say(&lines)?;
    } else {
        let names: Vec<&str> = locks.iter().map(|lock| lock.name()).collect();
        let found = regret::cells(&rows);
        let tables = show::markdown(&show::parts(&found, &names, &names[..1]));
        super::super::say(&format!(
            "SIMULATED, not measured: machines and loads drawn at random, seed {}\n\n{tables}",
            args.seed
        ))?;
    }
    Ok(if partial { ExitCode::from(super::super::INTERRUPTED) } else { ExitCode::SUCCESS })
}

/// The row of a lock in a cell, which says the machine that was drawn, too.
fn row_of(seed: u64, number: u32, scenario: &Scenario, outcome: Outcome) -> Option<Row> {
    let cell = Cell { variant: None, load: None, scenario: scenario.clone() };
    let mut row = rows::row(&cell, true, &[outcome], 1)?;
    row.params.insert(SEED.to_owned(), seed.into());
    row.params.insert(CELL.to_owned(), number.into());
    row.params.insert("machine".to_owned(), scenario.machine.name.as_str().into());
    Some(row)
}

fn describe(args: &Args) -> Machine {
    let mut machine = super::simulated(host::describe(args.seed));
    machine.cpu = "SIMULATED machines drawn at random".to_owned();
    machine.hypervisor = "none".to_owned();
    let number = |name: &str, value: Option<u32>| {
        value.map(|value| [name.to_owned(), value.to_string()]).into_iter().flatten()
    };
    let locks: Vec<&str> = args.locks.iter().map(|lock| lock.name()).collect();
    let locks = (!locks.is_empty()).then(|| ["--locks".to_owned(), locks.join(",")]);
    machine.command = ["qspin".to_owned(), "simulate".to_owned()]
        .into_iter()
        .chain(number("--random", args.random))
        .chain(number("--cell", args.cell))
        .chain(locks.into_iter().flatten())
        .chain(["--seed".to_owned(), args.seed.to_string()])
        .collect();
    machine.warnings = vec![
        "SIMULATED: nothing was measured; machines and loads were drawn at random.".to_owned(),
    ];
    machine
}
