//! The report as one self-contained HTML file: no network, no script needed, readable in light
//! and dark, on a phone, on paper and by a screen reader.

mod cards;
mod tables;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::Run;
use super::chart::lines::Lines;
use super::chart::{minis, waits};
use super::family::Family;
use super::figures::{self, FULL, NARROW};
use super::group::{Group, groups};
use super::number::duration;
use super::overcommit::{self, Pair};
use super::regret;
use crate::verdict::words::MANY;
use crate::verdict::{Judgement, judge};

/// Colours and the look of charts, shared with the stand-alone picture.
pub(super) const CHART_STYLE: &str =
    concat!(include_str!("html/style/colours.css"), include_str!("html/style/chart.css"));
const PAGE_STYLE: &str = include_str!("html/style/page.css");
const SCRIPT: &str = include_str!("html/style/page.js");
/// Nothing but the page's own style and script: a reader of the source sees that it is offline.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";
/// From this number of locks on, a picture for each helps.
const CROWD: usize = 7;

/// Renders all runs into one HTML document.
#[must_use]
pub fn render(runs: &[Run], pair: &Pair) -> String {
    let settings: Vec<(&Run, Vec<Group<'_>>)> =
        runs.iter().map(|run| (run, groups(&run.machine, regret::chosen(run)))).collect();
    // Then the evidence opens by a click, so that the verdicts stay together.
    let many = settings.iter().map(|(_, groups)| groups.len()).sum::<usize>() >= MANY;
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                title { "Which lock here? " (runs.first().map_or("", |run| run.machine.cpu.as_str())) }
                style { (PreEscaped(CHART_STYLE)) (PreEscaped(PAGE_STYLE)) }
            }
            body {
                header {
                    p.brand { "qspin report" }
                    h1 { "Which lock here?" }
                }
                main {
                    @for (number, (run, groups)) in settings.iter().enumerate() {
                        (section(number, run, groups, runs.len() > 1, many))
                    }
                    @for table in overcommit::tables(runs, pair) { (table.html()) }
                    (reading())
                }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}

fn section(number: usize, run: &Run, groups: &[Group<'_>], several: bool, many: bool) -> Markup {
    let judged: Vec<(&Group<'_>, Judgement, String)> = groups
        .iter()
        .enumerate()
        .map(|(index, group)| (group, judge(group), format!("g{}-{}", number + 1, index + 1)))
        .collect();
    html! {
        section.run id={ "run-" (number + 1) } {
            @if several {
                h2.machine { (run.machine.cpu) span.from { (run.source) } }
            }
            @if regret::is_random(run) {
                (cards::warnings(run))
                (regret::html(run, FULL))
            }
            @if groups.len() >= MANY {
                (cards::overview(&judged))
                (cards::warnings(run))
            }
            @for (index, (group, judgement, id)) in judged.iter().enumerate() {
                article.setting {
                    @if groups.len() >= MANY {
                        // A browser opens it when the overview's link leads into it.
                        details.one {
                            summary { (group.title()) }
                            div id=(id) {
                                (cards::verdict(run, group, judgement))
                                (evidence(run, group, judgement, id))
                            }
                        }
                    } @else {
                        (cards::verdict(run, group, judgement))
                        @if index == 0 { (cards::warnings(run)) }
                        @if many {
                            details.evidence {
                                summary { "The evidence" }
                                (evidence(run, group, judgement, id))
                            }
                        } @else {
                            (evidence(run, group, judgement, id))
                        }
                    }
                }
            }
            (cards::machine(run))
        }
    }
}

fn evidence(run: &Run, group: &Group<'_>, judgement: &Judgement, id: &str) -> Markup {
    let wide = figures::throughput(group, judgement, FULL);
    let starred = wide.series.iter().any(|series| series.starred);
    let threads = group.threads();
    html! {
        (legend(group))
        figure.hero {
            figcaption {
                h3 { "Throughput" }
                p.sub {
                    "Higher is better. Bands and bars: 95 % intervals of the median."
                    @if starred { " ★ what to take when the number of threads is unknown." }
                }
            }
            @if let [only] = threads[..] {
                div.wide { (figures::ranking(group, only, FULL).draw()) }
                div.narrow { (figures::ranking(group, only, NARROW).draw()) }
            } @else {
                div.wide { (wide.draw()) }
                div.narrow { (figures::throughput(group, judgement, NARROW).draw()) }
            }
        }
        @if wide.series.len() >= CROWD && threads.len() > 1 {
            h3 { "Throughput, each lock by itself" }
            p.sub {
                "The same picture, one lock in colour and the others in grey. \
                 The number is its throughput with the most threads."
            }
            (minis::draw(&wide, id))
        }
        (waiting(group))
        (tables::fairness(group))
        (costs(run, group, threads.len() > 1))
        (tables::raw(group))
    }
}

/// What a lock costs: alone, in CPU time, and in time beyond the work.
fn costs(run: &Run, group: &Group<'_>, against_threads: bool) -> Markup {
    let charts: Vec<Lines<'_>> = [figures::cpu_time(group), figures::overhead(group)]
        .into_iter()
        .filter(|chart| against_threads && !chart.series.is_empty())
        .collect();
    let alone = figures::uncontended(run, group);
    if charts.is_empty() && alone.is_none() {
        return html! {};
    }
    html! {
        h3 { "What an operation costs" }
        p.sub {
            "Lower is better. CPU time that waiters burn is not there for anybody else."
            @if let Some((floor, name)) = alone.as_ref().and_then(|chart| chart.reference) {
                " The dashed line is the floor: " (name) ", " (duration(floor)) "."
            }
        }
        div.pair {
            @for chart in &charts { figure { (chart.draw()) } }
            @if let Some(chart) = alone { figure { (chart.draw()) } }
        }
    }
}

/// The families present; with the script they are switches.
fn legend(group: &Group<'_>) -> Markup {
    let present = |family: Family| {
        group
            .contenders
            .iter()
            .any(|contender| contender.family == family && !contender.is_reference())
    };
    let own = group.contenders.iter().any(|contender| contender.own);
    let peers =
        group.contenders.iter().any(|contender| !contender.own && !contender.is_reference());
    html! {
        div.legend role="group" aria-label="How the waiters of a lock wait" {
            span.lead { "Waiters:" }
            @for family in Family::ALL.into_iter().filter(|family| present(*family)) {
                button.chip.(family.class()) type="button" aria-pressed="true"
                    data-family=(family.class()) {
                    svg width="14" height="14" viewBox="0 0 14 14" aria-hidden="true" {
                        g.s {
                            path.pt d=(super::chart::mark::path(
                                family, 7.0, 7.0, super::chart::mark::radius(family, 4.4),
                            )) {}
                        }
                    }
                    (family.label())
                }
            }
            @if own && peers {
                button.chip.own-only type="button" aria-pressed="true" data-peers="" {
                    "locks of other libraries"
                }
            }
        }
    }
}

fn waiting(group: &Group<'_>) -> Markup {
    let all = || group.rows().flat_map(|row| row.wait_ns.iter().chain(row.wait_ns_by.values()));
    if all().next().is_none() {
        return html! {};
    }
    let scale = waits::scale(all().collect::<Vec<_>>().into_iter());
    html! {
        h3 { "Waiting" }
        p.sub {
            "How long one acquisition takes, shortest p99.9 first, logarithmic. \
             A lock with a long line has moments in which a thread gets nothing done."
        }
        (waits::key())
        div.pair {
            @for threads in group.threads() {
                @let rows = waits_at(group, threads);
                @if !rows.is_empty() {
                    figure {
                        figcaption {
                            (threads) " thread" @if threads != 1 { "s" }
                            @if group.threads_over(threads) { span.badge.warn { "more than CPUs" } }
                        }
                        (waits::draw(threads, &rows, scale))
                    }
                }
            }
        }
    }
}

/// A row a lock, or a row for each kind of operation where a lock has several.
fn waits_at(group: &Group<'_>, threads: u32) -> Vec<waits::Waits> {
    let mut all = Vec::new();
    for contender in group.contenders.iter().filter(|contender| !contender.is_reference()) {
        let Some(row) = contender.at(threads) else { continue };
        let mut add = |name: String, wait| {
            let (family, own) = (contender.family, contender.own);
            all.push(waits::Waits { lock: contender.name.clone(), name, family, own, wait });
        };
        for (kind, wait) in &row.wait_ns_by {
            add(format!("{} {kind}", contender.name), *wait);
        }
        if let (true, Some(wait)) = (row.wait_ns_by.is_empty(), row.wait_ns) {
            add(contender.name.clone(), wait);
        }
    }
    all
}

/// What a newcomer must know to read the page.
fn reading() -> Markup {
    html! {
        section.reading {
            h3 { "How to read this" }
            dl {
                dt { "operation" }
                dd { "Take the lock, work inside, give it back, work outside." }
                dt { "95 % interval" }
                dd {
                    "Where the true median lies, as far as the rounds tell. Where the intervals of \
                     two locks overlap, the report says “no clear difference”."
                }
                dt { "more threads than CPUs" }
                dd {
                    "Some thread is always not running. If it holds the lock, or is next in line \
                     for it, everybody waits until the system lets it run again."
                }
                dt { "fairness factor" }
                dd { "The share of the turns that the busier half of the threads got: 0.5 is fair, 1 is starvation." }
                dt { "local hand-overs" }
                dd {
                    "Of a lock that prefers near waiters: the share of its hand-overs that went to a \
                     CPU of the same last-level cache. They are counted in a measurement of their own."
                }
                dt { "best" }
                dd {
                    "Most operations a second among the locks that starve no thread. A lock that is \
                     fast because some thread does not get it is left out."
                }
            }
        }
    }
}
