//! One small picture a lock: the lock in colour, all others grey behind it.
//!
//! Two dozen lines in one chart show the crowd; these show each one.

use maud::{Markup, html};

use super::lines::{Lines, Series};
use super::scale::Scale;
use super::{polyline, px};

const WIDTH: f64 = 176.0;
const HEIGHT: f64 = 92.0;
const AIR: f64 = 6.0;

/// The small pictures of a chart's lines, best end first. `id` is unique on the page.
#[must_use]
pub fn draw(chart: &Lines<'_>, id: &str) -> Markup {
    let points = || chart.series.iter().flat_map(|series| &series.points);
    let y = Scale::fit(points().map(|point| point.value));
    let threads = || points().map(|point| f64::from(point.threads).ln());
    let (lo, hi) = (threads().fold(f64::INFINITY, f64::min), threads().fold(0.0, f64::max));
    let x = |ln: f64| AIR + (ln - lo) / (hi - lo).max(1e-9) * (WIDTH - 2.0 * AIR);
    let place = |value: f64| HEIGHT - AIR - y.place(value) * (HEIGHT - 2.0 * AIR);
    let path = |series: &Series| -> Vec<(f64, f64)> {
        series
            .points
            .iter()
            .map(|point| (x(f64::from(point.threads).ln()), place(point.value)))
            .collect()
    };
    let mut ranked: Vec<&Series> = chart.series.iter().filter(|s| !s.points.is_empty()).collect();
    let end = |series: &Series| series.points.last().map_or(0.0, |point| point.value);
    ranked.sort_by(|a, b| end(b).total_cmp(&end(a)).then_with(|| a.name.cmp(&b.name)));
    let crowd = format!("{id}-crowd");
    let border = chart.room.as_ref().map(|(room, _)| x(room.max(1e-9).ln()).max(0.0));
    html! {
        div.minis {
            @for (index, series) in ranked.iter().enumerate() {
                figure class={ "mini s " (series.family.class()) @if series.own { " own" } }
                    data-lock=(series.name) {
                    figcaption {
                        span.name { (series.name) }
                        span.value { ((chart.value)(end(series))) "/s" }
                    }
                    svg role="img" viewBox=(format!("0 0 {} {}", px(WIDTH), px(HEIGHT))) {
                        title {
                            (series.name) ": " (chart.title) ". "
                            @for point in &series.points {
                                (point.threads) " threads: " ((chart.value)(point.value)) "/s; "
                            }
                        }
                        @if index == 0 {
                            defs {
                                g id=(crowd) {
                                    @if let Some(border) = border.filter(|border| *border < WIDTH - AIR - 1.0) {
                                        rect.over x=(px(border)) y="0"
                                            width=(px(WIDTH - border)) height=(px(HEIGHT)) {}
                                    }
                                    @for other in &chart.series {
                                        path.grey d=(polyline(&path(other))) {}
                                    }
                                }
                            }
                        }
                        use href={ "#" (crowd) } {}
                        path.line d=(polyline(&path(series))) {}
                    }
                }
            }
        }
    }
}
