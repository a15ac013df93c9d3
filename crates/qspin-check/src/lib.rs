//! The locks of qspin under model checkers.
pub mod battery;
pub mod checks;
pub mod command;
pub mod emit;
pub mod explore;
pub mod failure;
pub mod ledger;
pub mod machine;
pub mod mutation;
pub mod planted;
pub mod platform;
pub mod scenario;
pub mod subject;
pub mod weakening;
pub mod word;
mod world;
