//! The laboratory of qspin: measures locks, and shows what was measured.
//!
//! One file a subcommand (`command`), one file an output format (`report`).

pub mod bench;
pub mod command;
pub mod compare;
pub mod contender;
pub mod failure;
pub mod output;
pub mod quantity;
pub mod remedy;
pub mod report;
pub mod row;
pub mod this_machine;
pub mod tune;
pub mod verdict;
pub mod vm;
