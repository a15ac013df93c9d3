//! Running a scenario through every schedule, or through many.

mod loom;
mod quiet;
mod scheduler;
mod shuttle;

use std::time::Duration;

pub use self::loom::{LoomLimits, explore as loom};
pub use self::quiet::quietly;
pub use self::scheduler::Strategy;
pub use self::shuttle::{ShuttlePlan, explore as shuttle};

use crate::failure::Failure;
use crate::trace::Coverage;

/// What came of a run.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Executions explored, the failing one included.
    pub executions: u64,
    /// The counterexample.
    pub failure: Option<Failure>,
    /// The seed that gives the failing execution again, where there is one.
    pub seed: Option<u64>,
    /// What the executions have been through.
    pub coverage: Coverage,
    /// How long that took.
    pub took: Duration,
}
