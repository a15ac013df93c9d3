//! Locks in a row, best first: a point and its 95 % interval each, on a scale from zero.

use maud::{Markup, html};

use super::labels::cut;
use super::scale::Scale;
use super::{mark, px};
use crate::report::family::Family;
use crate::row::Interval;

/// A lock's place.
#[derive(Debug, Clone)]
pub struct Rank {
    /// Name of the contender.
    pub name: String,
    /// Colour and shape.
    pub family: Family,
    /// Written stronger.
    pub own: bool,
    /// The value.
    pub value: Interval,
}

/// A chart of one number a lock.
#[derive(Debug, Clone)]
pub struct Ranks<'a> {
    /// What it is, for screen readers.
    pub title: &'a str,
    /// The quantity and its unit, at the axis.
    pub axis: &'a str,
    /// Best first.
    pub ranks: Vec<Rank>,
    /// A line to compare with, and its name.
    pub reference: Option<(f64, &'a str)>,
    /// How a value reads, with its unit.
    pub value: fn(f64) -> String,
    /// Width in pixels.
    pub width: f64,
}

const ROW: f64 = 19.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 8.0;
/// Room for the number at the right.
const NUMBER: f64 = 72.0;

impl Ranks<'_> {
    /// Height in pixels.
    #[must_use]
    pub fn height(&self) -> f64 {
        TOP + ROW * self.ranks.len() as f64 + BOTTOM
    }

    /// Draws the chart.
    #[must_use]
    pub fn draw(&self) -> Markup {
        let names = self.ranks.iter().map(|rank| rank.name.chars().count());
        let left = 18.0 + 7.0 * names.max().unwrap_or(0).min(22) as f64;
        let right = self.width - NUMBER;
        let bottom = self.height() - BOTTOM;
        let reference = self.reference.map(|(value, _)| value);
        let scale = Scale::fit(self.ranks.iter().map(|rank| rank.value.hi).chain(reference));
        let x = |value: f64| left + scale.place(value) * (right - left);
        html! {
            svg.chart.ranks xmlns="http://www.w3.org/2000/svg" role="img"
                viewBox=(format!("0 0 {} {}", px(self.width), px(self.height())))
                width=(px(self.width)) height=(px(self.height())) {
                title { (self.title) }
                desc {
                    "Best first: "
                    @for rank in &self.ranks { (rank.name) " " ((self.value)(rank.value.median)) "; " }
                }
                text.axis x="4" y="12" {
                    (self.axis) @if scale.is_log() { ", logarithmic" }
                }
                @for tick in scale.ticks().iter().filter(|tick| tick.major) {
                    line.grid x1=(px(x(tick.value))) x2=(px(x(tick.value)))
                        y1=(px(TOP - 6.0)) y2=(px(bottom)) data-tick-x=(tick.value) {}
                    text.tick x=(px(x(tick.value))) y=(px(TOP - 12.0)) text-anchor="middle" {
                        ((self.value)(tick.value))
                    }
                }
                @if let Some((value, name)) = self.reference {
                    line.cpus x1=(px(x(value))) x2=(px(x(value))) y1=(px(TOP - 6.0)) y2=(px(bottom)) {
                        title { (name) ": " ((self.value)(value)) }
                    }
                }
                @for (index, rank) in self.ranks.iter().enumerate() {
                    (self.rank(rank, TOP + ROW * (index as f64 + 0.5), left, &x))
                }
            }
        }
    }

    fn rank(&self, rank: &Rank, y: f64, left: f64, x: &impl Fn(f64) -> f64) -> Markup {
        let Interval { median, lo, hi } = rank.value;
        let r = mark::radius(rank.family, 4.0);
        html! {
            g class={ "s " (rank.family.class()) @if rank.own { " own" } } data-lock=(rank.name) {
                text.end x=(px(left - 8.0)) y=(px(y + 4.0)) text-anchor="end" {
                    @if cut(&rank.name, 22) != rank.name { title { (rank.name) } }
                    (cut(&rank.name, 22))
                }
                line.whisker x1=(px(x(lo))) x2=(px(x(hi))) y1=(px(y)) y2=(px(y)) {}
                path.pt d=(mark::path(rank.family, x(median), y, r)) data-value=(median) {
                    title {
                        (rank.name) ": " ((self.value)(median))
                        " (95 %: " ((self.value)(lo)) " to " ((self.value)(hi)) ")"
                    }
                }
                text.tick x=(px(self.width - 6.0)) y=(px(y + 4.0)) text-anchor="end" {
                    ((self.value)(median))
                }
            }
        }
    }
}
