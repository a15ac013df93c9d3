//! The shape of a point: one a family, so that colour is never the only difference.

use crate::report::chart::px;
use crate::report::family::Family;

/// A path around (0, 0)-based centre; its bounding box is centred on the point.
#[must_use]
pub fn path(family: Family, x: f64, y: f64, r: f64) -> String {
    let (left, right, top, bottom) = (px(x - r), px(x + r), px(y - r), px(y + r));
    let (cx, cy) = (px(x), px(y));
    let size = px(r);
    let turn = px(2.0 * r);
    match family {
        // A circle, as two arcs.
        Family::Queue => {
            format!("M{left} {cy}a{size} {size} 0 1 0 {turn} 0a{size} {size} 0 1 0 -{turn} 0Z")
        }
        Family::Spin => format!("M{left} {top}H{right}V{bottom}H{left}Z"),
        Family::Yield => format!("M{cx} {top}L{right} {bottom}H{left}Z"),
        Family::Sleep => format!("M{cx} {top}L{right} {cy}L{cx} {bottom}L{left} {cy}Z"),
        Family::Other => format!("M{left} {top}L{right} {bottom}M{left} {bottom}L{right} {top}"),
    }
}

/// The radius at which the shapes of all families look equally large.
#[must_use]
pub fn radius(family: Family, base: f64) -> f64 {
    match family {
        Family::Spin => base * 0.88,
        Family::Yield | Family::Other => base,
        Family::Queue => base,
        Family::Sleep => base * 1.25,
    }
}
