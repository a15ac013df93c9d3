//! `qspin report merge`: the parts of a sweep become what one computer would have made of all of it.

use std::path::PathBuf;
use std::process::ExitCode;

use qspin_reproduce::merge::merge;

use crate::failure::Failure;
use crate::output::Output;
use crate::row::Row;

/// Put the parts of a sweep together, as `qspin simulate --shard` or `qspin reproduce --shard` made them.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Files of all parts, in any order.
    #[arg(required = true, value_name = "PART.jsonl")]
    parts: Vec<PathBuf>,
    /// File for the whole: the rows of `simulate`, the JSON of `reproduce`; without it, the standard output.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Reads, puts together, and writes; nothing is written where something is wrong.
///
/// # Errors
///
/// What is wrong with the parts, and what would be right.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let out = args.out.as_deref().map(Output::prepare).transpose()?;
    if let Some(out) = &out
        && args.parts.iter().any(|part| part.canonicalize().is_ok_and(|it| it == out.path()))
    {
        return Err(Failure::usage(format!(
            "the whole would replace the part {}; name another file with --out",
            out.path().display()
        )));
    }
    let is_partial = |line: &str| serde_json::from_str(line).map(|row: Row| row.partial);
    let text = merge(&args.parts, is_partial).map_err(Failure::usage)?;
    crate::command::write(out, &text)?;
    Ok(ExitCode::SUCCESS)
}
