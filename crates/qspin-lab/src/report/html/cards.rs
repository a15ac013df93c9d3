//! The verdict and the machine as cards.

use maud::{Markup, html};
use qspin_table::{Cell, Columns, code};

use crate::report::Run;
use crate::report::group::Group;
use crate::report::machine;
use crate::report::number::{digits, rate, times};
use crate::row::Machine;
use crate::verdict::words::{
    all_round, case_name, collapse, left_out, noise, outcome, partial, tie_break,
};
use crate::verdict::{Case, Judged, Judgement, Outcome, Score};

/// More names than this are not written large: then the choice does not matter.
const LARGE: usize = 3;

/// The verdict on one setting.
pub(super) fn verdict(run: &Run, group: &Group<'_>, judgement: &Judgement) -> Markup {
    html! {
        div.verdict {
            p.setting-name {
                @if let Some(mark) = group.mark() { span.badge.strong { (mark) } }
                @if group.partial() { span.badge.warn { "PARTIAL" } }
                (group.title())
                @if let Some(cpus) = group.cpus_in_words() { " · " (cpus) }
                @if group.mark() != Some("SIMULATED") { " · " (run.machine.cpu) }
            }
            @if let Some(line) = all_round(judgement) {
                p.answer { (code(&line)) }
            } @else if let [only] = &judgement.cases[..] {
                p.answer { (code(&alone(only))) "." }
            }
            @if judgement.cases.is_empty() {
                p.answer { "No lock was measured at every number of threads; nothing to compare." }
            }
            div.cases {
                @for judged in &judgement.cases { (case(group, judged)) }
            }
            @if let Some(fallen) = &judgement.collapse {
                p.alert { (code(&collapse(group, fallen))) }
            }
            @if let Some(line) = left_out(judgement) { p.note { (code(&line)) } }
            @if let Some(line) = noise(group) { p.note { (line) } }
            @if let Some(line) = partial(group) { p.note { (line) } }
        }
    }
}

/// The answer where only one case was measured.
fn alone(judged: &Judged) -> String {
    match (&judged.outcome, tie_break(judged)) {
        // The card below names them all.
        (Outcome::Tie(_), Some(line)) => format!("No clear difference; {line}"),
        _ => capital(&outcome(judged)),
    }
}

fn case(group: &Group<'_>, judged: &Judged) -> Markup {
    let best = judged.recommended();
    let class = match judged.case {
        Case::Over => "case over",
        Case::Alone | Case::Fits => "case",
    };
    html! {
        div class=(class) {
            p.when { (case_name(group, judged)) }
            p.which {
                @if best.len() > LARGE {
                    span.lock { "any of " (best.len()) " locks" }
                } @else {
                    @for (index, score) in best.iter().enumerate() {
                        @if index > 0 { span.or { " or " } }
                        span.lock { (score.name) }
                    }
                }
                @if matches!(judged.outcome, Outcome::TooFew(_)) {
                    span.lock { "not told apart" }
                } @else if best.is_empty() {
                    span.lock { "none" }
                }
            }
            @if let Some(first) = best.first() {
                p.rate { (rate(first.ops_per_s.median)) " operations/s" }
            }
            p.why {
                @match &judged.outcome {
                    Outcome::Tie(tied) if tied.len() > LARGE => {
                        "No clear difference between "
                        @for (index, score) in best.iter().enumerate() {
                            @if index > 0 { ", " }
                            (score.name)
                        }
                        "."
                    }
                    Outcome::Tie(_) => { "No clear difference between these." }
                    Outcome::Best { best, runner_up: Some(next) } => {
                        (lead(&judged.scores[*best], &judged.scores[*next])) " times the next, "
                        (judged.scores[*next].name) "."
                    }
                    Outcome::Best { .. } => { "Every other lock starves threads here, or collapses." }
                    Outcome::Only(_) => { "Nothing to compare it with." }
                    Outcome::NoneFit(_) | Outcome::TooFew(_) => { (code(&capital(&outcome(judged)))) "." }
                }
                @if let (Outcome::Tie(_), Some(line)) = (&judged.outcome, tie_break(judged)) {
                    " " (code(&capital(&line))) "."
                }
            }
        }
    }
}

fn lead(best: &Score, next: &Score) -> String {
    times(best.ops_per_s.median / next.ops_per_s.median)
}

/// The machine's warnings, above the figures that they concern.
pub(super) fn warnings(run: &Run) -> Markup {
    html! {
        @if !run.machine.warnings.is_empty() {
            ul.warnings {
                @for warning in &run.machine.warnings { li { (warning) } }
            }
        }
    }
}

/// The machine card.
pub(super) fn machine(run: &Run) -> Markup {
    html! {
        aside.card {
            h3 { "Machine" }
            (busy(&run.machine))
            dl {
                @for (name, value) in machine::facts(run) {
                    div { dt { (name) } dd { (value) } }
                }
            }
        }
    }
}

/// A load of half a CPU or more before the run disturbs every figure.
fn busy(machine: &Machine) -> Markup {
    html! {
        @if machine.load >= 0.5 {
            p.note {
                "The machine was not idle before the run: its load was " (digits(machine.load)) "."
            }
        }
    }
}

fn capital(line: &str) -> String {
    let mut characters = line.chars();
    characters
        .next()
        .map(|first| first.to_uppercase().collect::<String>() + characters.as_str())
        .unwrap_or_default()
}

/// Many settings at a glance: what to take in each, and the way to its evidence.
pub(super) fn overview(judged: &[(&Group<'_>, Judgement, String)]) -> Markup {
    let pick = |judgement: &Judgement, case: Case| {
        let judged = judgement.cases.iter().find(|judged| judged.case == case)?;
        let names: Vec<&str> =
            judged.recommended().iter().map(|score| score.name.as_str()).collect();
        Some(match names.len() {
            0 if matches!(judged.outcome, Outcome::TooFew(_)) => "too few rounds".to_owned(),
            0 => "none is good".to_owned(),
            many if many > LARGE => format!("any of {many}"),
            _ => names.join(", "),
        })
    };
    let cases = [
        (Case::Alone, "1 thread"),
        (Case::Fits, "a CPU for each thread"),
        (Case::Over, "more threads than CPUs"),
    ];
    let mut columns =
        Columns::<(&Group<'_>, Judgement, String)>::new().text("setting", |(group, _, id)| {
            let partial = group.partial().then_some("PARTIAL");
            Cell::from(group.title()).link(id).badge(group.mark(), "warn").badge(partial, "warn")
        });
    for (case, name) in cases {
        columns = columns.text(name, move |(_, judgement, _)| pick(judgement, case));
    }
    let collapse = |(_, judgement, _): &(&Group<'_>, Judgement, String)| {
        let fallen = judgement.collapse.as_ref().map(|fallen| fallen.example());
        fallen.map_or_else(String::new, |it| format!("{} {}×", it.name, times(it.than_best)))
    };
    let table = columns.text("collapse", collapse).table(judged);
    html! { div.overview { (table.html("", "All settings")) } }
}
