//! The subcommands of `qspin`, one file each.
