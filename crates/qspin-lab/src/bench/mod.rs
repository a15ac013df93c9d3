//! Measuring: from what was asked to rows.

pub mod affinity;
pub mod busy;
pub mod cell;
pub mod engine;
pub mod interrupt;
pub mod pair;
pub mod station;
pub mod stats;
pub mod waits;
pub mod workload;
