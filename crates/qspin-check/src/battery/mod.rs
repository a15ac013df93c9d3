//! Which scenarios a lock is run through, and how far.

mod loom;
mod shuttle;

pub use self::loom::{for_loom, of_waiting_release};
pub use self::shuttle::for_shuttle;

use std::sync::Arc;

use crate::scenario::Scenario;

/// The scenario or scenarios of a check.
pub enum Program {
    /// One scenario.
    One(Arc<Scenario>),
    /// One for every operation at which a context may be interrupted.
    EveryOperation(fn(u32) -> Scenario),
}

/// One check of loom's: a program, and how many preemptions of it are explored.
pub struct Check {
    /// The program.
    pub program: Program,
    /// The bound, or `None` for every schedule.
    pub preemptions: Option<usize>,
}

impl Check {
    /// How many contexts it has.
    #[must_use]
    pub fn threads(&self) -> usize {
        match &self.program {
            Program::One(scenario) => scenario.threads.len(),
            Program::EveryOperation(scenario) => scenario(0).threads.len(),
        }
    }

    /// The name of the scenario.
    #[must_use]
    pub fn name(&self) -> String {
        match &self.program {
            Program::One(scenario) => scenario.name.clone(),
            Program::EveryOperation(scenario) => scenario(0).name,
        }
    }
}
