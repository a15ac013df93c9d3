//! Measuring in a guest: from what was asked to a virtual machine, and from its lines to rows.

pub mod accelerator;
pub mod machine;
pub mod reply;
pub mod rows;
pub mod table;
