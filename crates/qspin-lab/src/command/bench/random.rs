//! `qspin bench --random`: how far locks are from the best of each cell, over loads drawn at random.

mod again;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::mem;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use qspin_table::number::{list, plural};

use crate::bench::affinity::{Placement, allowed_cpus};
use crate::bench::busy::Pace;
use crate::bench::interrupt::Interrupt;
use crate::bench::plan::{Cell, Fairness, Plan, Variant};
use crate::bench::random::draw::{Drawn, draw};
use crate::bench::random::journal::Journal;
use crate::bench::random::regret::{Of, cells, is_repeated};
use crate::bench::random::{AGAIN, CELL, REPEATED, ROUNDS_AGAIN, SEED, TWIN, oracle, show};
use crate::bench::{rows, session};
use crate::contender::catalog::Lock;
use crate::failure::Failure;
use crate::row::{Machine, Row};
use crate::this_machine::{self, Distances, QuotaGroup, Ticks};
use crate::tune::Tune;

use super::contend::{self, Entrant};
use super::simulated::Simulator;
use super::{Args, Files, INTERRUPTED, Peers, Workload, warn};

/// Rounds of a cell where nothing is said.
const ROUNDS: usize = 5;
/// The least length of a phase where nothing is said.
const PHASE: Duration = Duration::from_millis(120);
/// The least that a phase gives to each thread where threads outnumber CPUs: two turns of 3 to 4 ms.
const TURN: Duration = Duration::from_millis(8);
/// A phase sees at least so many operations of a thread that never waits.
const CYCLES: u32 = 100;
/// But takes no longer for them than this.
const LONGEST_PHASE: Duration = Duration::from_millis(500);
/// Length of the run that shows how long threads wait.
const WAITS: Duration = Duration::from_millis(400);
/// What a measurement takes beside its phase: threads that come and go, and warm up.
const COMING_AND_GOING: Duration = Duration::from_millis(25);

/// Refuses what does not fit.
pub(super) fn check(args: &Args) -> Result<(), Failure> {
    if args.random.is_none() {
        let alone = [("--cell", args.cell.is_some()), ("--loads", args.loads.is_some())];
        return match alone.into_iter().find(|(_, given)| *given) {
            Some((option, _)) => {
                Err(Failure::usage(format!("{option} is for random cells: add --random 200")))
            }
            None => Ok(()),
        };
    }
    let given = [
        ("--workload", !matches!(args.workload, Workload::Lengths | Workload::Rw)),
        ("--quick", args.quick),
        ("--peers", args.peers != Peers::Rust),
        ("--threads", !args.threads.is_empty()),
        ("--critical", args.critical.is_some()),
        ("--outside", args.outside.is_some()),
        ("--lines", args.lines.is_some()),
        ("--hogs", args.hogs > 0),
        ("--overcommit", args.overcommit.is_some()),
        ("--ratio", args.ratio.is_some()),
        ("--stats", args.stats),
        ("--steps", args.steps.is_some()),
        ("--kick-ahead", args.kick_ahead.is_some()),
        ("--matrix", args.matrix.is_some()),
    ];
    match given.into_iter().chain(args.varied()).chain(args.beside()).find(|(_, given)| *given) {
        Some((option, _)) => Err(Failure::usage(format!(
            "--random draws its loads: leave out {option}; --locks, --rounds, --seconds, --loads and \
             --workload rw change what is measured"
        ))),
        None => Ok(()),
    }
}

/// The contenders, the judged one and its twin among them.
struct Field {
    entrants: Vec<Entrant>,
    subject: &'static str,
    twin: &'static str,
    /// Of which the oracle chooses, as far as they take part.
    oracle: Vec<&'static str>,
}

fn field(args: &Args) -> Result<Field, Failure> {
    let candidates = oracle(args.of_rw());
    let mut entrants = contend::entrants(args)?;
    if let Some(entrant) = entrants.iter().find(|entrant| entrant.lock.is_for_one_thread()) {
        let name = entrant.lock.name;
        return Err(Failure::usage(format!("{name} is for one thread only: leave it out")));
    }
    let names: BTreeSet<&'static str> = entrants.iter().map(|entrant| entrant.lock.name).collect();
    let oracle: Vec<&'static str> =
        candidates.iter().copied().filter(|name| names.contains(name)).collect();
    if oracle.len() < 2 {
        let all: Vec<String> = candidates.iter().map(|name| (*name).to_owned()).collect();
        return Err(Failure::usage(format!(
            "a regret is to the best of {}: name at least two of them",
            list(&all, "and")
        )));
    }
    // Of locks that are named the first is judged.
    let judged =
        entrants.iter().position(|entrant| entrant.lock.name == candidates[0]).unwrap_or(0);
    let subject = entrants[judged].lock;
    let twin: &'static str = Box::leak(format!("{}{TWIN}", subject.name).into_boxed_str());
    let tunes: Vec<Tune> = args.tunes().iter().map(|(_, tune)| *tune).collect();
    entrants.insert(judged + 1, Entrant::new(Lock { name: twin, ..subject }, &tunes));
    Ok(Field { entrants, subject: subject.name, twin, oracle })
}

/// Everything that the cells of a run have in common.
struct Run<'a> {
    args: &'a Args,
    field: Field,
    seed: u64,
    pace: Pace,
    placement: Placement,
    interrupt: Interrupt,
    rounds: usize,
    /// The most threads that the machine makes.
    most_threads: usize,
    /// How far CPUs were from each other, over all cells.
    distances: RefCell<Distances>,
}

/// Measures drawn cells and says what was regretted.
pub(super) fn run(args: &Args, count: u32) -> Result<ExitCode, Failure> {
    let field = field(args)?;
    let simulator = Simulator::of_many(args, &field.entrants)?;
    let files = Files::prepare(args)?;
    let interrupt = Interrupt::on_signals()?;
    let seed = args.seed();
    let cpus = allowed_cpus();
    let mut machine = this_machine::describe(seed);
    let drawn = drawn(args, count, seed, cpus.len(), &mut machine)?;
    let wanted = drawn.iter().map(|cell| cell.threads).max().unwrap_or(1);
    let made = this_machine::threads_possible(wanted);
    if made < wanted {
        machine.warnings.push(format!(
            "The machine made {made} of {wanted} threads: cells with more have fewer than were drawn."
        ));
    }
    let repeated = if args.cell.is_some() { ROUNDS_AGAIN } else { ROUNDS };
    let run = Run {
        args,
        field,
        seed,
        pace: Pace::calibrate(),
        placement: Placement::new(args.pin, cpus),
        interrupt,
        rounds: args.rounds.map_or(repeated, |rounds| rounds as usize),
        most_threads: if made < wanted { (made * 9 / 10).max(2) } else { wanted },
        distances: RefCell::default(),
    };
    warn(&machine.warnings);
    let before = Ticks::now();
    let (mut journal, mut rows) = match &args.out {
        Some(out) if args.cell.is_none() => {
            let (journal, rows) = Journal::open(out, &machine)?;
            (Some(journal), rows)
        }
        _ => (None, Vec::new()),
    };
    super::super::say(&run.card(&drawn, rows.len()))?;
    let mut whole = run.measure(&drawn, &mut rows, &mut journal)?;
    if whole && args.cell.is_none() {
        whole = run.measure_again(&drawn, &mut rows, &mut journal)?;
    }
    if let (Some(before), Some(after)) = (before, Ticks::now()) {
        let mut disturbances = after.disturbances_since(before);
        disturbances.extend(run.distances.borrow().warning());
        warn(&disturbances);
        machine.warnings.extend(disturbances);
    }
    let found = cells(&rows);
    if found.is_empty() {
        super::super::tell("interrupted before the first cell was finished: nothing to report");
        return Ok(ExitCode::from(INTERRUPTED));
    }
    let text = format!(
        "\n{}",
        show::markdown(&show::parts(&found, &run.field.oracle, &[run.field.subject]))
    );
    let measured = if simulator.is_some() { rows.clone() } else { Vec::new() };
    if whole {
        files.write(&text, machine, rows)?;
        if let Some(journal) = journal {
            journal.done();
        }
    } else if let Some(journal) = &journal {
        let path = journal.path().display();
        super::super::tell(&format!(
            "{path} has what was finished: the same command goes on there"
        ));
    }
    super::super::say(&text)?;
    if let (Some(simulator), true) = (simulator, whole) {
        let of_cells: Vec<Vec<&Row>> = cells(&measured).into_iter().map(|cell| cell.rows).collect();
        super::super::say(&simulator.judge(&of_cells, &run.interrupt)?)?;
    }
    Ok(if whole { ExitCode::SUCCESS } else { ExitCode::from(INTERRUPTED) })
}

/// The cells that were asked for, without those that cannot be measured here.
fn drawn(
    args: &Args,
    count: u32,
    seed: u64,
    cpus: usize,
    machine: &mut Machine,
) -> Result<Vec<Drawn>, Failure> {
    let draw = |number| draw(seed, number, cpus, args.of_rw());
    let mut drawn: Vec<Drawn> = match args.cell {
        Some(number) => vec![draw(number)],
        None => args.loads.unwrap_or_default().numbers(count).map(draw).collect(),
    };
    if let Some(cpus) = drawn.iter().find_map(|cell| cell.load.quota)
        && let Err(why) = QuotaGroup::make(cpus)
    {
        drawn.retain(|cell| cell.load.quota.is_none());
        machine.warnings.push(format!("The cells with a quota of CPU time are left out: {why}."));
    }
    if drawn.is_empty() {
        return Err(Failure::usage("no cell is left: ask for more, as --random 200"));
    }
    Ok(drawn)
}

impl Run<'_> {
    /// Measures what is not there yet; whether all of it was.
    fn measure(
        &self,
        drawn: &[Drawn],
        rows: &mut Vec<Row>,
        journal: &mut Option<Journal>,
    ) -> Result<bool, Failure> {
        let done = |rows: &[Row], cell: &Drawn| {
            let of = |row: &&Row| row.params.get(CELL) == Some(&cell.number.into());
            rows.iter().filter(of).count() >= self.field.entrants.len()
        };
        let (there, missing): (Vec<&Drawn>, Vec<&Drawn>) =
            drawn.iter().partition(|cell| done(rows, cell));
        let mut left: Duration = missing.iter().map(|cell| self.takes(cell)).sum();
        let (began, mut planned) = (Instant::now(), Duration::ZERO);
        for (index, cell) in missing.iter().enumerate() {
            let Some(found) = self.cell(cell)? else { return Ok(false) };
            if let Some(journal) = journal {
                journal.add(&found)?;
            }
            planned += self.takes(cell);
            left = left.saturating_sub(self.takes(cell));
            let pace = began.elapsed().as_secs_f64() / planned.as_secs_f64();
            let position = format!("{}/{}", there.len() + index + 1, drawn.len());
            self.tell(cell, &found, &position, left.mul_f64(pace))?;
            // What was cut off in the middle of a cell is replaced.
            rows.retain(|row| row.params.get(CELL) != Some(&cell.number.into()));
            rows.extend(found);
        }
        Ok(true)
    }

    /// Says what a cell has shown, as soon as it has.
    fn tell(
        &self,
        cell: &Drawn,
        rows: &[Row],
        position: &str,
        left: Duration,
    ) -> Result<(), Failure> {
        let found = cells(rows);
        let Some(found) = found.first() else { return Ok(()) };
        super::super::say(&format!(
            "{position:>7}  cell {}: {}\n         {}\n         qspin bench {} --locks {}\n         {} left\n",
            cell.number,
            show::name(found),
            show::regrets(found, &self.field.oracle),
            cell.options(),
            self.names(),
            minutes(left),
        ))
    }

    /// The contenders as `--locks` names them.
    fn names(&self) -> String {
        let names = self.field.entrants.iter().map(|entrant| entrant.lock.name);
        names.filter(|name| *name != self.field.twin).collect::<Vec<_>>().join(",")
    }

    /// Measures a cell; `None` when interrupted.
    fn cell(&self, cell: &Drawn) -> Result<Option<Vec<Row>>, Failure> {
        let plan = self.plan(cell);
        let mut found = session::run(&plan, &self.interrupt)?;
        self.distances.borrow_mut().append(mem::take(&mut found.distances));
        if let Some(why) = found.failure {
            return Err(why.into());
        }
        Ok((!found.partial).then(|| rows::rows(&plan, &found)))
    }

    fn plan(&self, cell: &Drawn) -> Plan {
        let seed = self.seed.wrapping_add(u64::from(cell.number));
        let mut setting = cell.load.setting(self.pace, seed);
        setting.params.insert(SEED.to_owned(), self.seed.into());
        setting.params.insert(CELL.to_owned(), cell.number.into());
        let locks: Vec<Lock> = self.field.entrants.iter().map(|entrant| entrant.lock).collect();
        let threads = cell.threads.min(self.most_threads);
        let mut cells: Vec<Cell> = (0..locks.len())
            .map(|lock| Cell {
                lock,
                variant: Variant::default(),
                threads,
                setting: 0,
                hogs: cell.hogs,
                shown: true,
            })
            .collect();
        contend::inform(&mut cells, &self.field.entrants);
        let named = locks.iter().map(|lock| lock.name).collect();
        // Longer or shorter, as the rounds are.
        let waits = self
            .args
            .seconds
            .map_or(WAITS, |phase| WAITS.mul_f64(phase.as_secs_f64() / PHASE.as_secs_f64()));
        let phase = self
            .args
            .seconds
            .unwrap_or_else(|| PHASE.max((cell.cycle() * CYCLES).min(LONGEST_PHASE)));
        Plan {
            locks,
            settings: vec![setting],
            cells,
            placement: self.placement.clone(),
            pin: self.args.pin.to_string(),
            rounds: self.rounds,
            phase,
            turn: if self.args.seconds.is_some() { Duration::ZERO } else { TURN },
            waits: false,
            fairness: Some(Fairness { length: waits.max(phase), locks: named }),
            cell_by_cell: true,
            counting: Duration::ZERO,
            budget: None,
            seed,
        }
    }

    /// About how long a cell takes.
    fn takes(&self, cell: &Drawn) -> Duration {
        let plan = self.plan(cell);
        let phase = plan.phase_of(plan.cells[0]) + COMING_AND_GOING;
        let waits = plan.fairness.map_or(Duration::ZERO, |it| it.length) + COMING_AND_GOING;
        (phase * self.rounds as u32 + waits) * plan.cells.len() as u32
    }

    /// What is about to be measured.
    fn card(&self, drawn: &[Drawn], there: usize) -> String {
        let takes: Duration = drawn.iter().map(|cell| self.takes(cell)).sum();
        let there = match there / self.field.entrants.len() {
            0 => String::new(),
            cells => format!(" ({} there already)", plural(cells as f64, "cell")),
        };
        format!(
            "random    {} of seed {}{there}, {} each, about {} and what is measured again\n\
             regret    throughput of the best over the lock's own, * the best; of {}\n\
             beside    {}\n\n",
            plural(drawn.len() as f64, "cell"),
            self.seed,
            plural(self.rounds as f64, "round"),
            minutes(takes),
            self.field.oracle.join(" "),
            self.beside(),
        )
    }

    fn beside(&self) -> String {
        let names = self.field.entrants.iter().map(|entrant| entrant.lock.name);
        let beside: Vec<&str> = names.filter(|name| !self.field.oracle.contains(name)).collect();
        format!(
            "{} ({} is {} once more: noise)",
            beside.join(" "),
            self.field.twin,
            self.field.subject
        )
    }

    /// Cells in which the judged lock or its twin was far off, once more by a fresh process; whether all were.
    fn measure_again(
        &self,
        drawn: &[Drawn],
        rows: &mut Vec<Row>,
        journal: &mut Option<Journal>,
    ) -> Result<bool, Failure> {
        let far = |number: u32| {
            let found = cells(rows);
            let cell = found.iter().find(|cell| cell.number == number && !cell.repeated)?;
            let regret = |lock| cell.regret(lock, Of::Throughput, &self.field.oracle);
            let regrets = [self.field.subject, self.field.twin].into_iter().filter_map(regret);
            regrets.into_iter().any(|regret| regret > AGAIN).then_some(())
        };
        let far: Vec<&Drawn> = drawn.iter().filter(|cell| far(cell.number).is_some()).collect();
        if far.is_empty() {
            return Ok(true);
        }
        super::super::say(&format!(
            "\n{} with a regret above {AGAIN:.2}: again in {ROUNDS_AGAIN} rounds, each by a fresh process\n\n",
            plural(far.len() as f64, "cell")
        ))?;
        let (began, mut done) = (Instant::now(), 0_u32);
        for cell in &far {
            let Some(mut found) = again::measure(self, cell)? else { return Ok(false) };
            for row in &mut found {
                row.params.insert(REPEATED.to_owned(), true.into());
            }
            if let Some(journal) = journal {
                journal.add(&found)?;
            }
            done += 1;
            let left = (began.elapsed() / done) * (far.len() as u32 - done);
            self.tell(cell, &found, &format!("{done}/{}", far.len()), left)?;
            rows.retain(|row| {
                !is_repeated(row) || row.params.get(CELL) != Some(&cell.number.into())
            });
            rows.extend(found);
        }
        Ok(true)
    }
}

/// `3 min`, `40 s`.
fn minutes(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..100 => format!("{seconds} s"),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}
