//! The charts, of throughput or of regret, as one stand-alone SVG picture, for a README or a paper.

use maud::{Markup, PreEscaped, html};

use super::Run;
use super::chart::px;
use super::figures::{self, FULL};
use super::group::groups;
use super::html::CHART_STYLE;
use super::number::plural;
use super::regret;
use crate::verdict::judge;

const HEAD: f64 = 34.0;
const GAP: f64 = 26.0;

/// Renders one picture with a chart a setting, one below the other.
#[must_use]
pub fn render(runs: &[Run]) -> String {
    let mut y = GAP;
    let mut charts: Vec<Markup> = Vec::new();
    for run in runs {
        for (name, picture) in regret::pictures(run, FULL) {
            charts.push(html! {
                text.heading x="4" y=(px(y)) { "Regret over random loads. " (name) " · " (run.machine.cpu) }
                g transform=(format!("translate(0 {})", px(y + HEAD - 18.0))) { (picture.draw()) }
            });
            y += HEAD + picture.height() + GAP;
        }
        for group in groups(&run.machine, regret::chosen(run)) {
            let (chart, height) = match group.threads()[..] {
                [only] => {
                    let chart = figures::ranking(&group, only, FULL);
                    (chart.draw(), chart.height())
                }
                _ => {
                    let chart = figures::throughput(&group, &judge(&group), FULL);
                    (chart.draw(), chart.height())
                }
            };
            let mark = group.mark();
            let cpus = group.cpus.map(|cpus| plural(cpus, "CPU"));
            charts.push(html! {
                text.heading x="4" y=(px(y)) {
                    @if let Some(mark) = mark { tspan.mark { (mark) " " } }
                    @if group.partial() { tspan.mark { "PARTIAL " } }
                    (group.title())
                    @if let Some(cpus) = cpus { " · " (cpus) }
                    @if mark != Some("SIMULATED") { " · " (run.machine.cpu) }
                }
                g transform=(format!("translate(0 {})", px(y + HEAD - 18.0))) { (chart) }
            });
            y += HEAD + height + GAP;
        }
    }
    let picture = html! {
        svg.sheet xmlns="http://www.w3.org/2000/svg" role="img"
            viewBox=(format!("0 0 {} {}", px(FULL), px(y)))
            width=(px(FULL)) height=(px(y)) {
            title {
                @if runs.iter().all(regret::is_random) { "Regret of locks over random loads" }
                @else { "Throughput of locks against threads" }
            }
            style { (PreEscaped(CHART_STYLE)) }
            rect.paper width="100%" height="100%" {}
            @for chart in &charts { (chart) }
        }
    };
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}\n", picture.into_string())
}
