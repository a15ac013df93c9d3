//! The simulator's tests, a file a subject.

mod costs;
mod counting;
mod determinism;
mod files;
mod fixtures;
mod hypervisor;
mod locks;
mod planted;
mod workloads;
