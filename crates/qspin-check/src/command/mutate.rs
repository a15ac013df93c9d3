//! `qspin-check mutate`

use std::path::PathBuf;
use std::time::{Duration, Instant};

use qspin_core::site::Site;

use super::arguments::Arguments;
use super::report::put_section;
use crate::mutation::known::list;
use crate::mutation::{Depth, Mutant, Place, Survey, Verdict, run_all};
use crate::weakening::Weakening;

/// The most that one mutant may take: several times what the slowest needs on two idle CPUs.
const SECONDS: u64 = 400;

pub(super) fn run(mut arguments: Arguments) -> Result<bool, String> {
    let time = Duration::from_secs(arguments.number("seconds", SECONDS)?);
    let only = match arguments.take("site") {
        None => None,
        Some(name) => Some(site(&name)?),
    };
    let lock = arguments.take("lock");
    let known = arguments.take("known").map(PathBuf::from);
    let page = arguments.take("markdown").map(PathBuf::from);
    let depth = match arguments.take("depth").as_deref() {
        None | Some("usual") => Depth::Usual,
        Some("full") => Depth::Full,
        Some(depth) => return Err(format!("--depth `{depth}` is neither usual nor full")),
    };
    arguments.nothing_else()?;
    if let Some(lock) = &lock {
        super::arguments::subject(lock)?;
    }
    let begun = Instant::now();
    let survey = match Survey::take(lock.as_deref(), time) {
        Ok(survey) => survey,
        Err(message) => {
            println!("mutate   FAILED: {message}");
            return Ok(false);
        }
    };
    let mut good = true;
    for site in survey.forgotten().into_iter().filter(|_| lock.is_none()) {
        println!("mutate   FAILED: no lock consults {}", site.name());
        good = false;
    }
    let surveyed = begun.elapsed().as_secs_f64();
    let mut mutants = run_all(&survey, only, depth, time, print);
    mutants.sort_by_key(|mutant| mutant.weakening.site);
    if let Some(file) = known {
        let wrong = |error| format!("{}: {error}", file.display());
        std::fs::write(&file, list(&mutants)).map_err(wrong)?;
    }
    if let Some(page) = page {
        put_section(&page, "Orderings", &markdown(&mutants))?;
    }
    let count = |wanted: fn(&Verdict) -> bool| {
        mutants.iter().filter(|mutant| wanted(&mutant.verdict())).count()
    };
    let killed = count(|verdict| *verdict == Verdict::Killed);
    let excepted = count(|verdict| matches!(verdict, Verdict::Excepted(_)));
    let wrong = count(|verdict| matches!(verdict, Verdict::Wrong(_)));
    let executions: u64 = mutants.iter().map(|mutant| mutant.executions).sum();
    let seconds = begun.elapsed().as_secs_f64();
    println!(
        "qspin-check mutate: {killed} of {} orderings killed, {excepted} excepted with their reason, {wrong} \
         wrong; {executions} executions ({seconds:.1} s, {surveyed:.1} s of it to see what is consulted)",
        mutants.len()
    );
    Ok(good && wrong == 0 && !mutants.is_empty())
}

fn site(name: &str) -> Result<Site, String> {
    let known = Site::ALL.iter().find(|site| site.name() == name);
    known.copied().ok_or(format!(
        "--site `{name}` is none: as in `queue.release`, the names are those that `mutate` prints"
    ))
}

fn print(mutant: &Mutant) {
    let weakening = mutant.weakening.to_string();
    let place = match &mutant.killed {
        Some((_, Place { lock, scenario, .. })) => format!("{lock} {scenario}"),
        None => "everywhere".to_owned(),
    };
    let result = match (mutant.verdict(), &mutant.killed) {
        (Verdict::Killed, Some((failure, ..))) => format!("killed: {}", failure.kind),
        (Verdict::Killed, None) => "killed".to_owned(),
        (Verdict::Excepted(reason), _) => format!("lives: {reason}"),
        (Verdict::Wrong(message), _) => format!("FAILED: {message}"),
    };
    let executions = mutant.executions;
    println!("mutate   {weakening:30} {place:34} {executions:>8} executions  {result}");
}

/// The table of the page.
fn markdown(mutants: &[Mutant]) -> String {
    let killed = mutants.iter().filter(|mutant| mutant.verdict() == Verdict::Killed).count();
    let mut text = format!(
        "{killed} of {} weakened orderings are killed under loom. Written by `qspin-check mutate --markdown`; \
         executions are those of the check that kills.\n\n\
         | ordering | weakened to | dies of | lock | scenario | executions |\n|---|---|---|---|---|---|\n",
        mutants.len()
    );
    for mutant in mutants {
        let Weakening { site, to } = mutant.weakening;
        let row = match (&mutant.killed, mutant.verdict()) {
            (Some((failure, Place { lock, scenario, .. })), _) => {
                format!("{} | {lock} | {scenario} | {}", failure.kind, mutant.executions)
            }
            (None, Verdict::Excepted(reason)) => format!("lives: {reason} | | |"),
            (None, _) => "lives | | |".to_owned(),
        };
        text.push_str(&format!("| {} | {to:?} | {row} |\n", site.name()));
    }
    text
}
