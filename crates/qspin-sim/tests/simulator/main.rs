//! The simulator's tests, a file a subject.

mod common;
mod costs;
mod determinism;
mod hypervisor;
mod locks;
mod planted;
mod workloads;
