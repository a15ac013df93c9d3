//! The report as one self-contained HTML file: no network, no script needed, readable in light
//! and dark, on a phone, on paper and by a screen reader.

mod cards;
mod tables;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::Run;
use super::chart::{minis, waits};
use super::family::Family;
use super::figures::{self, FULL, HALF};
use super::group::{Group, groups};
use crate::verdict::{Judgement, judge};

/// Colours and the look of charts, shared with the stand-alone picture.
pub(super) const CHART_STYLE: &str =
    concat!(include_str!("html/style/colours.css"), include_str!("html/style/chart.css"));
const PAGE_STYLE: &str = include_str!("html/style/page.css");
const SCRIPT: &str = include_str!("html/style/page.js");
/// Nothing but the page's own style and script: whoever reads the source sees that it is offline.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";
/// From this number of settings on, each opens by a click, so that the verdicts stay together.
const MANY: usize = 4;
/// From this number of locks on, a picture for each helps.
const CROWD: usize = 7;

/// Renders all runs into one HTML document.
#[must_use]
pub fn render(runs: &[Run]) -> String {
    let settings: Vec<(&Run, Vec<Group<'_>>)> =
        runs.iter().map(|run| (run, groups(&run.machine, &run.rows))).collect();
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
                    (reading())
                }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}

fn section(number: usize, run: &Run, groups: &[Group<'_>], several: bool, many: bool) -> Markup {
    html! {
        section.run id={ "run-" (number + 1) } {
            @if several {
                h2.machine { (run.machine.cpu) span.from { (run.source) } }
            }
            @for (index, group) in groups.iter().enumerate() {
                @let judgement = judge(group);
                @let id = format!("g{}-{}", number + 1, index + 1);
                article.setting id=(id) {
                    (cards::verdict(run, group, &judgement))
                    @if index == 0 { (cards::warnings(run)) }
                    @if many {
                        details.evidence { summary { "The evidence" } (evidence(group, &judgement, &id)) }
                    } @else {
                        (evidence(group, &judgement, &id))
                    }
                }
            }
            (cards::machine(run))
        }
    }
}

fn evidence(group: &Group<'_>, judgement: &Judgement, id: &str) -> Markup {
    let wide = figures::throughput(group, judgement, FULL);
    let narrow = figures::throughput(group, judgement, HALF);
    let cpu = figures::cpu_time(group);
    let overhead = figures::overhead(group);
    let alone = group.threads().len() < 2;
    html! {
        (legend(group))
        figure.hero {
            figcaption {
                h3 { "Throughput" }
                p.sub {
                    "Higher is better. Bands: 95 % intervals of the median."
                    @if wide.series.iter().any(|series| series.starred) {
                        " ★ what to take when the number of threads is unknown."
                    }
                }
            }
            div.wide { (wide.draw()) }
            div.narrow { (narrow.draw()) }
        }
        @if wide.series.len() >= CROWD && !alone {
            h3 { "Throughput, each lock by itself" }
            p.sub { "The same picture, one lock in colour and the others in grey. \
                 The number is its throughput with the most threads." }
            (minis::draw(&wide, id))
        }
        (waiting(group))
        (tables::fairness(group))
        @if !cpu.series.is_empty() || !overhead.series.is_empty() {
            h3 { "What an operation costs" }
            p.sub { "Lower is better. CPU time that waiters burn is not there for anybody else." }
            div.pair {
                @for chart in [cpu, overhead].iter().filter(|chart| !chart.series.is_empty()) {
                    figure { (chart.draw()) }
                }
            }
        }
        (tables::raw(group))
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
    let all = || group.rows().filter_map(|row| row.wait_ns.as_ref());
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

fn waits_at(group: &Group<'_>, threads: u32) -> Vec<waits::Waits> {
    group
        .contenders
        .iter()
        .filter(|contender| !contender.is_reference())
        .filter_map(|contender| {
            Some(waits::Waits {
                name: contender.name.clone(),
                family: contender.family,
                own: contender.own,
                wait: contender.at(threads)?.wait_ns?,
            })
        })
        .collect()
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
                dt { "best" }
                dd {
                    "Most operations a second among the locks that starve nobody. A lock that is \
                     fast because some thread does not get it is left out."
                }
            }
        }
    }
}
