//! The locks of qspin under model checkers: loom and shuttle, and GenMC where there is one.
//!
//! | module | what it holds |
//! |---|---|
//! | [`machine`] | what differs between the checkers |
//! | [`word`], [`platform`] | the platform that locks run on here, over either checker |
//! | [`trace`] | the exact record of one execution, and the judgement on it |
//! | [`scenario`], [`battery`] | small programs, and which of them a lock is run through |
//! | [`model`], [`contend`] | what is known of a lock, and how the harness uses it |
//! | [`subject`] | the locks, as values, with their state diagrams and what a check of them must reach |
//! | [`explore`], [`checks`] | running a scenario through all schedules, or many |
//! | [`mutation`], [`weakening`] | each memory ordering made weaker, alone |
//! | [`planted`] | locks with known bugs, which must be caught |
//! | [`plants`] | bugs planted in the source, as text |
//! | [`emit`], [`genmc`] | LLVM IR of a client, and its executions under GenMC |
//! | [`command`] | the subcommands of `qspin-check` |
//!
//! `docs/verification.md` says what is checked, how far, and what is not seen.

pub mod battery;
pub mod checks;
pub mod command;
pub mod contend;
pub mod emit;
pub mod explore;
pub mod failure;
pub mod genmc;
pub mod machine;
pub mod model;
pub mod mutation;
pub mod planted;
pub mod plants;
pub mod platform;
pub mod scenario;
pub mod subject;
pub mod trace;
pub mod weakening;
pub mod word;
mod workers;
mod world;
