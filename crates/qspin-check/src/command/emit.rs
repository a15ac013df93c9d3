//! `qspin-check emit`

use std::path::PathBuf;

use super::arguments::Arguments;
use crate::emit::{Client, subjects};

pub(super) fn run(mut arguments: Arguments) -> Result<bool, String> {
    let lock = arguments.need("lock")?;
    let threads = arguments.number("threads", 2)?;
    let sections = arguments.number("sections", 1)?;
    let out = arguments.take("out").map(PathBuf::from);
    arguments.nothing_else()?;
    let one = |lock: &str, out: PathBuf| {
        let client = Client { lock: lock.to_owned(), threads, sections, weak: None };
        let audit = client.emit(&out)?;
        println!("{}: {lock}, {threads} threads, {} atomics", out.display(), audit.atomics.len());
        Ok(true)
    };
    let file = |lock: &str| PathBuf::from(format!("client-{lock}-{threads}.ll"));
    if lock != "all" {
        return one(&lock, out.unwrap_or_else(|| file(&lock)));
    }
    let folder = out.unwrap_or_default();
    subjects()
        .try_fold(true, |good, one_of| Ok(good & one(one_of.name, folder.join(file(one_of.name)))?))
}
