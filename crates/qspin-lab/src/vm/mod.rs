//! Measuring in a guest: from what was asked to a virtual machine, and from its lines to rows.

pub mod accelerator;
pub mod emulator;
pub mod machine;
pub mod preempt;
pub mod reply;
pub mod rows;
pub mod table;
