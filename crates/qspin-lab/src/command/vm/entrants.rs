//! What takes part in a guest: locks as they are, or the lines of a series, each with tunables of its own.

use qspin::tuning::Tuning;
use qspin_core::locks::Id;
use qspin_guest::options;

use super::{Args, Found};
use crate::bench::series::{self, Line};
use crate::bench::steps::{self, Series};
use crate::command::bench::remedies;
use crate::failure::Failure;
use crate::remedy::{self, Remedy};
use crate::row::Row;
use crate::tune::Tune;

/// What one guest measures.
#[derive(Debug, Clone)]
pub(super) struct Entrant {
    /// Its locks: all of them, or the one of a line.
    pub(super) locks: Vec<&'static str>,
    /// What they are tuned to.
    pub(super) tunes: Vec<Tune>,
    /// What rows say of the line.
    pub(super) param: Option<(&'static str, String)>,
    /// The host spares an owner that asks for it.
    pub(super) honours_hints: bool,
    /// Its line in the table of the series.
    pub(super) place: Option<Place>,
}

/// A line of a series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) label: String,
    pub(super) base: Option<usize>,
    pub(super) reference: bool,
}

/// What takes part with so many virtual CPUs.
///
/// # Errors
///
/// Wrong input: options that contradict each other, or nothing is left to measure.
pub(super) fn of(args: &Args, locks: &[&'static str], vcpus: u32) -> Result<Vec<Entrant>, Failure> {
    let plain = |locks: &[&'static str]| Entrant {
        locks: locks.to_vec(),
        tunes: args.tune.clone(),
        param: None,
        honours_hints: args.honour_hints,
        place: None,
    };
    let sets = match args.steps {
        Some(series) => series.sets(),
        None if args.remedy.is_empty() => return Ok(vec![plain(locks)]),
        None => &remedy::SETS,
    };
    if let Some(tune) = args.tune.iter().find(|tune| sets.contains(&tune.name())) {
        let (option, name) =
            (if args.steps.is_some() { "--steps" } else { "--remedy" }, tune.name());
        return Err(Failure::usage(format!("{option} sets {name} itself: leave it out of --tune")));
    }
    match args.steps {
        Some(series) => Ok(in_steps(args, series, vcpus, plain)),
        None => in_remedies(args, plain),
    }
}

/// The steps of a series that a guest has. It counts in a phase of its own, so that a step which does nothing but count
/// is none here.
fn in_steps(
    args: &Args,
    series: Series,
    vcpus: u32,
    plain: impl Fn(&[&'static str]) -> Entrant,
) -> Vec<Entrant> {
    let reference = |name: &'static str| Entrant {
        place: Some(Place { label: name.to_owned(), base: None, reference: true }),
        ..plain(&[name])
    };
    let known = |name: &&'static str| options::lock(name).is_ok();
    let mut entrants: Vec<_> =
        series.references().into_iter().filter(known).map(reference).collect();
    let above = entrants.len();
    let all = steps::steps(series);
    let mut given = Tuning::DEFAULT;
    for tune in &args.tune {
        (tune.tunable().set)(&mut given, tune.value());
    }
    let mut lines = vec![None; all.len()];
    for (index, step) in all.iter().enumerate().filter(|(_, step)| !step.counting) {
        let tuning = steps::tuning(&all[..=index], given, vcpus);
        let base = steps::base(&all, index).and_then(|base| lines[base]);
        lines[index] = Some(above + lines.iter().flatten().count());
        entrants.push(Entrant {
            tunes: tunes_of(&tuning),
            param: Some(("step", step.name.to_owned())),
            place: Some(Place { label: step.label.to_owned(), base, reference: false }),
            ..plain(&[step.lock])
        });
    }
    entrants
}

/// What makes a tuning of the default.
fn tunes_of(tuning: &Tuning) -> Vec<Tune> {
    let away = |tunable: &&qspin::tuning::Tunable| {
        (tunable.get)(tuning) != (tunable.get)(&Tuning::DEFAULT)
    };
    let tune = |tunable: &qspin::tuning::Tunable| Tune::of(tunable.name, (tunable.get)(tuning));
    Tuning::ALL.iter().filter(away).filter_map(tune).collect()
}

/// Each lock in each remedy.
fn in_remedies(
    args: &Args,
    plain: impl Fn(&[&'static str]) -> Entrant,
) -> Result<Vec<Entrant>, Failure> {
    let mut entrants: Vec<Entrant> = Vec::new();
    let mut why = Vec::new();
    for lock in remedy_locks(args) {
        let mut without = None;
        for remedy in asked(args) {
            let own = match tunes_in(args, remedy, lock) {
                Ok(own) => own,
                Err(lacks) => {
                    why.push(remedies::left_out(lock, remedy, &lacks));
                    continue;
                }
            };
            if remedy == Remedy::None {
                without = Some(entrants.len());
            }
            let base = without.filter(|&at| at < entrants.len());
            let label = format!("{lock} {remedy}");
            let plain = plain(&[lock]);
            entrants.push(Entrant {
                tunes: [&plain.tunes[..], &own[..]].concat(),
                param: Some((remedy::PARAM, remedy.to_string())),
                honours_hints: remedy == Remedy::B,
                place: Some(Place { label, base, reference: false }),
                ..plain
            });
        }
    }
    if entrants.is_empty() {
        return Err(Failure::usage(format!("nothing is left to measure: {}", why.join(" "))));
    }
    Ok(entrants)
}

fn asked(args: &Args) -> Vec<Remedy> {
    let mut asked = args.remedy.clone();
    asked.sort_unstable();
    asked.dedup();
    asked
}

fn remedy_locks(args: &Args) -> Vec<&'static str> {
    let named = |name: &String| Some(Id::named(name)?.name());
    if args.locks.is_empty() {
        remedies::LOCKS.to_vec()
    } else {
        args.locks.iter().filter_map(named).collect()
    }
}

/// What makes a remedy of a lock in this guest.
fn tunes_in(args: &Args, remedy: Remedy, lock: &str) -> Result<Vec<Tune>, String> {
    let reads = Id::named(lock).map_or(&[][..], |id| id.lock().reads);
    let tunes = remedy.tunes(|tunable| reads.contains(&tunable.part))?;
    if remedy == Remedy::B && args.preempt.is_none() {
        return Err(
            "there is nothing to spare an owner from: add --preempt holder:5ms:p=0.01".to_owned()
        );
    }
    Ok(tunes)
}

/// The table of the series, with what has to be said about it.
pub(super) fn table(args: &Args, found: &Found) -> String {
    let lines: Vec<Line<'_>> = found
        .lines
        .iter()
        .map(|place| Line {
            label: place.label.clone(),
            base: place.base,
            reference: place.reference,
            rows: found.rows.iter().filter(|row| label_of(row) == place.label).collect(),
        })
        .collect();
    let title = if args.steps.is_some() { "step" } else { "remedy" };
    let mut text = series::show(title, &lines, &[]).replace(" threads", " vCPUs");
    if !args.remedy.is_empty() {
        for lock in remedy_locks(args) {
            for remedy in asked(args) {
                if let Err(why) = tunes_in(args, remedy, lock) {
                    text += &remedies::left_out(lock, remedy, &why);
                    text.push('\n');
                }
            }
        }
    }
    text
}

/// The label of the line that a row belongs to.
fn label_of(row: &Row) -> String {
    let param = |name: &str| row.params.get(name).and_then(|value| value.as_str());
    if let Some(remedy) = param(remedy::PARAM) {
        return format!("{} {remedy}", row.lock);
    }
    let step = param("step").and_then(|name| steps::labelled(name));
    step.map_or_else(|| row.lock.clone(), str::to_owned)
}
