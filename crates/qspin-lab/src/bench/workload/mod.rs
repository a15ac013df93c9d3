//! What threads do under a lock and between two acquisitions: one file a workload.

pub mod kernel_lock_bench;
pub mod lengths;
pub mod locktorture;
pub mod varied;

/// A workload of a mutual exclusion lock.
pub trait Work: Sync {
    /// The data that the lock protects.
    type Shared: Sync;

    /// What a thread keeps for itself.
    type Local;

    /// Fresh data.
    fn shared(&self) -> Self::Shared;

    /// The state of thread `index` of `threads`.
    fn local(&self, index: usize, threads: usize) -> Self::Local;

    /// The critical section; counts itself in `shared` without an atomic read-modify-write, so
    /// that an overlap loses a count.
    fn critical(&self, shared: &Self::Shared, local: &mut Self::Local);

    /// The work between two critical sections.
    fn outside(&self, local: &mut Self::Local);

    /// How many critical sections have counted themselves.
    fn counted(&self, shared: &Self::Shared) -> u64;
}
