//! What a run has finished, on the disk as soon as it has: an hour's run goes on where it was stopped.
//!
//! Beside the file of the rows, which appears whole or not at all, lies its journal: the same rows, written
//! cell by cell, and gone when that file is there.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::failure::Failure;
use crate::report::read::read;
use crate::row::{Machine, Row};

/// A journal, open to be written.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
}

/// What is behind the name of the file of the rows.
const UNFINISHED: &str = ".unfinished";

impl Journal {
    /// The journal of `out`: new, or what the same command has left behind, with its rows.
    ///
    /// # Errors
    ///
    /// Wrong input, when another command or another build has left it behind.
    pub fn open(out: &Path, machine: &Machine) -> Result<(Self, Vec<Row>), Failure> {
        let mut path = out.as_os_str().to_owned();
        path.push(UNFINISHED);
        let path = PathBuf::from(path);
        let shown = path.display();
        let open = || -> std::io::Result<File> {
            OpenOptions::new().append(true).create(true).open(&path)
        };
        let file = open().with_context(|| format!("cannot write {shown}"))?;
        let length = whole_lines(&path).with_context(|| format!("cannot read {shown}"))?;
        file.set_len(length).with_context(|| format!("cannot write {shown}"))?;
        let mut journal = Self { path: path.clone(), file };
        if length == 0 {
            journal.write(&(serde_json::to_string(machine).context("the machine")? + "\n"))?;
            return Ok((journal, Vec::new()));
        }
        let foreign = |whose: &str| {
            Failure::usage(format!(
                "{shown} is what {whose} has left behind: finish that, remove it, or give another --out"
            ))
        };
        if fs::read_to_string(&path).is_ok_and(|text| text.lines().count() == 1) {
            return Ok((journal, Vec::new()));
        }
        let mut runs = read(&[&path])?;
        let (Some(run), true) = (runs.pop(), runs.is_empty()) else {
            return Err(foreign("another command"));
        };
        if (&run.machine.command, run.machine.seed) != (&machine.command, machine.seed) {
            return Err(foreign("another command"));
        }
        if is_older_than_this_build(&run.machine) {
            return Err(foreign("another build of this program"));
        }
        Ok((journal, run.rows))
    }

    /// Adds the rows of a cell, all at once.
    ///
    /// # Errors
    ///
    /// When the disk is full, or a figure is no number.
    pub fn add(&mut self, rows: &[Row]) -> anyhow::Result<()> {
        let mut text = String::new();
        for row in rows {
            text += &(serde_json::to_string(row)? + "\n");
        }
        self.write(&text)
    }

    fn write(&mut self, text: &str) -> anyhow::Result<()> {
        self.file
            .write_all(text.as_bytes())
            .and_then(|()| self.file.sync_data())
            .with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it: everything is in its file.
    pub fn done(self) {
        // One that stays is refused by name the next time.
        let _ = fs::remove_file(&self.path);
    }
}

/// The length without a last line that is torn.
fn whole_lines(path: &Path) -> std::io::Result<u64> {
    let text = fs::read(path)?;
    Ok(text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at as u64 + 1))
}

/// Rows of two builds do not go together: locks may have changed in between.
fn is_older_than_this_build(machine: &Machine) -> bool {
    let built = || fs::metadata(std::env::current_exe().ok()?).ok()?.modified().ok();
    let started: Option<jiff::Timestamp> = machine.started.parse().ok();
    match (built().and_then(|built| jiff::Timestamp::try_from(built).ok()), started) {
        // Rows tell the time in seconds.
        (Some(built), Some(started)) => built.as_second() > started.as_second(),
        _ => false,
    }
}
