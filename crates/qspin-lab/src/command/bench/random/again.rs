//! A cell once more, in a process of its own: what the first one did to its memory and its CPUs is gone.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::Context;

use crate::bench::random::ROUNDS_AGAIN;
use crate::bench::random::draw::Drawn;
use crate::failure::Failure;
use crate::report::read::read;
use crate::row::Row;

use super::Run;

/// A process that ends with this one.
struct Own(Child);

impl Drop for Own {
    fn drop(&mut self) {
        // One that is gone already is as good as killed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The rows of a cell, from a fresh process; `None` when interrupted.
pub(super) fn measure(run: &Run<'_>, cell: &Drawn) -> Result<Option<Vec<Row>>, Failure> {
    let folder = tempfile::tempdir().context("cannot make a temporary directory")?;
    let (rows, log) = (folder.path().join("rows.jsonl"), folder.path().join("log"));
    let program = std::env::current_exe().context("cannot find this program")?;
    let log_file = std::fs::File::create(&log).context("cannot write a temporary file")?;
    let mut command = Command::new(program);
    command
        .args(options(run, cell))
        .arg("--out")
        .arg(&rows)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log_file);
    let mut child = Own(command.spawn().context("cannot start this program again")?);
    let status = loop {
        if let Some(status) = child.0.try_wait().context("cannot wait for a process")? {
            break status;
        }
        if run.interrupt.sleep(Duration::from_millis(20)) {
            return Ok(None);
        }
    };
    if run.interrupt.is_raised() {
        return Ok(None);
    }
    if !status.success() {
        let said = std::fs::read_to_string(&log).unwrap_or_default();
        let last = said.lines().last().unwrap_or("it said nothing").to_owned();
        return Err(anyhow::anyhow!("cell {} once more, {status}: {last}", cell.number).into());
    }
    Ok(Some(read(&[&rows])?.into_iter().flat_map(|run| run.rows).collect()))
}

fn options(run: &Run<'_>, cell: &Drawn) -> Vec<String> {
    let args = run.args;
    let mut options: Vec<String> = ["bench", "--random", "1", "--seed"].map(String::from).into();
    options.extend([run.seed.to_string(), "--cell".to_owned(), cell.number.to_string()]);
    options.extend(["--rounds".to_owned(), ROUNDS_AGAIN.to_string()]);
    options.extend(["--locks".to_owned(), run.names(), "--pin".to_owned(), args.pin.to_string()]);
    if args.of_rw() {
        options.extend(["--workload", "rw"].map(String::from));
    }
    if let Some(seconds) = args.seconds {
        options.extend(["--seconds".to_owned(), seconds.as_secs_f64().to_string()]);
    }
    let tunes: Vec<String> = args.tunes().iter().map(|(_, tune)| tune.show()).collect();
    if !tunes.is_empty() {
        options.extend(["--tune".to_owned(), tunes.join(",")]);
    }
    options
}
