//! The locks of a process that runs, and that `qspin run --stats` has started.

use std::fs::{File, OpenOptions};
use std::path::PathBuf;

use serde_json::Value;

use crate::command::proc;
use crate::failure::Failure;

use super::report::{self, Process};
use super::symbols::Maps;
use super::table;

/// Where such a process counts.
pub(in crate::command) struct Live {
    process: u32,
    path: PathBuf,
    file: File,
    /// Where in the file it was last seen to count: it may have executed another program since.
    slot: u64,
    /// So that addresses have names also when it has ended.
    maps: Maps,
}

/// What it had counted at one look.
pub(in crate::command) struct Look(Process);

/// Looks for the locks of a process; `None` if it has none that are counted.
pub(in crate::command) fn live(process: u32) -> Option<Live> {
    // A program may have closed the file; `qspin run`, which has started it, still has it.
    let mut holder = process;
    for _ in 0..64 {
        let files = proc::files(holder, "/memfd:qspin-locks").unwrap_or_default();
        if let Some(live) = files.into_iter().find_map(|path| {
            let file = File::open(&path).ok()?;
            // The file is that of all that `qspin run` started.
            let slot = own_slot(process, &file)?;
            Some(Live { process, path, file, slot, maps: Maps::default() })
        }) {
            return Some(live);
        }
        let status = proc::text(holder, "status")?;
        holder = proc::field(&status, "PPid")?.parse().ok().filter(|parent| *parent != 0)?;
    }
    None
}

/// Where in the file a process counts.
fn own_slot(process: u32, file: &File) -> Option<u64> {
    let slot = report::slot_in(&proc::text(process, "maps")?)?;
    // The child of a fork has its parent's slot.
    let own = proc::own_number(&proc::text(process, "status")?)?;
    let found = report::read_slot(file, slot).ok()??;
    (found.number == own && found.counts).then_some(slot)
}

/// Why a process whose locks are these has no table, if they are.
pub(in crate::command) fn why_not_live(process: u32) -> Option<&'static str> {
    let maps = proc::text(process, "maps")?;
    if !maps.contains(super::library::NAME) {
        return None;
    }
    Some(
        "its locks are those of `qspin run`, and are not counted: they are from the start on with --stats, and \
         not in the child of a fork",
    )
}

impl Live {
    /// What it has counted so far: at its end, too.
    pub(in crate::command) fn look(&mut self) -> Result<Look, Failure> {
        self.maps.look_at(self.process);
        self.slot = own_slot(self.process, &self.file).unwrap_or(self.slot);
        let found = report::read_slot(&self.file, self.slot)?;
        found.map(Look).ok_or_else(|| Failure::usage("the file of its locks is no longer one"))
    }

    /// Lets the counts begin at zero again.
    pub(in crate::command) fn reset(&self) -> std::io::Result<()> {
        report::reset(&OpenOptions::new().read(true).write(true).open(&self.path)?, self.slot)
    }

    /// As a table. `before`: the look before, and how many seconds ago that was.
    pub(in crate::command) fn text(&self, look: &Look, before: Option<(&Look, f64)>) -> String {
        table::text_of(&look.0, self.map(look), before.map(|(look, ago)| (&look.0, ago)))
    }

    /// As JSON.
    pub(in crate::command) fn json(&self, look: &Look, before: Option<(&Look, f64)>) -> Value {
        table::json(&look.0, self.map(look), before.map(|(look, ago)| (&look.0, ago)))
    }

    fn map<'a>(&'a self, look: &'a Look) -> &'a str {
        let maps = [look.0.map.as_str(), self.maps.of(look.0.slot), &look.0.first_map];
        maps.into_iter().find(|map| !map.is_empty()).unwrap_or_default()
    }
}
