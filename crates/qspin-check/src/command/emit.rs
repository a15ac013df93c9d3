//! `qspin-check emit`

use std::path::PathBuf;

use super::arguments::Arguments;
use crate::emit::{emit, locks};

pub(super) fn run(mut arguments: Arguments) -> Result<bool, String> {
    let lock = arguments.need("lock")?;
    let threads = arguments.number("threads", 2)?;
    let out = arguments.take("out").map(PathBuf::from);
    arguments.nothing_else()?;
    let one = |lock: &str, out: PathBuf| {
        let audit = emit(lock, threads, &out)?;
        println!("{}: {lock}, {threads} threads, {} atomics", out.display(), audit.atomics.len());
        Ok(true)
    };
    let file = |lock: &str| PathBuf::from(format!("client-{lock}-{threads}.ll"));
    if lock != "all" {
        return one(&lock, out.unwrap_or_else(|| file(&lock)));
    }
    let folder = out.unwrap_or_default();
    locks().try_fold(true, |good, lock| Ok(good & one(lock.name, folder.join(file(lock.name)))?))
}
