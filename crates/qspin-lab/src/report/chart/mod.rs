//! Pictures as SVG elements.
//!
//! The writer is our own, over a typed template crate, and not a plotting crate: a report is
//! read in light and dark, on a phone and on paper, with a pointer and with a screen reader. So
//! every mark needs a class for its colour, the data that it shows as attributes, and a title;
//! plotting crates write bare coordinates and fixed colours. What is left to do by hand is the
//! arithmetic of two scales and the spreading of labels.

pub mod labels;
pub mod lines;
pub mod mark;
pub mod minis;
pub mod ranks;
pub mod scale;
pub mod shares;
pub mod waits;

/// A coordinate with a tenth of a pixel, which is finer than any screen.
#[must_use]
pub fn px(value: f64) -> String {
    let rounded = (value * 10.0).round() / 10.0;
    // No "-0": two equal pictures must be equal bytes.
    format!("{}", rounded + 0.0)
}

/// A path through points, `M` first.
#[must_use]
pub fn polyline(points: &[(f64, f64)]) -> String {
    let mut path = String::new();
    for (index, (x, y)) in points.iter().enumerate() {
        path.push(if index == 0 { 'M' } else { 'L' });
        path += &format!("{} {}", px(*x), px(*y));
    }
    path
}
