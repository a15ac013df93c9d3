//! Measuring: from what was asked to rows.

pub mod affinity;
pub mod busy;
pub mod cell;
pub mod counters;
pub mod engine;
pub mod fairness;
pub mod found;
pub mod grid;
pub mod hog_threads;
pub mod hogs;
pub mod interrupt;
pub mod matrix;
pub mod pair;
pub mod plan;
pub mod rows;
pub mod series;
pub mod session;
mod stand;
pub mod station;
pub mod stats;
pub mod steps;
pub mod surroundings;
pub mod table;
pub mod torture;
pub mod waits;
pub mod workload;
