//! Something against the number of threads: a line a lock, with its 95 % interval as a band.

use maud::{Markup, html};

use super::labels::{cut, spread};
use super::scale::Scale;
use super::{mark, polyline, px};
use crate::report::family::Family;

/// A measured point.
#[derive(Debug, Clone, Copy)]
pub struct Point {
    /// Number of threads.
    pub threads: u32,
    /// The value.
    pub value: f64,
    /// Lower and upper end of the 95 % interval, where there is one.
    pub interval: Option<(f64, f64)>,
}

/// A lock's line.
#[derive(Debug, Clone)]
pub struct Series {
    /// Name of the contender.
    pub name: String,
    /// Colour and shape.
    pub family: Family,
    /// Drawn stronger.
    pub own: bool,
    /// Marked as recommended.
    pub starred: bool,
    /// Ascending by threads.
    pub points: Vec<Point>,
}

/// A double arrow between two values at a number of threads, with words.
#[derive(Debug, Clone)]
pub struct Callout {
    /// Number of threads.
    pub threads: u32,
    /// The larger value.
    pub from: f64,
    /// The smaller value.
    pub to: f64,
    /// What it says.
    pub words: String,
}

/// A chart against threads.
#[derive(Debug, Clone)]
pub struct Lines<'a> {
    /// What it is, for screen readers.
    pub title: String,
    /// What one sees in it, for screen readers.
    pub description: String,
    /// The quantity and its unit, at the axis.
    pub axis: &'a str,
    /// The lines.
    pub series: Vec<Series>,
    /// The threads that find a CPU, and the name of the border.
    pub room: Option<(f64, String)>,
    /// The gap that the reader should see.
    pub callout: Option<Callout>,
    /// How a value reads, with its unit.
    pub value: fn(f64) -> String,
    /// Width in pixels.
    pub width: f64,
}

const LINE: f64 = 14.5;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 46.0;
const LEFT: f64 = 54.0;
/// The fewest characters of a label that is cut, and the part of the width that labels may take.
const LABEL_CHARACTERS: usize = 22;
const LABELS: f64 = 0.36;
/// Width of a character of a label, with what a bold one takes more.
const CHARACTER: f64 = 7.0;
/// So many intervals may lie on each other and be told apart. Of more, each shows with a pointer on its line.
const BANDS: usize = 6;

/// The rectangle in which the lines are.
struct Plot {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    y: Scale,
    /// Logarithms of the smallest and the largest number of threads.
    x: (f64, f64),
}

impl Plot {
    fn x(&self, threads: f64) -> f64 {
        let (lo, hi) = self.x;
        let place =
            if hi > lo { (threads.max(f64::MIN_POSITIVE).ln() - lo) / (hi - lo) } else { 0.5 };
        // A little air, so that no point sits on the border.
        let (left, right) = (self.left + 14.0, self.right - 14.0);
        left + place * (right - left)
    }

    fn y(&self, value: f64) -> f64 {
        self.bottom - self.y.place(value) * (self.bottom - self.top)
    }
}

impl Lines<'_> {
    /// Height in pixels: room for a label a lock.
    #[must_use]
    pub fn height(&self) -> f64 {
        let rows = self.series.len() as f64 * LINE;
        (self.width * 0.56).clamp(300.0, 470.0).max(rows + 20.0) + TOP + BOTTOM
    }

    /// Draws the chart.
    #[must_use]
    pub fn draw(&self) -> Markup {
        let longest = self.series.iter().map(|series| self.label(series).chars().count()).max();
        let column = 26.0 + CHARACTER * longest.unwrap_or(0) as f64;
        let height = self.height();
        let ends = self.series.iter().flat_map(|series| &series.points).flat_map(|point| {
            let (lo, hi) = point.interval.unwrap_or((point.value, point.value));
            [lo, point.value, hi]
        });
        let threads = self.threads();
        let log = |threads: Option<&u32>| threads.map_or(0.0, |t| f64::from(*t).ln());
        let plot = Plot {
            left: LEFT,
            right: self.width - column,
            top: TOP,
            bottom: height - BOTTOM,
            y: Scale::fit(ends),
            x: (log(threads.first()), log(threads.last())),
        };
        html! {
            svg class={ "chart lines" @if self.series.len() > BANDS { " crowded" } } xmlns="http://www.w3.org/2000/svg" role="img"
                viewBox=(format!("0 0 {} {}", px(self.width), px(height)))
                width=(px(self.width)) height=(px(height)) {
                title { (self.title) }
                desc { (self.description) }
                (self.region(&plot))
                (self.axes(&plot, &threads))
                // Own locks last: they lie on top.
                @for series in self.series.iter().filter(|series| !series.own) {
                    (self.line(&plot, series))
                }
                @for series in self.series.iter().filter(|series| series.own) {
                    (self.line(&plot, series))
                }
                (self.labels(&plot))
                (self.call_out(&plot))
            }
        }
    }

    fn threads(&self) -> Vec<u32> {
        let mut threads: Vec<u32> = self
            .series
            .iter()
            .flat_map(|series| series.points.iter().map(|point| point.threads))
            .collect();
        threads.sort_unstable();
        threads.dedup();
        threads
    }

    /// Where threads outnumber CPUs.
    fn region(&self, plot: &Plot) -> Markup {
        let Some((room, name)) = &self.room else {
            return html! {};
        };
        let last = plot.x(plot.x.1.exp());
        let border = if *room < 1.0 { plot.left } else { plot.x(*room) };
        if border >= last {
            // Every point has its CPUs: nothing to warn of.
            return html! {};
        }
        html! {
            rect.over x=(px(border)) y=(px(plot.top - 22.0))
                width=(px(plot.right - border)) height=(px(plot.bottom - plot.top + 22.0)) {}
            line.cpus x1=(px(border)) x2=(px(border))
                y1=(px(plot.top - 22.0)) y2=(px(plot.bottom)) data-room=(room) {}
            @if border - plot.left > 60.0 {
                text.region x=(px(border - 6.0)) y=(px(plot.top - 8.0)) text-anchor="end" { (name) }
            }
            text.region.warn x=(px(border + 6.0)) y=(px(plot.top - 8.0)) {
                @if plot.right - border > 170.0 { "more threads than CPUs →" }
                @else { "threads > CPUs" }
            }
        }
    }

    fn axes(&self, plot: &Plot, threads: &[u32]) -> Markup {
        let mut shown_until = f64::NEG_INFINITY;
        html! {
            @for tick in plot.y.ticks() {
                @let y = plot.y(tick.value);
                line.grid.faint[!tick.major] x1=(px(plot.left)) x2=(px(plot.right))
                    y1=(px(y)) y2=(px(y)) data-tick-y=[tick.major.then_some(tick.value)] {}
                @if tick.major {
                    text.tick x=(px(plot.left - 6.0)) y=(px(y + 4.0)) text-anchor="end" {
                        ((self.value)(tick.value))
                    }
                }
            }
            text.axis x="4" y="14" {
                (self.axis) @if plot.y.is_log() { ", logarithmic" }
            }
            line.axis-line x1=(px(plot.left)) x2=(px(plot.right))
                y1=(px(plot.bottom)) y2=(px(plot.bottom)) {}
            @for count in threads {
                @let x = plot.x(f64::from(*count));
                @let half = 4.0 * count.to_string().len() as f64;
                line.axis-line x1=(px(x)) x2=(px(x)) y1=(px(plot.bottom)) y2=(px(plot.bottom + 4.0))
                    data-tick-x=(count) {}
                @if x - half > shown_until {
                    @let () = shown_until = x + half + 4.0;
                    text.tick x=(px(x)) y=(px(plot.bottom + 18.0)) text-anchor="middle" { (count) }
                }
            }
            text.axis x=(px(f64::midpoint(plot.left, plot.right))) y=(px(plot.bottom + 38.0))
                text-anchor="middle" { "threads" }
        }
    }

    fn line(&self, plot: &Plot, series: &Series) -> Markup {
        let at = |threads: u32, value: f64| (plot.x(f64::from(threads)), plot.y(value));
        let middle: Vec<_> = series.points.iter().map(|p| at(p.threads, p.value)).collect();
        let upper = series.points.iter().filter_map(|p| Some(at(p.threads, p.interval?.1)));
        let lower = series.points.iter().rev().filter_map(|p| Some(at(p.threads, p.interval?.0)));
        let band: Vec<_> = upper.chain(lower).collect();
        let base = if series.own { 4.4 } else { 3.2 };
        let r = mark::radius(series.family, base);
        html! {
            g class={
                "s " (series.family.class())
                @if series.own { " own" } @if series.starred { " starred" }
            } data-lock=(series.name) {
                @if series.points.len() > 1 && !band.is_empty() {
                    path.band d={ (polyline(&band)) "Z" } {}
                }
                @if let ([only], [top, bottom]) = (&middle[..], &band[..]) {
                    line.whisker x1=(px(only.0)) x2=(px(only.0)) y1=(px(top.1)) y2=(px(bottom.1)) {}
                }
                path.line d=(polyline(&middle)) {}
                @for (point, (x, y)) in series.points.iter().zip(&middle) {
                    path.pt d=(mark::path(series.family, *x, *y, r))
                        data-threads=(point.threads) data-value=(point.value) {
                        title { (self.tip(series, point)) }
                    }
                }
            }
        }
    }

    fn tip(&self, series: &Series, point: &Point) -> String {
        let threads = if point.threads == 1 { "thread" } else { "threads" };
        let interval = point
            .interval
            .map(|(lo, hi)| format!(" (95 %: {} to {})", (self.value)(lo), (self.value)(hi)));
        format!(
            "{}, {} {threads}: {}{}",
            series.name,
            point.threads,
            (self.value)(point.value),
            interval.unwrap_or_default()
        )
    }

    fn labels(&self, plot: &Plot) -> Markup {
        let ends: Vec<(&Series, f64, f64)> = self
            .series
            .iter()
            .filter_map(|series| {
                let last = series.points.last()?;
                Some((series, plot.x(f64::from(last.threads)), plot.y(last.value)))
            })
            .collect();
        let wishes: Vec<f64> = ends.iter().map(|(_, _, y)| *y).collect();
        let places = spread(&wishes, LINE, plot.top - 4.0, plot.bottom);
        let x = plot.right + 18.0;
        html! {
            @for ((series, end, y), place) in ends.iter().zip(places) {
                g class={ "s tag " (series.family.class()) @if series.own { " own" } }
                    data-lock=(series.name) {
                    path.leader d=(polyline(&[
                        (end + 6.0, *y), (plot.right + 2.0, *y), (x - 3.0, place),
                    ])) {}
                    text.end x=(px(x)) y=(px(place + 4.0)) {
                        @if self.label(series).contains('…') { title { (series.name) } }
                        (self.label(series))
                    }
                }
            }
        }
    }

    /// The text at a line's end, cut only where labels would leave too little of the chart.
    fn label(&self, series: &Series) -> String {
        let room = (self.width * LABELS / CHARACTER) as usize;
        let name = cut(&series.name, room.max(LABEL_CHARACTERS));
        if series.starred { format!("{name} ★") } else { name }
    }

    fn call_out(&self, plot: &Plot) -> Markup {
        let Some(callout) = &self.callout else {
            return html! {};
        };
        // Beside the points, not over them.
        let x = plot.x(f64::from(callout.threads)) - 16.0;
        let (top, bottom) = (plot.y(callout.from), plot.y(callout.to));
        if bottom - top < 40.0 {
            // No room for words between the two points; the verdict says it anyway.
            return html! {};
        }
        let (top, bottom) = (top + 9.0, bottom - 9.0);
        // To the right of the arrow where there is no room to the left of it.
        let is_left = x - 9.0 - CHARACTER * callout.words.chars().count() as f64 > plot.left;
        let (words_x, anchor) = if is_left { (x - 9.0, "end") } else { (x + 32.0, "start") };
        html! {
            g.callout {
                path d={
                    (polyline(&[(x, top), (x, bottom)]))
                    (polyline(&[(x - 4.0, top + 6.0), (x, top), (x + 4.0, top + 6.0)]))
                    (polyline(&[(x - 4.0, bottom - 6.0), (x, bottom), (x + 4.0, bottom - 6.0)]))
                } {}
                text x=(px(words_x)) y=(px(top + (bottom - top) * 0.62)) text-anchor=(anchor) {
                    (callout.words)
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contender::catalog::locks;
    use crate::report::number::rate;

    fn chart<'a>(names: &[&str], width: f64) -> Lines<'a> {
        let series = |(index, name): (usize, &&str)| Series {
            name: (*name).to_owned(),
            family: Family::of(name),
            own: index % 2 == 0,
            starred: index == 0,
            points: [1, 2, 64]
                .map(|threads| {
                    let value = 3e7 / f64::from(threads * (index as u32 + 1).pow(3));
                    Point { threads, value, interval: Some((value * 0.9, value * 1.1)) }
                })
                .into(),
        };
        Lines {
            title: "t".to_owned(),
            description: String::new(),
            axis: "operations a second",
            series: names.iter().enumerate().map(series).collect(),
            room: Some((2.0, "2 CPUs".to_owned())),
            callout: Some(Callout {
                threads: 2,
                from: 1e7,
                to: 1e4,
                words: "native: 40 times less".to_owned(),
            }),
            value: rate,
            width,
        }
    }

    /// Where a text begins and ends, as wide as the widest fonts have it.
    fn extent(text: roxmltree::Node<'_, '_>) -> (f64, f64) {
        let length = text.children().filter(roxmltree::Node::is_text);
        let length: usize = length.filter_map(|part| part.text()).map(|t| t.chars().count()).sum();
        let (x, width) =
            (text.attribute("x").unwrap().parse::<f64>().unwrap(), length as f64 * 7.0);
        match text.attribute("text-anchor") {
            Some("end") => (x - width, x),
            Some("middle") => (x - width / 2.0, x + width / 2.0),
            _ => (x, x + width),
        }
    }

    #[test]
    fn no_label_is_clipped() {
        let all = locks();
        let mut names: Vec<&str> = all.iter().map(|lock| lock.name).collect();
        names.push("paravirt-queued [defer=always kick_ahead=2]");
        for width in [385.0, 430.0, 900.0] {
            let picture = chart(&names, width).draw().into_string();
            let picture = roxmltree::Document::parse(&picture).unwrap();
            let texts = picture.descendants().filter(|node| node.has_tag_name("text"));
            let mut labels = 0;
            for text in texts {
                let (from, to) = extent(text);
                let said: String = text.descendants().filter_map(|node| node.text()).collect();
                assert!(from >= 0.0 && to <= width, "{width}: {said} from {from} to {to}");
                labels += usize::from(text.attribute("class") == Some("end"));
            }
            assert_eq!(labels, names.len());
        }
        // Names of locks are whole at every width, and what was tuned where the chart has the page for itself.
        let narrow = chart(&names, 385.0).draw().into_string();
        assert!(
            all.iter()
                .all(|lock| narrow.contains(&format!(">{}<", lock.name)) || lock.name == names[0])
        );
        assert!(
            chart(&names, 900.0)
                .draw()
                .into_string()
                .contains(">paravirt-queued [defer=always kick_ahead=2]<")
        );
    }

    #[test]
    fn more_intervals_than_can_be_told_apart_do_not_lie_on_each_other() {
        let names = ["a", "b", "c", "d", "e", "f", "g"];
        assert!(chart(&names, 900.0).draw().into_string().contains("chart lines crowded"));
        assert!(!chart(&names[..6], 900.0).draw().into_string().contains("crowded"));
    }
}
