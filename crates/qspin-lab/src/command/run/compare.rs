//! `--compare N`: the program with these locks and with the C library's, in turns.

use std::process::ExitCode;

use crate::bench::stats::median;
use crate::compare::{Outcome, Sample, compare};
use crate::failure::Failure;

use super::NOT_LOADED;
use super::launch::{Ended, Launch, Output};

/// Runs the pairs, and says how the two compare.
pub(super) fn run(
    launch: &Launch<'_>,
    pairs: u32,
    figure: Option<&str>,
) -> Result<ExitCode, Failure> {
    // Counting costs time, so the run that shows whether the program locks at all is not compared.
    let ended = Launch { stats: true, ..*launch }.run_with_library(Output::Kept)?;
    if let Some(code) = super::check(launch, &ended)? {
        return Ok(code);
    }
    if ended.code != 0 {
        return Ok(failed(launch, &ended, true));
    }
    if ended.report.locks_nothing() {
        return Ok(super::locks_nothing(ended.futexes));
    }
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for pair in 0..pairs {
        // The one that is first is second in the next pair.
        let mut values = [0.0; 2];
        for with_library in if pair % 2 == 0 { [false, true] } else { [true, false] } {
            let ended = if with_library {
                launch.run_with_library(Output::Kept)?
            } else {
                launch.run_bare(Output::Kept)?
            };
            if with_library {
                if let Some(code) = super::check(launch, &ended)? {
                    return Ok(code);
                }
            } else if !ended.report.processes.is_empty() {
                return Err(Failure::usage(format!(
                    "{} loads the library by itself, so there are no runs with the C library's locks to \
                     compare with: take it out of /etc/ld.so.preload, or of what the program sets in LD_PRELOAD",
                    launch.program.display()
                )));
            }
            if ended.code != 0 {
                return Ok(failed(launch, &ended, with_library));
            }
            values[usize::from(with_library)] = match figure {
                None => ended.elapsed.as_secs_f64(),
                Some(text) => number_after(&ended.printed, text).ok_or_else(|| {
                    Failure::usage(format!(
                        "the program printed no number above 0 after `{text}`: --figure takes what stands before one"
                    ))
                })?,
            };
        }
        let [bare, with_library] = values;
        theirs.push(bare);
        ours.push(with_library);
    }
    let (ours_each, theirs_each) = (Sample::Rounds(&ours), Sample::Rounds(&theirs));
    // Of a figure more is better, of a time less.
    let compared = match figure {
        Some(_) => compare(ours_each, theirs_each),
        None => compare(theirs_each, ours_each),
    };
    let ratio = compared.ratio;
    let unit = if figure.is_some() { "" } else { " s" };
    let verdict = match compared.outcome {
        Outcome::TooFewRounds => "too few pairs to say",
        Outcome::Better => "faster",
        Outcome::Worse => "slower",
        Outcome::Level => "no clear difference",
    };
    super::super::say(&format!(
        "{} against the C library's locks, {pairs} pairs: {:.3} [{:.3}, {:.3}], {verdict} ({}{unit} against {}{unit})\n",
        launch.locks(),
        ratio.median,
        ratio.lo,
        ratio.hi,
        shown(median(&mut ours)),
        shown(median(&mut theirs)),
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn shown(value: f64) -> String {
    if value >= 1000.0 { format!("{value:.0}") } else { format!("{value:.3}") }
}

/// A run that failed is nothing to compare.
fn failed(launch: &Launch<'_>, ended: &Ended, with_library: bool) -> ExitCode {
    let which = if with_library { "these locks" } else { "the C library's locks" };
    let last =
        ended.printed.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("nothing");
    super::super::tell(&format!(
        "{} ended with {} with {which}; the last that it printed: {}",
        launch.program.display(),
        ended.code,
        last.trim()
    ));
    // Its code, but for the one that would say something else.
    ExitCode::from(if ended.code == NOT_LOADED { 1 } else { ended.code })
}

/// The number that follows the last occurrence of `text`, if it is above 0.
fn number_after(printed: &str, text: &str) -> Option<f64> {
    let rest = &printed[printed.rfind(text)? + text.len()..];
    let begin = rest.find(|letter: char| letter.is_ascii_digit())?;
    let number: String = rest[begin..]
        .chars()
        .take_while(|letter| letter.is_ascii_digit() || matches!(letter, '.' | ','))
        .filter(|letter| *letter != ',')
        .collect();
    let number = number.trim_end_matches('.').parse::<f64>().ok()?;
    (number > 0.0).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_is_the_one_after_the_last_of_the_text() {
        let printed =
            "readrandom : 1.5 micros/op 666666 ops/sec;\nSET: 1,234.50 requests per second.\n";
        assert_eq!(number_after(printed, "micros/op"), Some(666_666.0));
        assert_eq!(number_after(printed, "SET:"), Some(1234.5));
        assert_eq!(number_after("a 1 a 2", "a"), Some(2.0));
        assert_eq!(number_after(printed, "GET:"), None);
        assert_eq!(number_after("time: 0", "time"), None);
        assert_eq!(number_after("time: none", "time"), None);
    }
}
