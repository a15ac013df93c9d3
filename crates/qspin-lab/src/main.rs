//! The command `qspin`.

fn main() {}
