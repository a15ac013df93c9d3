//! `qspin bench`: measures locks on this machine, side by side.

mod baseline;
mod choose;
mod contend;
mod files;
mod matrix;
mod quick;
mod random;
pub(in crate::command) mod remedies;
mod settings;
mod simulated;
mod torture;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use qspin::platform::topology::{Topology, VARIABLE};
use qspin_table::number::plural;

use super::INTERRUPTED;
use crate::bench::affinity::{Pin, Placement, allowed_cpus};
use crate::bench::busy::Pace;
use crate::bench::found::Found;
use crate::bench::interrupt::Interrupt;
use crate::bench::load::{Holder, Lasting, words};
use crate::bench::matrix::cells::Kind;
use crate::bench::plan::{HogsBeside, Plan, cells};
use crate::bench::random::draw::Loads;
use crate::bench::session;
use crate::bench::stats::median;
use crate::bench::steps::Series;
use crate::bench::workload::varied::Spread;
use crate::bench::{counters, rows, table};
use crate::contender::catalog::{self, EMPTY, Lock};
use crate::failure::Failure;
use crate::quantity::{
    Levels, Ratio, parse_duration, parse_holder, parse_levels, parse_overcommit, parse_phases,
    parse_quota, parse_ratio, parse_seconds, parse_seed, parse_threads,
};
use crate::remedy::Remedy;
use crate::report;
use crate::row::{Machine, Row};
use crate::this_machine::{self, Ticks};
use crate::tune::{self, Tune, numa_threshold};
use crate::verdict::verdict;

use baseline::Baseline;
use contend::Entrant;
use files::Files;

/// What the threads do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Workload {
    /// Critical sections and pauses of given lengths.
    Lengths,
    /// Linux's locktorture: mostly short critical sections, now and then a long one.
    Locktorture,
    /// The grid behind the backoff patch: three pauses by nine critical sections.
    KernelLockBench,
    /// Readers and writers, for reader-writer locks.
    Rw,
    /// No figures: whether each lock holds when everything happens at once.
    Torture,
}

/// Which peers are measured beside our locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Peers {
    /// None: only our own.
    None,
    /// Rust's, and the C library's.
    Rust,
    /// These, and those of C and C++ libraries that were found at build time.
    C,
}

/// Measure locks on this machine, side by side, and say which is best.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// In under a minute: random loads, short and long, calm and crowded, and one lock to take; or a load of
    /// your own, with as many numbers of threads as there is time for.
    #[arg(long)]
    quick: bool,
    /// Locks to measure, by name; `ours`, `peers`, `all` and `oracle` (what `--random`
    /// compares with) are groups [default: all that fit].
    #[arg(long, value_name = "LOCK,…", value_delimiter = ',', visible_aliases = ["contenders", "only"])]
    locks: Vec<String>,
    /// Which peers are measured beside our locks.
    #[arg(long, value_enum, default_value = "rust")]
    peers: Peers,
    /// Numbers of threads; 1 is always among them, but for series [default: up to four times the CPUs].
    #[arg(long, value_name = "N,…", allow_hyphen_values = true, value_delimiter = ',',
          value_parser = parse_threads)]
    threads: Vec<usize>,
    /// Length of the critical section [default: 100ns].
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = parse_duration)]
    critical: Option<Duration>,
    /// Length of the work between two critical sections [default: 100ns].
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = parse_duration)]
    outside: Option<Duration>,
    /// Shared cache lines that the critical section writes [default: 1].
    #[arg(long, value_name = "N", allow_negative_numbers = true,
          value_parser = clap::value_parser!(u32).range(1..=4096))]
    lines: Option<u32>,
    /// How the lengths vary [default: fixed].
    #[arg(long, value_enum)]
    lengths: Option<Spread>,
    /// So many locks, each with data of its own; every thread takes them at random [default: 1].
    #[arg(long, value_name = "N", allow_negative_numbers = true,
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    lock_count: Option<u32>,
    /// Holders that leave their CPU in one section of so many, as `sleeps/64` (for 100 µs) or `yields/64`.
    #[arg(long, value_name = "DOES/N", allow_hyphen_values = true, value_parser = parse_holder)]
    holder: Option<(Holder, u32)>,
    /// The load changes every 100 ms: to these lengths inside and outside, and back to `--critical` and
    /// `--outside`.
    #[arg(long, value_name = "TIME/TIME", allow_hyphen_values = true, value_parser = parse_phases)]
    phases: Option<Lasting>,
    /// Rounds, each of which measures everything once, in an order of its own
    /// [default: 9; locktorture 5].
    #[arg(long, value_name = "N", allow_negative_numbers = true,
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: Option<u32>,
    /// Length of a phase: throughput is measured for so long, and then waits again
    /// [default: 0.1; locktorture 0.5; kernel-lock-bench 0.02]. Torture lasts so long for each
    /// lock [default: 5].
    #[arg(long, value_name = "SECONDS", allow_hyphen_values = true,
          value_parser = parse_seconds)]
    seconds: Option<Duration>,
    /// Where threads run: each on its CPU (A), anywhere (B), all on half of the CPUs (C).
    #[arg(long, value_enum, default_value = "B")]
    pin: Pin,
    /// Seed of the order, and of what is drawn at random [default: drawn, and written down].
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = parse_seed)]
    seed: Option<u64>,
    /// Spinning processes beside the threads.
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value = "0",
          value_parser = clap::value_parser!(u32).range(0..=1024))]
    hogs: u32,
    /// Spinning threads of the same process beside the threads.
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value = "0",
          value_parser = clap::value_parser!(u32).range(0..=1024))]
    hogs_inside: u32,
    /// So many CPUs' time is all that the process may use: a control group of its own, which takes
    /// privileges.
    #[arg(long, value_name = "CPUS", allow_hyphen_values = true, value_parser = parse_quota)]
    quota: Option<f64>,
    /// So many hogs that hogs and threads are this many times the CPUs (1x: no hogs).
    #[arg(long, value_name = "1x..4x", conflicts_with = "hogs", allow_hyphen_values = true,
          value_parser = parse_overcommit)]
    overcommit: Option<u32>,
    /// What the threads do.
    #[arg(long, value_enum, default_value = "lengths")]
    workload: Workload,
    /// Two locks to compare in the grid of kernel-lock-bench, as `backoff/tas`; or readers to
    /// writers of rw, as `9:1`.
    #[arg(long, value_name = "A/B or R:W", allow_hyphen_values = true, value_parser = parse_ratio)]
    ratio: Option<Ratio>,
    /// Tunables of our locks, as `kick_ahead=2,defer=always`; `qspin locks --tunables` lists them.
    #[arg(long, value_name = "NAME=VALUE,…", allow_hyphen_values = true, value_delimiter = ',',
          value_parser = tune::parse)]
    tune: Vec<Tune>,
    /// How long those that are far away may be passed over in `cna` and `cna-paravirt`, as
    /// `--tune numa_threshold_ns` in nanoseconds [default: 1ms].
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = numa_threshold)]
    numa_threshold: Option<Tune>,
    /// What the locks count, an operation: after the tables, each counter and the averages; and in
    /// them how many hand-overs stayed local.
    #[arg(long)]
    stats: bool,
    /// The steps of the paravirt lock, each on top of those before it, one row a step; in the
    /// order of the series, or `reviewed`: kicks deferred before kick-ahead. Or `numa`: those of
    /// the NUMA-aware lock.
    #[arg(long, value_enum, value_name = "ORDER", num_args = 0..=1, require_equals = true,
          default_missing_value = "series", conflicts_with_all = ["kick_ahead", "peers"])]
    steps: Option<Series>,
    /// The remedies of document 001 against an owner that does not run, a row each: none; a, waiters yield; b, the
    /// owner asks not to be preempted; c, its run status is visible. Of ticket, simple, yield and paravirt, if no
    /// `--locks` are named.
    #[arg(long, value_name = "REMEDY,…", value_delimiter = ',',
          conflicts_with_all = ["steps", "kick_ahead", "matrix", "random", "quick", "ratio", "compare_simulated"])]
    remedy: Vec<Remedy>,
    /// Compare kick-ahead levels, as `0..5` with both ends, `0,2,4` or `3`.
    #[arg(long, value_name = "LEVELS", allow_hyphen_values = true, conflicts_with = "peers",
          value_parser = parse_levels)]
    kick_ahead: Option<Levels>,
    /// One lock against what people would use instead, over many cells, and which wins each: the
    /// default mutex, `quick` in five minutes; `disturbed` by hogs, quotas and sleeping holders; or
    /// the default reader-writer lock.
    #[arg(long, value_enum, value_name = "WHICH", visible_alias = "grid")]
    matrix: Option<Kind>,
    /// So many cells of loads drawn at random by `--seed`, and in each how far every lock is from the best of
    /// those that one could have taken: its regret. With `--out`, a run that was stopped goes on.
    #[arg(long, value_name = "CELLS", allow_negative_numbers = true,
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    random: Option<u32>,
    /// Which of the random loads [default: all, one in five disturbed].
    #[arg(long, value_enum)]
    loads: Option<Loads>,
    /// The random cell of this number alone, in 21 rounds.
    #[arg(long, value_name = "N", allow_negative_numbers = true,
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    cell: Option<u32>,
    /// Beside the figures, those that the simulator predicts for the same work on this machine: its
    /// transfers are measured first, or a file of `qspin calibrate --measure` has them. With --matrix or
    /// --random, how far off it is in all, and whether it chooses well.
    #[arg(long, value_name = "MACHINE.toml", num_args = 0..=1, require_equals = true,
          default_missing_value = "this", conflicts_with_all = ["steps", "kick_ahead", "ratio"])]
    compare_simulated: Option<String>,
    /// All figures in the tables, which then have more than 100 columns of text.
    #[arg(long)]
    wide: bool,
    /// Beside the figures, those of an earlier run: a file of `--out`.
    #[arg(long, value_name = "OLD.jsonl")]
    baseline: Option<PathBuf>,
    /// File for the matrix, as Markdown.
    #[arg(long, value_name = "FILE.md")]
    table: Option<PathBuf>,
    /// File for the rows, as JSON Lines.
    #[arg(long, value_name = "FILE.jsonl")]
    out: Option<PathBuf>,
    /// File for a report, as HTML.
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
}

impl Args {
    fn critical(&self) -> Duration {
        self.critical.unwrap_or(LENGTH)
    }

    fn outside(&self) -> Duration {
        self.outside.unwrap_or(LENGTH)
    }

    /// Whether it is reader-writer locks that are measured.
    fn of_rw(&self) -> bool {
        self.workload == Workload::Rw || self.matrix == Some(Kind::Rwlock)
    }

    fn lines(&self) -> u32 {
        self.lines.unwrap_or(1)
    }

    /// What makes a load more than a pair of lengths, and whether it was given.
    fn varied(&self) -> [(&'static str, bool); 4] {
        [
            ("--lengths", self.lengths.is_some()),
            ("--lock-count", self.lock_count.is_some()),
            ("--holder", self.holder.is_some()),
            ("--phases", self.phases.is_some()),
        ]
    }

    /// What stands beside the threads within the process, and whether it was given.
    fn beside(&self) -> [(&'static str, bool); 2] {
        [("--hogs-inside", self.hogs_inside > 0), ("--quota", self.quota.is_some())]
    }

    /// Everything that was tuned, each with the option that says so.
    fn tunes(&self) -> Vec<(&'static str, Tune)> {
        let tunes = self.tune.iter().map(|tune| ("--tune", *tune));
        tunes.chain(self.numa_threshold.map(|tune| ("--numa-threshold", tune))).collect()
    }

    fn seed(&self) -> u64 {
        self.seed.unwrap_or_else(|| u64::from(fastrand::u32(..)))
    }

    fn load(&self) -> HogsBeside {
        self.overcommit.map_or(HogsBeside::Hogs(self.hogs as usize), HogsBeside::Overcommit)
    }

    /// The option that asks for a series, where there is one.
    fn series(&self) -> Option<&'static str> {
        match (self.steps, &self.kick_ahead) {
            (Some(_), _) => Some("--steps"),
            (None, Some(_)) => Some("--kick-ahead"),
            (None, None) => (!self.remedy.is_empty()).then_some("--remedy"),
        }
    }
}

/// The length of work where none is given.
const LENGTH: Duration = Duration::from_nanos(100);

/// What `--quick` leaves for measuring, of its minute.
const QUICK_BUDGET: Duration = Duration::from_secs(42);

/// Measures and reports.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    random::check(args)?;
    matrix::check(args)?;
    choose::check(args)?;
    baseline::check(args)?;
    // A library does without a malformed one; a user that measures means it.
    Topology::from_value(std::env::var_os(VARIABLE).as_deref()).map_err(Failure::usage)?;
    if args.workload == Workload::Torture {
        return torture::run(args);
    }
    if let Some(count) = args.random {
        return random::run(args, count);
    }
    if let Some(kind) = args.matrix {
        return matrix::run(args, kind);
    }
    if quick::draws(args) {
        return quick::run(args);
    }
    let entrants = contend::entrants(args)?;
    let simulator = simulated::Simulator::asked(args, &entrants)?;
    let mut locks: Vec<Lock> = entrants.iter().map(|entrant| entrant.lock).collect();
    let files = Files::prepare(args)?;
    let baseline = Baseline::read(args)?;
    let interrupt = Interrupt::on_signals()?;
    let seed = args.seed();
    let mut machine = this_machine::describe(seed);
    machine.warnings.extend(choose::left_out(args));
    machine.warnings.extend(contend::left_out(args)?);
    let cpus = allowed_cpus();
    let threads = choose::threads(args, cpus.len());
    let (threads, left_out) = choose::within_budget(args, threads, locks.len());
    machine.warnings.extend(left_out);
    let threads = possible(threads, &mut machine);
    let settings = settings::settings(args, Pace::calibrate(), seed);
    let hogs = |threads| args.load().hogs(threads, cpus.len());
    let empty = catalog::locks().into_iter().find(|lock| lock.name == EMPTY);
    let mut cells = cells(&mut locks, &settings, &threads, hogs, empty);
    contend::inform(&mut cells, &entrants);
    if cells.iter().any(|cell| cell.hogs > 0) {
        machine.warnings.push("Hogs spin beside the threads, as was asked.".to_owned());
    }
    let (rounds, phase) = choose::length(args);
    let plan = Plan {
        locks,
        settings,
        cells,
        placement: Placement::new(args.pin, cpus),
        pin: args.pin.to_string(),
        rounds,
        phase,
        turn: choose::turn(args),
        waits: args.workload != Workload::KernelLockBench,
        fairness: None,
        cell_by_cell: false,
        counting: if args.stats { Duration::MAX } else { COUNTING },
        budget: args.quick.then_some(QUICK_BUDGET),
        seed,
    };
    warn(&machine.warnings);
    super::say(&card(args, &machine, &plan, &threads))?;
    let Some(found) = measure(&plan, &mut machine, &interrupt)? else {
        return Ok(ExitCode::from(INTERRUPTED));
    };
    let rows = rows::rows(&plan, &found);
    let mut text = show(args, &machine, &plan, &entrants, &found, &rows);
    if let Some(baseline) = baseline {
        text += &baseline.show(&machine, &rows);
    }
    let measured = if simulator.is_some() { rows.clone() } else { Vec::new() };
    // Files first: a standard output that takes no more must not cost them.
    files.write(&text, machine, rows)?;
    super::say(&text)?;
    let code = ended(found)?;
    if let Some(simulator) = simulator {
        super::say(&simulator.compare(&plan, &measured, &interrupt)?)?;
    }
    Ok(code)
}

/// Tells of everything that makes the figures less trustworthy.
fn warn(warnings: &[String]) {
    for warning in warnings {
        super::tell(&format!("warning: {warning}"));
    }
}

/// Measures what is planned, and writes into the machine row what only the run could tell; `None`
/// where nothing was finished.
fn measure(
    plan: &Plan,
    machine: &mut Machine,
    interrupt: &Interrupt,
) -> Result<Option<Found>, Failure> {
    let before = Ticks::now();
    let found = session::run(plan, interrupt)?;
    if found.rounds == 0 {
        super::tell("interrupted before the first round was finished: nothing to report");
        return Ok(None);
    }
    complete(machine, plan, &found, before);
    Ok(Some(found))
}

/// How a run ends of which everything was shown.
fn ended(found: Found) -> Result<ExitCode, Failure> {
    match found.failure {
        Some(why) => Err(why.into()),
        None if found.partial => Ok(ExitCode::from(INTERRUPTED)),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// How long events are counted where the user did not ask for them.
const COUNTING: Duration = Duration::from_millis(50);

/// The numbers of threads, as far as the machine makes them.
fn possible(threads: Vec<usize>, machine: &mut Machine) -> Vec<usize> {
    let most = threads.iter().copied().max().unwrap_or(1);
    let made = this_machine::threads_possible(most);
    if made == most {
        return threads;
    }
    let (fitting, safe) = choose::fit(&threads, made);
    machine.warnings.push(format!(
        "The machine made {made} of {most} threads: {safe} are measured where more were asked for."
    ));
    fitting
}

/// What the machine is and what is about to be measured.
fn card(args: &Args, machine: &Machine, plan: &Plan, threads: &[usize]) -> String {
    let quota = machine
        .quota_cpus
        .map_or_else(|| "no quota".to_owned(), |quota| format!("quota {quota:.2} CPUs"));
    let threads: Vec<String> = threads.iter().map(ToString::to_string).collect();
    let shown = plan
        .locks
        .iter()
        .enumerate()
        .filter(|(index, _)| plan.cells.iter().any(|cell| cell.shown && cell.lock == *index));
    let mut locks: Vec<&str> = shown.map(|(_, lock)| lock.name).collect();
    locks.dedup();
    let tuned: Vec<String> = args.tunes().iter().map(|(_, tune)| tune.show()).collect();
    let tuned = if tuned.is_empty() { "nothing".to_owned() } else { tuned.join(" ") };
    let setting = &plan.settings[0];
    let work = match setting.workload {
        "lengths" => format!(
            "critical {} ns, outside {} ns, {}{}",
            setting.critical_ns,
            setting.outside_ns,
            plural(f64::from(setting.lines), "shared line"),
            words::params(&setting.params),
        ),
        other => other.to_owned(),
    };
    format!(
        "machine   {}, {}, {}, hypervisor {}, {quota}\n\
         {}\
         kernel    {}, governor {}, load before {:.2}\n\
         locks     {}\n\
         tuned     {tuned}\n\
         threads   {}\n\
         work      {work}, pin {}\n\
         run       seed {}, {} rounds, phases of {:.3} s\n\n",
        machine.cpu,
        plural(f64::from(machine.cpus), "CPU"),
        plural(f64::from(machine.numa_nodes), "NUMA node"),
        machine.hypervisor,
        topology(machine.topology.as_deref()),
        machine.kernel,
        machine.governor.as_deref().unwrap_or("not told"),
        machine.load,
        locks.join(" "),
        threads.join(" "),
        plan.pin,
        plan.seed,
        if plan.budget.is_some() {
            format!("up to {}", plan.rounds)
        } else {
            plan.rounds.to_string()
        },
        plan.phase.as_secs_f64(),
    )
}

/// The line of a card that says that the topology is another one.
fn topology(made_up: Option<&str>) -> String {
    made_up
        .map(|described| format!("topology  {}\n", report::machine::made_up(described)))
        .unwrap_or_default()
}

/// Writes into the machine row what only the run could tell.
fn complete(machine: &mut Machine, plan: &Plan, found: &Found, before: Option<Ticks>) {
    machine.floor_ns = Some(median(&mut found.floor_ns.clone()));
    machine.order = found.order.iter().map(|order| plan.show_order(order)).collect();
    let mut warnings = match (before, Ticks::now()) {
        (Some(before), Some(after)) => after.disturbances_since(before),
        _ => Vec::new(),
    };
    warnings.extend(found.distances.warning());
    if found.partial {
        let why = found.failure.as_ref().map_or_else(
            || "Interrupted".to_owned(),
            |why| format!("Stopped by a failure ({why:#})"),
        );
        warnings.push(format!(
            "{why}: {} of {} rounds were finished and are reported.",
            found.rounds, plan.rounds
        ));
    }
    warn(&warnings);
    machine.warnings.extend(warnings);
}

/// What the terminal shows of a run.
fn show(
    args: &Args,
    machine: &Machine,
    plan: &Plan,
    entrants: &[Entrant],
    found: &Found,
    rows: &[Row],
) -> String {
    let series = contend::show(args, machine, plan, entrants, rows);
    let verdict = match args.workload {
        // A verdict a cell would bury the grid; the report has it. A series has words of its own.
        Workload::KernelLockBench => String::new(),
        _ if series.is_some() => String::new(),
        _ => format!("\n{}\n", verdict(machine, rows)),
    };
    let shown = series.unwrap_or_else(|| {
        settings::show(args, plan, found, rows, || {
            table::tables(rows, machine.cpus, args.stats, args.wide)
        })
    });
    let counters = if args.stats {
        format!("\n{}", counters::show(rows, machine.cpus))
    } else {
        String::new()
    };
    format!("{shown}{counters}{verdict}")
}
