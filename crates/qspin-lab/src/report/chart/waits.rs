//! How long one waits for a lock: a row a lock, from the usual wait to the longest.

use maud::{Markup, html};

use super::labels::cut;
use super::px;
use super::scale::Scale;
use crate::report::family::Family;
use crate::report::number::duration;
use crate::row::WaitNs;

/// A lock's waits at one number of threads.
#[derive(Debug, Clone)]
pub struct Waits {
    /// Name of the contender.
    pub lock: String,
    /// What stands before the row: the lock, and what was done with it where that differs.
    pub name: String,
    /// Colour.
    pub family: Family,
    /// Written stronger.
    pub own: bool,
    /// The percentiles.
    pub wait: WaitNs,
}

const WIDTH: f64 = 430.0;
const ROW: f64 = 19.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 12.0;
/// Characters of a name.
const LABEL_CHARACTERS: usize = 20;
/// Width of a number at the axis, with air.
const LABEL: f64 = 46.0;
/// No wait is shorter than a nanosecond on this axis; a logarithm needs an end.
const SHORTEST: f64 = 1.0;

/// The scale over all panels of a setting, so that they can be compared.
#[must_use]
pub fn scale<'a>(waits: impl Iterator<Item = &'a WaitNs> + Clone) -> Scale {
    let lo = waits.clone().map(|wait| wait.p50).fold(f64::INFINITY, f64::min);
    let hi = waits.map(|wait| wait.max.max(wait.worst_thread_p999)).fold(SHORTEST, f64::max);
    Scale::log(lo.clamp(SHORTEST, hi), hi)
}

/// Draws one panel; the lock with the shortest p99.9 is first.
#[must_use]
pub fn draw(threads: u32, waits: &[Waits], scale: Scale) -> Markup {
    let mut ranked: Vec<&Waits> = waits.iter().collect();
    ranked.sort_by(|a, b| {
        let (left, right) = (a.wait.p999, b.wait.p999);
        left.total_cmp(&right).then_with(|| a.name.cmp(&b.name))
    });
    let longest =
        ranked.iter().map(|row| row.name.chars().count()).max().unwrap_or(0).min(LABEL_CHARACTERS);
    let left = 16.0 + 7.6 * longest as f64;
    let right = WIDTH - 14.0;
    let bottom = TOP + ROW * ranked.len() as f64;
    let x = |ns: f64| left + scale.place(ns) * (right - left);
    let plural = if threads == 1 { "" } else { "s" };
    html! {
        svg.chart.waits xmlns="http://www.w3.org/2000/svg" role="img"
            viewBox=(format!("0 0 {} {}", px(WIDTH), px(bottom + BOTTOM)))
            width=(px(WIDTH)) height=(px(bottom + BOTTOM)) {
            title { "Waiting time with " (threads) " thread" (plural) }
            desc {
                "Shortest p99.9 first: "
                @for row in &ranked {
                    (row.name) " p50 " (duration(row.wait.p50)) ", p99.9 " (duration(row.wait.p999)) "; "
                }
            }
            (decades(scale, &x, bottom))
            @for (index, row) in ranked.iter().enumerate() {
                (lock(row, TOP + ROW * (index as f64 + 0.5), left, &x))
            }
        }
    }
}

/// A line a power of ten; numbers beside every one, or every second or third where space is short.
fn decades(scale: Scale, x: &impl Fn(f64) -> f64, bottom: f64) -> Markup {
    let ticks = scale.ticks();
    let decades: Vec<f64> = ticks.iter().map(|tick| tick.value).filter(|v| is_decade(*v)).collect();
    let apart = decades.get(1).map_or(WIDTH, |second| x(*second) - x(decades[0]));
    let step = (LABEL / apart).ceil().max(1.0) as usize;
    html! {
        @for (index, value) in decades.iter().enumerate() {
            line.grid x1=(px(x(*value))) x2=(px(x(*value))) y1=(px(TOP - 6.0)) y2=(px(bottom))
                data-tick-x=(value) {}
            @if index % step == 0 {
                text.tick x=(px(x(*value))) y="12" text-anchor="middle" {
                    (duration(*value).replace(' ', "\u{202f}"))
                }
            }
        }
    }
}

fn lock(row: &Waits, y: f64, left: f64, x: &impl Fn(f64) -> f64) -> Markup {
    let wait = row.wait;
    let name = &row.name;
    html! {
        g class={ "s " (row.family.class()) @if row.own { " own" } } data-lock=(row.lock) {
            text.end x=(px(left - 8.0)) y=(px(y + 4.0)) text-anchor="end" {
                @if &cut(name, LABEL_CHARACTERS) != name { title { (name) } }
                (cut(name, LABEL_CHARACTERS))
            }
            line.reach x1=(px(x(wait.p50))) x2=(px(x(wait.max))) y1=(px(y)) y2=(px(y)) {}
            line.core x1=(px(x(wait.p50))) x2=(px(x(wait.p99))) y1=(px(y)) y2=(px(y)) {}
            line.max.pt x1=(px(x(wait.max))) x2=(px(x(wait.max))) y1=(px(y - 5.0)) y2=(px(y + 5.0))
                data-what="max" data-value=(wait.max) {
                title { (name) ": longest wait " (duration(wait.max)) }
            }
            circle.pt.p50 cx=(px(x(wait.p50))) cy=(px(y)) r="3.6" data-what="p50" data-value=(wait.p50) {
                title { (name) ": half of the waits are shorter than " (duration(wait.p50)) " (p50)" }
            }
            circle.pt.p99 cx=(px(x(wait.p99))) cy=(px(y)) r="3.6" data-what="p99" data-value=(wait.p99) {
                title { (name) ": one in 100 waits longer than " (duration(wait.p99)) " (p99)" }
            }
            path.pt.p999 d=(diamond(x(wait.p999), y, 5.2)) data-what="p999" data-value=(wait.p999) {
                title { (name) ": one in 1000 waits longer than " (duration(wait.p999)) " (p99.9)" }
            }
            path.pt.worst d=(diamond(x(wait.worst_thread_p999), y, 5.2))
                data-what="worst" data-value=(wait.worst_thread_p999) {
                title {
                    (name) ": for the unluckiest thread one in 1000 waits longer than "
                    (duration(wait.worst_thread_p999))
                }
            }
        }
    }
}

fn diamond(x: f64, y: f64, r: f64) -> String {
    super::mark::path(Family::Sleep, x, y, r)
}

/// What the shapes mean.
#[must_use]
pub fn key() -> Markup {
    let shapes: [(&str, Markup); 5] = [
        ("half wait less (p50)", html! { circle.p50 cx="8" cy="8" r="3.6" {} }),
        ("p99", html! { circle.p99 cx="8" cy="8" r="3.6" {} }),
        ("p99.9", html! { path.p999 d=(diamond(8.0, 8.0, 5.2)) {} }),
        ("p99.9 of the unluckiest thread", html! { path.worst d=(diamond(8.0, 8.0, 5.2)) {} }),
        ("longest", html! { line.max x1="8" x2="8" y1="3" y2="13" {} }),
    ];
    html! {
        p.key {
            @for (words, shape) in shapes {
                span { svg.waits width="16" height="16" aria-hidden="true" { g.s { (shape) } } (words) }
            }
        }
    }
}

/// A power of ten; the logarithm of a computed one is not quite whole.
fn is_decade(value: f64) -> bool {
    let log = value.log10();
    (log - log.round()).abs() < 1e-9
}
