//! The contenders, each in its form: the locks that were named, each as it was tuned; or the
//! lines of a series, each compared with another.

use std::collections::BTreeSet;

use qspin::platform::topology;
use qspin::tuning::{Tuning, kick_ahead_level};
use qspin_table::number::{list, plural};

use crate::bench::affinity::allowed_cpus;
use crate::bench::plan::{Cell, Plan, Variant};
use crate::bench::series::{self, Line};
use crate::bench::steps::{self, Series};
use crate::contender::catalog::{self, Lock};
use crate::failure::Failure;
use crate::remedy::Remedy;
use crate::row::{Machine, Row};
use crate::tune::{self, Tune};
use crate::verdict::starving;

use super::{Args, Workload, choose, remedies};

/// A lock that takes part.
pub(super) struct Entrant {
    /// The lock.
    pub lock: Lock,
    /// Its form at a number of threads.
    form: Box<dyn Fn(u32) -> Variant>,
    /// Its line, where it is part of a series.
    line: Option<Place>,
}

/// A place in a series.
struct Place {
    label: String,
    base: Option<usize>,
    reference: bool,
}

impl Entrant {
    /// Its form at a number of threads.
    pub(super) fn variant(&self, threads: u32) -> Variant {
        (self.form)(threads)
    }

    /// A lock by itself, with that of what was tuned which it reads.
    pub(super) fn new(lock: Lock, tunes: &[Tune]) -> Self {
        let variant = Variant { tuning: heeded(&lock, tunes), ..Variant::default() };
        Self { lock, form: Box::new(move |_| variant), line: None }
    }

    fn reference(lock: Lock, tunes: &[Tune]) -> Self {
        let line = Place { label: lock.name.to_owned(), base: None, reference: true };
        Self { line: Some(line), ..Self::new(lock, tunes) }
    }
}

/// The tuning of a lock: of what was tuned, that which it reads.
fn heeded(lock: &Lock, tunes: &[Tune]) -> &'static Tuning {
    tune::tuning(tunes.iter().filter(|tune| lock.heeds(tune.tunable())))
}

/// Gives every cell the form in which its lock takes part.
pub(super) fn inform(cells: &mut [Cell], entrants: &[Entrant]) {
    for cell in cells {
        if let Some(entrant) = entrants.get(cell.lock) {
            cell.variant = entrant.variant(cell.threads as u32);
        }
    }
}

/// Everything that takes part.
pub(super) fn entrants(args: &Args) -> Result<Vec<Entrant>, Failure> {
    check(args)?;
    let given = args.tunes();
    let tunes: Vec<Tune> = given.iter().map(|(_, tune)| *tune).collect();
    let entrants = match (args.steps, &args.kick_ahead) {
        (Some(series), _) => in_steps(&tunes, series)?,
        (None, Some(levels)) => kicking_ahead(args, &tunes, &levels.0)?,
        (None, None) if !args.remedy.is_empty() => in_remedies(args, &tunes)?,
        (None, None) => {
            let locks = choose::locks(args)?.into_iter();
            locks.map(|lock| Entrant::new(lock, &tunes)).collect()
        }
    };
    for (option, tune) in given {
        if !entrants.iter().any(|entrant| entrant.lock.heeds(tune.tunable())) {
            let heeding: Vec<String> = catalog::locks()
                .iter()
                .filter(|lock| lock.heeds(tune.tunable()))
                .map(|lock| lock.name.to_owned())
                .collect();
            return Err(Failure::usage(format!(
                "{option} {} says nothing to these locks: add {}",
                tune.show(),
                list(&heeding, "or")
            )));
        }
    }
    if args.stats && !entrants.iter().any(|entrant| entrant.lock.counts()) {
        return Err(Failure::usage(
            "--stats has nothing to show, since none of these locks counts: add one of qspin's own",
        ));
    }
    Ok(entrants)
}

/// Refuses what does not fit together.
fn check(args: &Args) -> Result<(), Failure> {
    let tunes = args.tunes();
    for (index, (option, tune)) in tunes.iter().enumerate() {
        let earlier = tunes[..index].iter().find(|(_, other)| other.name() == tune.name());
        if let Some((other, _)) = earlier {
            let name = tune.name();
            return Err(Failure::usage(if other == option {
                format!("{option} sets {name} twice: give it once")
            } else {
                format!("{other} and {option} both set {name}: give one of them")
            }));
        }
    }
    if args.stats && args.workload == Workload::KernelLockBench {
        return Err(Failure::usage(
            "--stats would bury the grid of kernel-lock-bench: take --workload lengths",
        ));
    }
    let Some(option) = args.series() else { return Ok(()) };
    if !matches!(args.workload, Workload::Lengths | Workload::Locktorture) {
        return Err(Failure::usage(format!(
            "{option} measures locks under --workload lengths or locktorture only"
        )));
    }
    let sets = match args.steps {
        Some(series) => series.sets(),
        None if args.remedy.is_empty() => &["kick_ahead"],
        None => remedies::TUNES,
    };
    if let Some((by, tune)) = tunes.iter().find(|(_, tune)| sets.contains(&tune.name())) {
        let name = tune.name();
        return Err(Failure::usage(if *by == "--tune" {
            format!("{option} sets {name} itself: leave it out of --tune")
        } else {
            format!("{option} sets {name} itself: leave out {by}")
        }));
    }
    if args.steps.is_some() && !args.locks.is_empty() {
        return Err(Failure::usage("--steps names its locks itself: leave out --locks"));
    }
    Ok(())
}

fn named(name: &str) -> Result<Lock, Failure> {
    let lock = catalog::locks().into_iter().find(|lock| lock.name == name);
    lock.ok_or_else(|| Failure::usage(format!("this build has no lock `{name}`")))
}

/// What stands above every series, to show where its lines are.
fn references(names: [&str; 2], tunes: &[Tune]) -> Result<Vec<Entrant>, Failure> {
    names.map(|name| Ok(Entrant::reference(named(name)?, tunes))).into_iter().collect()
}

fn in_steps(tunes: &[Tune], series: Series) -> Result<Vec<Entrant>, Failure> {
    let mut entrants = references(series.references(), tunes)?;
    let above = entrants.len();
    let all = steps::steps(series);
    for (index, step) in all.iter().enumerate() {
        let lock = named(step.lock)?;
        let base = *heeded(&lock, tunes);
        let so_far = all[..=index].to_vec();
        let (counting, name) = (step.counting, step.name);
        let form = move |threads| Variant {
            // A thread is a virtual CPU.
            tuning: tune::keep(steps::tuning(&so_far, base, threads)),
            counting,
            step: Some(name),
            remedy: None,
        };
        let line = Place {
            label: step.label.to_owned(),
            base: steps::base(&all, index).map(|base| above + base),
            reference: false,
        };
        entrants.push(Entrant { lock, form: Box::new(form), line: Some(line) });
    }
    Ok(entrants)
}

fn kicking_ahead(args: &Args, tunes: &[Tune], levels: &[u32]) -> Result<Vec<Entrant>, Failure> {
    let lock = match &args.locks[..] {
        [] => named("paravirt-queued")?,
        [name] => catalog::locks()
            .into_iter()
            .find(|lock| lock.name == name.trim() && kicks_ahead(lock))
            .ok_or_else(one_that_kicks_ahead)?,
        _ => return Err(one_that_kicks_ahead()),
    };
    let mut entrants = references(["native", "std"], tunes)?;
    let above = entrants.len();
    for (index, &level) in levels.iter().enumerate() {
        let ahead = Tune::of("kick_ahead", level)
            .ok_or_else(|| Failure::usage(format!("{level} is no kick-ahead level")))?;
        let tunes: Vec<Tune> = tunes.iter().copied().chain([ahead]).collect();
        let line = Place {
            label: format!("{} {}", lock.name, ahead.show()),
            base: index.checked_sub(1).map(|before| above + before),
            reference: false,
        };
        entrants.push(Entrant { line: Some(line), ..Entrant::new(lock, &tunes) });
    }
    Ok(entrants)
}

/// A lock in a remedy: what makes it, or why it is not to be had.
type InRemedy = (Lock, Remedy, Result<Vec<Tune>, String>);

/// Each lock in each remedy that was asked for.
fn remedies_of(args: &Args) -> Result<Vec<InRemedy>, Failure> {
    let locks = if args.locks.is_empty() {
        remedies::LOCKS.into_iter().map(named).collect::<Result<Vec<_>, _>>()?
    } else {
        choose::locks(args)?
    };
    let mut asked = args.remedy.clone();
    asked.sort_unstable();
    asked.dedup();
    let in_each = |lock| asked.iter().map(move |&one| (lock, one, remedies::of(one, &lock)));
    Ok(locks.into_iter().flat_map(in_each).collect())
}

fn in_remedies(args: &Args, tunes: &[Tune]) -> Result<Vec<Entrant>, Failure> {
    let all = remedies_of(args)?;
    let mut entrants: Vec<Entrant> = Vec::new();
    // The line of the same lock without a remedy.
    let mut without = None;
    for (lock, remedy, own) in &all {
        let Ok(own) = own else { continue };
        let tuning = heeded(lock, &[tunes, &own[..]].concat());
        let variant = Variant { tuning, remedy: Some(*remedy), ..Variant::default() };
        if *remedy == Remedy::None {
            without = Some(entrants.len());
        }
        let base = without.filter(|&at| at < entrants.len() && entrants[at].lock.name == lock.name);
        let label = format!("{} {remedy}", lock.name);
        let line = Some(Place { label, base, reference: false });
        entrants.push(Entrant { lock: *lock, form: Box::new(move |_| variant), line });
    }
    if entrants.is_empty() {
        let why = left_out(args)?.join(" ");
        return Err(Failure::usage(format!("nothing is left to measure: {why}")));
    }
    Ok(entrants)
}

/// The remedies that are not to be had, a sentence each.
pub(super) fn left_out(args: &Args) -> Result<Vec<String>, Failure> {
    if args.remedy.is_empty() {
        return Ok(Vec::new());
    }
    let all = remedies_of(args)?.into_iter();
    Ok(all
        .filter_map(|(lock, remedy, own)| Some(remedies::left_out(lock.name, remedy, &own.err()?)))
        .collect())
}

fn kicks_ahead(lock: &Lock) -> bool {
    Tune::of("kick_ahead", 0).is_some_and(|ahead| lock.heeds(ahead.tunable()))
}

fn one_that_kicks_ahead() -> Failure {
    let locks = catalog::locks();
    let names: Vec<String> =
        locks.iter().filter(|lock| kicks_ahead(lock)).map(|lock| lock.name.to_owned()).collect();
    Failure::usage(format!("--kick-ahead compares levels of one lock: name {}", list(&names, "or")))
}

/// The table of the series that was asked for, with what has to be said about it.
pub(super) fn show(
    args: &Args,
    machine: &Machine,
    plan: &Plan,
    entrants: &[Entrant],
    rows: &[Row],
) -> Option<String> {
    let shown = plan.cells.iter().filter(|cell| cell.shown);
    let cells: Vec<(&Cell, &Row)> = shown.zip(rows).collect();
    let lines: Vec<Line<'_>> = entrants
        .iter()
        .enumerate()
        .filter_map(|(index, entrant)| {
            let place = entrant.line.as_ref()?;
            let of = cells.iter().filter(|(cell, _)| cell.lock == index);
            Some(Line {
                label: place.label.clone(),
                base: place.base,
                reference: place.reference,
                rows: of.map(|(_, row)| *row).collect(),
            })
        })
        .collect();
    if lines.is_empty() {
        return None;
    }
    let title = match (args.steps, args.remedy.is_empty()) {
        (Some(_), _) => "step",
        (None, true) => "kick-ahead",
        (None, false) => "remedy",
    };
    let mut text = series::show(title, &lines, &starving(machine, rows));
    match args.steps {
        Some(Series::Numa) => text += &notes_on_nodes(machine),
        Some(Series::Paravirt | Series::Reviewed) => text += &notes(&lines),
        None => {}
    }
    Some(text)
}

/// What the table of the steps does not say itself.
fn notes(lines: &[Line<'_>]) -> String {
    let threads: BTreeSet<u32> =
        lines.iter().flat_map(|line| &line.rows).map(|row| row.threads).collect();
    let levels: Vec<String> = threads
        .into_iter()
        .map(|n| format!("{} with {}", kick_ahead_level(n), plural(f64::from(n), "thread")))
        .collect();
    let mut text = format!(
        "A thread is a virtual CPU: kick-ahead has the level of the series for as many CPUs as \
         there are threads, {}.\n",
        list(&levels, "and")
    );
    text +=
        "The last step has every tunable at its default again: it changes more than one thing.\n";
    for (index, line) in lines.iter().enumerate() {
        if let Some(base) = line.base.filter(|base| base + 1 < index) {
            text += &format!(
                "{} counts its events, the lines after it do not: {} builds on {}.\n",
                lines[index - 1].label,
                line.label,
                lines[base].label
            );
        }
    }
    text
}

/// What the table of the NUMA-aware lock's steps does not say itself.
fn notes_on_nodes(machine: &Machine) -> String {
    let mut text = String::from(
        "Patches 1, 2 and 5 of the series have no switch: 1 and 2 are in every line, 5 in every line \
         of cna. local: the share of hand-overs that stayed local, counted after the rounds.\n",
    );
    let topology = topology::in_force();
    let distances = if topology.is_fake() {
        topology.distances_among(topology.cpus())
    } else {
        topology.distances_among(allowed_cpus())
    };
    text += match (&machine.topology, distances.len()) {
        (_, ..=1) => {
            "All CPUs are equally near here, so no waiter is ever moved: the lines show what the \
             order costs, not what it gains. QSPIN_TOPOLOGY=2x1x1 makes up two nodes.\n"
        }
        (Some(_), _) => {
            "The topology is made up: the order moves waiters, and nothing is nearer for it.\n"
        }
        (None, _) => "",
    };
    text
}
