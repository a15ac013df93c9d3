//! `qspin-check mutate`

use std::time::{Duration, Instant};

use qspin_core::site::Site;

use super::arguments::Arguments;
use crate::mutation::{Mutant, Survey, Verdict, run_all};

/// The most that one mutant may take: several times what the slowest needs on two idle CPUs.
const SECONDS: u64 = 400;

pub(super) fn run(mut arguments: Arguments) -> Result<bool, String> {
    let time = Duration::from_secs(arguments.number("seconds", SECONDS)?);
    let only = match arguments.take("site") {
        None => None,
        Some(name) => Some(site(&name)?),
    };
    arguments.nothing_else()?;
    let begun = Instant::now();
    let survey = match Survey::take(time) {
        Ok(survey) => survey,
        Err(message) => {
            println!("mutate   FAILED: {message}");
            return Ok(false);
        }
    };
    let mut good = true;
    for site in survey.forgotten() {
        println!("mutate   FAILED: no lock consults {}", site.name());
        good = false;
    }
    let mutants = run_all(&survey, only, time, print);
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
         wrong; {executions} executions ({seconds:.1} s)",
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
        Some((_, lock, scenario)) => format!("{lock} {scenario}"),
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
