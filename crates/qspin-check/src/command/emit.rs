//! `qspin-check emit`

use std::path::PathBuf;

use super::arguments::Arguments;
use crate::emit::emit;

pub(super) fn run(mut arguments: Arguments) -> Result<bool, String> {
    let lock = arguments.need("lock")?;
    let threads = arguments.number("threads", 2)?;
    let out = arguments.take("out").unwrap_or_else(|| format!("client-{lock}-{threads}.ll"));
    arguments.nothing_else()?;
    let out = PathBuf::from(out);
    let audit = emit(&lock, threads, &out)?;
    println!("{}: {lock}, {threads} threads, {} atomics", out.display(), audit.atomics.len());
    Ok(true)
}
