//! The verdict as text for a terminal, and the sentences that every format shares.

use qspin_table::number::{duration, list, plural, rate, times};

use super::{Case, Collapse, Judged, Judgement, Outcome, Score, Starving, judge};
use crate::compare::FEWEST_ROUNDS;
use crate::report::family::Family;
use crate::report::group::Group;
use crate::row::Machine;

/// From this number of settings on, each gets one line: a screen holds no more.
pub(crate) const MANY: usize = 4;
/// From this width on, as a share of the median, intervals are too wide to tell locks apart.
const NOISY: f64 = 0.25;
/// Names shown of a tie before the rest is only counted.
const SHOWN: usize = 4;

/// The verdict on a whole run.
pub(super) fn run(machine: &Machine, groups: &[Group<'_>]) -> String {
    if groups.is_empty() {
        return "No lock was measured.".to_owned();
    }
    let mut lines = Vec::new();
    for group in groups {
        if groups.len() >= MANY {
            lines.push(format!("{}: {}", group.title(), brief(group, &judge(group))));
            continue;
        }
        lines.push(heading(machine, group));
        lines.extend(sentences(group, &judge(group)).into_iter().map(|line| format!("  {line}")));
    }
    lines.join("\n")
}

fn heading(machine: &Machine, group: &Group<'_>) -> String {
    let mark = group.mark().map(|mark| format!(" [{mark}]")).unwrap_or_default();
    let cpus = group.cpus_in_words().map(|cpus| format!(" on {cpus}")).unwrap_or_default();
    let cpu = if group.mark() == Some("SIMULATED") {
        String::new()
    } else {
        format!(" ({})", machine.cpu)
    };
    format!("{}{cpus}{cpu}{mark}", group.title())
}

/// The verdict on one setting among many, on one line.
fn brief(group: &Group<'_>, judgement: &Judgement) -> String {
    let mut parts: Vec<String> = judgement
        .cases
        .iter()
        .map(|judged| format!("{}: {}", case_name(group, judged), names(judged)))
        .collect();
    if let Some(fallen) = &judgement.collapse {
        let names: Vec<String> = fallen.fallen.iter().map(|f| format!("`{}`", f.name)).collect();
        parts.push(format!("{} collapse", list(&names, "and")));
    }
    parts.extend(group.mark().map(str::to_owned));
    if group.partial() {
        parts.push("partial".to_owned());
    }
    if parts.is_empty() { "nothing to compare".to_owned() } else { parts.join("; ") }
}

/// The names to take in a case, and nothing else.
fn names(judged: &Judged) -> String {
    let best = judged.recommended();
    let names: Vec<String> = best.iter().take(SHOWN).map(|score| name(score)).collect();
    match best.len() {
        0 if matches!(judged.outcome, Outcome::TooFew(_)) => "too few rounds".to_owned(),
        0 => "none is good".to_owned(),
        many if many > SHOWN => format!("any of {many}"),
        _ => list(&names, "or"),
    }
}

/// All sentences on one setting, one a line.
pub(crate) fn sentences(group: &Group<'_>, judgement: &Judgement) -> Vec<String> {
    let mut lines = Vec::new();
    if judgement.cases.is_empty() {
        return vec!["No lock was measured at every number of threads; nothing to compare.".into()];
    }
    for judged in &judgement.cases {
        lines.push(format!("{}: {}", case_name(group, judged), outcome(judged)));
    }
    lines.extend(all_round(judgement));
    lines.extend(judgement.collapse.as_ref().map(|c| collapse(group, c)));
    lines.extend(left_out(judgement));
    lines.extend(noise(group));
    lines.extend(partial(group));
    lines
}

/// `1 thread`, `2 threads, a CPU for each`, `4 to 8 threads, more than CPUs`.
pub(crate) fn case_name(group: &Group<'_>, judged: &Judged) -> String {
    let (first, last) = (judged.threads[0], judged.threads[judged.threads.len() - 1]);
    let threads = if first == last {
        plural(f64::from(first), "thread")
    } else {
        format!("{first} to {last} threads")
    };
    match judged.case {
        Case::Alone => threads,
        Case::Over => format!("{threads}, more than CPUs"),
        Case::Fits if group.cpus.is_some() => format!("{threads}, a CPU for each"),
        Case::Fits => threads,
    }
}

fn name(score: &Score) -> String {
    format!("`{}`", score.name)
}

/// The lock that won a case, as a sentence.
pub(crate) fn outcome(judged: &Judged) -> String {
    let scores = &judged.scores;
    let ops = |score: &Score| format!("{} operations a second", rate(score.ops_per_s.median));
    match &judged.outcome {
        Outcome::Only(only) => format!(
            "only {} was measured, {}; nothing to compare it with",
            name(&scores[*only]),
            ops(&scores[*only])
        ),
        Outcome::Best { best, runner_up } => {
            let best = &scores[*best];
            let lead = runner_up.map(|runner_up| {
                let other = &scores[runner_up];
                let ratio = best.ops_per_s.median / other.ops_per_s.median;
                format!(", {} times the next, {}", times(ratio), name(other))
            });
            format!("take {}: {}{}", name(best), ops(best), lead.unwrap_or_default())
        }
        Outcome::Tie(indices) => {
            let tied: Vec<&Score> = indices.iter().map(|index| &scores[*index]).collect();
            let names = first_few(tied.iter().map(|score| name(score)).collect(), "");
            format!(
                "no clear difference between {}, about {}{}",
                list(&names, "and"),
                ops(tied[0]),
                tie_break(judged).map(|line| format!("; {line}")).unwrap_or_default()
            )
        }
        Outcome::TooFew(rounds) => format!(
            "too few rounds to tell locks apart: {rounds}, and it takes at least {FEWEST_ROUNDS}"
        ),
        Outcome::NoneFit(fastest) => {
            let fastest = &scores[*fastest];
            match &fastest.starving {
                Some(starving) => format!(
                    "no lock is good here: the fastest is {}, but with {} it {}",
                    name(fastest),
                    plural(f64::from(starving.threads), "thread"),
                    starving.how
                ),
                None => {
                    format!("no lock is good here: even the fastest, {}, collapses", name(fastest))
                }
            }
        }
    }
}

/// What still tells locks apart that are equally fast: alone the cost of the lock itself, among
/// others how long the unluckiest thread waits.
pub(crate) fn tie_break(judged: &Judged) -> Option<String> {
    if judged.case == Case::Alone {
        let cheapest = judged.cheapest();
        let names: Vec<String> =
            cheapest.iter().take(SHOWN).map(|(score, _)| name(score)).collect();
        let (_, ns) = cheapest.first()?;
        return Some(format!(
            "a lock and an unlock cost least with {}, {}",
            list(&names, "and"),
            duration(ns.median)
        ));
    }
    let calm =
        judged.recommended().into_iter().filter(|score| score.worst_wait.is_finite()).min_by(
            |a, b| a.worst_wait.total_cmp(&b.worst_wait).then_with(|| a.name.cmp(&b.name)),
        )?;
    Some(format!(
        "{} lets its unluckiest thread wait least (p99.9 {})",
        name(calm),
        duration(calm.worst_wait)
    ))
}

/// The first names, and how many more there are; a single one more is named as well.
fn first_few(mut names: Vec<String>, of_more: &str) -> Vec<String> {
    if names.len() > SHOWN + 1 {
        let more = names.len() - SHOWN;
        names.truncate(SHOWN);
        names.push(format!("{of_more}{more} more"));
    }
    names
}

/// What to take when it is not known how many threads there will be.
pub(crate) fn all_round(judgement: &Judgement) -> Option<String> {
    let best = judgement.all_round.as_ref()?;
    let shown = first_few(best.names.iter().map(|n| format!("`{n}`")).collect(), "one of ");
    Some(format!(
        "Not sure how many threads will run? Take {}: {}.",
        list(&shown, "or"),
        match shown.len() {
            1 if best.level => "the best, or not clearly worse, in every case".to_owned(),
            _ if best.level => "none is clearly worse than the best in any case".to_owned(),
            _ => format!("at least {:.2} of the best in every case", best.at_least),
        }
    ))
}

/// The collapse in words that need no knowledge of locks.
pub(crate) fn collapse(group: &Group<'_>, collapse: &Collapse) -> String {
    let example = collapse.example();
    let mut text = format!(
        "Collapse: with {} on {} `{}` does ",
        plural(f64::from(example.threads), "thread"),
        group.cpus_in_words().unwrap_or_else(|| "fewer CPUs".to_owned()),
        example.name
    );
    let itself = example.than_itself.map(|(ratio, threads)| {
        format!("{} times less than with {}", times(ratio), plural(f64::from(threads), "thread"))
    });
    match (&example.best, itself) {
        (Some(best), itself) => {
            text += &format!("{} times less than `{best}`", times(example.than_best));
            text += &itself.map(|itself| format!(" (and {itself})")).unwrap_or_default();
        }
        (None, itself) => text += &itself.unwrap_or_else(|| "much less".to_owned()),
    }
    text += match example.family {
        Family::Queue => {
            ": a thread that waits in line is not running when its turn comes, \
             and all behind it wait too."
        }
        Family::Spin | Family::Yield => {
            ": the thread that holds the lock is not running, \
             and the waiters use up the CPU that it needs."
        }
        Family::Sleep if example.sleeps_in_order => {
            ": every hand-over to a waiter that sleeps costs a wake-up, \
             and no other thread may have the lock meanwhile."
        }
        // Nothing is sure of the others.
        Family::Sleep | Family::Other => ".",
    };
    let others: Vec<String> = collapse
        .fallen
        .iter()
        .filter(|fallen| fallen.name != example.name)
        .map(|fallen| format!("`{}` ({} times)", fallen.name, times(fallen.than_best)))
        .collect();
    if !others.is_empty() {
        let verb = if others.len() == 1 { "So does" } else { "So do" };
        text += &format!(" {verb} {}.", list(&others, "and"));
    }
    text
}

/// Locks that are fast and starve a thread: named, so that no reader wonders where they are.
pub(crate) fn left_out(judgement: &Judgement) -> Option<String> {
    let mut out: Vec<(&Score, &Starving)> = Vec::new();
    for judged in &judgement.cases {
        if matches!(judged.outcome, Outcome::NoneFit(_)) {
            continue;
        }
        for (score, starving) in judged.disqualified() {
            if out.iter().all(|(other, _)| other.name != score.name) {
                out.push((score, starving));
            }
        }
    }
    let &(first, starving) = out.first()?;
    let threads = plural(f64::from(starving.threads), "thread");
    if let [_] = out[..] {
        return Some(format!(
            "Left out: {} looks fast, but with {threads} it {}.",
            name(first),
            starving.how
        ));
    }
    let names: Vec<String> = out.iter().map(|(score, _)| name(score)).collect();
    Some(format!(
        "Left out: {} look fast, but starve threads; with {threads} {} {}.",
        list(&names, "and"),
        name(first),
        starving.how
    ))
}

/// Wide intervals hide differences: how to see them.
pub(crate) fn noise(group: &Group<'_>) -> Option<String> {
    let mut widths: Vec<f64> = group
        .rows()
        .map(|row| row.ops_per_s)
        .filter(|ops| ops.median > 0.0)
        .map(|ops| (ops.hi - ops.lo) / ops.median)
        .collect();
    widths.sort_by(f64::total_cmp);
    let half = *widths.get(widths.len() / 2)?;
    (half > NOISY).then(|| {
        format!(
            "Noisy: half of the 95 % intervals are wider than {half:.2} of their median. \
             An idle machine and more rounds would tell more locks apart."
        )
    })
}

/// A run that was interrupted says so.
pub(crate) fn partial(group: &Group<'_>) -> Option<String> {
    group.partial().then(|| {
        let rounds = group.rows().map(|row| row.rounds).min().unwrap_or(0);
        format!(
            "Partial: the run was interrupted; some figures rest on {} only.",
            plural(f64::from(rounds), "round")
        )
    })
}
