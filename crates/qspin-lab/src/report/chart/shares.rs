//! A share of cells against regret: a line a lock, which goes up where a cell has that regret.
//!
//! The further up and left a line is, the better. Most locks of such a picture wait alike, so colours tell
//! locks and not families.

use maud::{Markup, html};

use super::labels::cut;
use super::scale::Scale;
use super::{polyline, px};
use crate::report::number::digits;

/// A lock's line.
#[derive(Debug, Clone)]
pub struct Line {
    /// The name of the lock.
    pub name: String,
    /// Drawn stronger.
    pub own: bool,
    /// Its regrets, ascending.
    pub regrets: Vec<f64>,
}

/// The picture.
#[derive(Debug, Clone)]
pub struct Shares {
    /// What it is, for screen readers.
    pub title: String,
    /// The lines, the best first.
    pub lines: Vec<Line>,
    /// Width in pixels.
    pub width: f64,
}

const LEFT: f64 = 54.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 46.0;
const LINE: f64 = 16.0;
const LABEL_CHARACTERS: usize = 22;
/// Room for the names.
const COLUMN: f64 = 190.0;
/// What lies beyond is drawn at the border.
const MAX: f64 = 4.0;
const TICKS: [f64; 8] = [0.8, 1.0, 1.05, 1.1, 1.2, 1.5, 2.0, 4.0];

impl Shares {
    /// Height in pixels.
    #[must_use]
    pub fn height(&self) -> f64 {
        TOP + BOTTOM + (self.lines.len() as f64 * LINE).max(280.0)
    }

    /// Draws it.
    #[must_use]
    pub fn draw(&self) -> Markup {
        let all = || self.lines.iter().flat_map(|line| &line.regrets).copied();
        let x = Scale::Log {
            lo: all().fold(1.0, f64::min).max(TICKS[0]),
            hi: all().fold(1.2, f64::max).min(MAX),
        };
        let (right, bottom) = (self.width - COLUMN, self.height() - BOTTOM);
        let across = |regret: f64| LEFT + x.place(regret) * (right - LEFT);
        let up = |share: f64| bottom - share * (bottom - TOP);
        let Scale::Log { lo, hi } = x else { return html! {} };
        let hue =
            |index: usize| format!("--c: hsl({} 65% 48%)", index * 360 / self.lines.len().max(1));
        html! {
            svg class="chart shares" xmlns="http://www.w3.org/2000/svg" role="img"
                viewBox=(format!("0 0 {} {}", px(self.width), px(self.height())))
                width=(px(self.width)) height=(px(self.height())) {
                title { (self.title) }
                desc { "For each lock, in which share of the cells its regret is at most so much." }
                text.axis x="4" y="14" { "share of the cells with at most this regret" }
                @for share in [0.0, 0.25, 0.5, 0.75, 1.0] {
                    line.grid x1=(px(LEFT)) x2=(px(right)) y1=(px(up(share))) y2=(px(up(share))) {}
                    text.tick x=(px(LEFT - 6.0)) y=(px(up(share) + 4.0)) text-anchor="end" {
                        (share * 100.0) " %"
                    }
                }
                @for tick in TICKS.into_iter().filter(|tick| (lo..=hi).contains(tick)) {
                    line.grid x1=(px(across(tick))) x2=(px(across(tick))) y1=(px(TOP)) y2=(px(bottom)) {}
                    text.tick x=(px(across(tick))) y=(px(bottom + 18.0)) text-anchor="middle" { (tick) }
                }
                text.axis x=(px(f64::midpoint(LEFT, right))) y=(px(bottom + 38.0))
                    text-anchor="middle" { "regret, logarithmic" }
                @for (index, line) in self.lines.iter().enumerate().rev() {
                    g class={ "s" @if line.own { " own" } } style=(hue(index)) data-lock=(line.name) {
                        path.line d=(polyline(&steps(&line.regrets, right, &across, &up))) {
                            title { (tip(line)) }
                        }
                    }
                }
                @for (index, line) in self.lines.iter().enumerate() {
                    @let y = TOP + (index as f64 + 0.5) * LINE;
                    g class={ "s" @if line.own { " own" } } style=(hue(index)) {
                        path.line d=(polyline(&[(right + 12.0, y), (right + 30.0, y)])) {}
                        text.end x=(px(right + 36.0)) y=(px(y + 4.0)) {
                            title { (tip(line)) }
                            (cut(&line.name, LABEL_CHARACTERS))
                        }
                    }
                }
            }
        }
    }
}

/// What a pointer on a line says.
fn tip(line: &Line) -> String {
    let at = |share: f64| {
        let cells = (share * line.regrets.len() as f64).ceil() as usize;
        line.regrets.get(cells.saturating_sub(1)).map_or_else(String::new, |regret| digits(*regret))
    };
    format!(
        "{}: in half of the cells a regret of at most {}, in nine of ten {}, in all {}",
        line.name,
        at(0.5),
        at(0.9),
        at(1.0)
    )
}

/// Up by a cell's share at each regret, and on to the border.
fn steps(
    regrets: &[f64],
    right: f64,
    across: &dyn Fn(f64) -> f64,
    up: &dyn Fn(f64) -> f64,
) -> Vec<(f64, f64)> {
    let mut points = Vec::with_capacity(2 * regrets.len());
    for (index, regret) in regrets.iter().enumerate() {
        let share = |cells: usize| up(cells as f64 / regrets.len() as f64);
        points.push((across(*regret), share(index)));
        points.push((across(*regret), share(index + 1)));
    }
    points.push((right, up(1.0)));
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_goes_up_by_a_cell_at_each_regret() {
        let found = steps(&[1.0, 2.0], 3.0, &|regret| regret, &|share| share);
        assert_eq!(found, [(1.0, 0.0), (1.0, 0.5), (2.0, 0.5), (2.0, 1.0), (3.0, 1.0)]);
        let line = |name: &str| Line { name: name.to_owned(), own: false, regrets: vec![1.0, 9.0] };
        let picture =
            Shares { title: "t".to_owned(), lines: vec![line("a"), line("b")], width: 800.0 };
        let text = picture.draw().into_string();
        let said = "<title>b: in half of the cells a regret of at most 1, in nine of ten 9, in all 9</title>";
        assert!(text.contains(said), "{text}");
        assert!(text.contains("data-lock=\"a\"") && text.contains("25 %"), "{text}");
    }
}
