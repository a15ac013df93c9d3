//! Native waiting: spin until it is so.
//!
//! Right where every waiter runs: as many threads as CPUs at most, none of them preempted. A
//! waiter that is not running when its turn comes stops everybody behind it.

use super::Waiting;

/// Spins; the defaults of [`Waiting`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Spin;

impl Waiting for Spin {}
