//! `qspin-check emit`
use super::arguments::Arguments;
pub(super) fn run(_: Arguments) -> Result<bool, String> { Err("not yet".into()) }
