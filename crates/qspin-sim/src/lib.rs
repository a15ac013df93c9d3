//! A deterministic simulator: the same lock code on machines that are not at hand.
//!
//! Every simulated CPU runs the real code of `qspin-core`, unchanged, in a coroutine. Each operation on a word
//! costs what the caches of a described machine make it cost. Above the machine is a hypervisor that takes
//! processors away and gives them back. The simulator contains no lock code of its own.
//!
//! [`simulate`] takes a [`Scenario`], which a TOML file describes, and a seed. It returns an [`Outcome`], or
//! how the lock failed ([`Failure`]): two CPUs inside at once, a lost update, or a standstill with the list of
//! waits.
//!
//! * [`engine`]: simulated time, coroutines, randomness;
//! * [`machine`]: caches and distances;
//! * [`platform`]: the platform that a lock finds on a simulated CPU;
//! * [`hypervisor`]: which task runs where;
//! * [`workload`]: what the CPUs do.
//! * [`plan`]: what a scenario file asks for, [`change`]: what it varies; [`catalog`]: machines by name;
//! * [`batch`]: many simulations at once; [`random`]: machines and loads drawn at random;
//! * [`timeline`]: what every CPU did when.

pub mod batch;
pub mod catalog;
pub mod change;
pub mod engine;
pub mod failure;
mod figures;
pub mod hypervisor;
mod lock;
pub mod machine;
pub mod outcome;
pub mod plan;
pub mod platform;
pub mod random;
pub mod scenario;
mod shared;
mod simulate;
pub mod timeline;
pub mod workload;

pub use failure::Failure;
pub use hypervisor::{Hypervisor, Pinning};
pub use lock::Lock;
pub use machine::Machine;
pub use outcome::Outcome;
pub use plan::Plan;
pub use scenario::{Placement, Scenario};
pub use simulate::{
    simulate, simulate_audited, simulate_lock, simulate_shared_lock, simulate_traced,
};
pub use timeline::Timeline;
