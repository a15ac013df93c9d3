//! This machine: the one home of everything that is asked of it, or made on it, outside the measured loops.
//!
//! What it is, for the row that stands above all rows, and what disturbed it (`card.rs`); how many threads it makes
//! (`capacity.rs`); whether its CPUs were moved meanwhile (`distance.rs`); a quota of its CPU time (`quota.rs`); and
//! itself as the simulator describes machines
//! (`described.rs`), of what sysfs says and what is measured.

mod alone;
mod capacity;
mod card;
mod described;
mod distance;
pub(crate) mod quota;
mod shape;
mod transfers;

pub use capacity::threads_possible;
pub use card::{Ticks, describe, made_up};
pub use described::{Measured, THOROUGH, described, measure, system};
pub use distance::Distances;
pub use quota::QuotaGroup;
