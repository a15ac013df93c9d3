//! The locks of a process that runs under the library: counted from its start on, or while a command looks.

use std::fs::{File, OpenOptions};
use std::path::PathBuf;

use serde_json::Value;

use crate::command::proc;
use crate::failure::Failure;

use super::report::{self, Process};
use super::switch::{Switch, What};
use super::symbols::{Maps, Names};
use super::{deadlock, table, watch};

/// Where such a process counts.
pub(in crate::command) struct Live {
    process: u32,
    path: PathBuf,
    file: File,
    /// Where in the file it was last seen to count: it may have executed another program since.
    slot: u64,
    /// So that addresses have names also when it has ended.
    maps: Maps,
    /// What was switched on for this look at it.
    switch: Option<Switch>,
}

/// What it had counted at one look.
pub(in crate::command) struct Look(Process);

/// Looks for the locks of a process; `None` if it has none that can be counted.
pub(in crate::command) fn live(process: u32) -> Option<Live> {
    // A program may have closed the file; `qspin run`, which has started it, still has it.
    let mut holder = process;
    for _ in 0..64 {
        let files = proc::files(holder, "/memfd:qspin-locks").unwrap_or_default();
        let found = files.into_iter().filter_map(|path| {
            // To switch something on, it is written to; to look at what is on anyway, it need not be.
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .open(&path)
                .or_else(|_| File::open(&path))
                .ok()?;
            // The file is that of all that `qspin run` started.
            let slot = own_slot(process, &file)?;
            Some(Live { process, path, file, slot, maps: Maps::default(), switch: None })
        });
        // The locks of the crate, if it has both: a Rust program takes few of pthread's.
        if let Some(live) = found.max_by_key(Live::is_of_the_crate) {
            return Some(live);
        }
        let status = proc::text(holder, "status")?;
        holder = proc::field(&status, "PPid")?.parse().ok().filter(|parent| *parent != 0)?;
    }
    None
}

/// Where in the file a process counts.
fn own_slot(process: u32, file: &File) -> Option<u64> {
    let map = proc::text(process, "maps")?;
    // The child of a fork has its parent's slot.
    let own = proc::own_number(&proc::text(process, "status")?)?;
    let is_own = |slot: &u64| {
        let found = report::read_slot(file, *slot).ok().flatten()?;
        (found.number == own).then_some(found.is_of_the_crate())
    };
    let slots = report::slots_in(&map).into_iter();
    let own = slots.filter_map(|slot| Some((is_own(&slot)?, slot)));
    own.max().map(|(_, slot)| slot)
}

/// Why a process whose locks are these has no table, if they are.
pub(in crate::command) fn why_not_live(process: u32) -> Option<&'static str> {
    let maps = proc::text(process, "maps")?;
    if !maps.contains(super::library::NAME) {
        return None;
    }
    let files = proc::files(process, "/memfd:qspin-locks").unwrap_or_default();
    let other =
        |path: &PathBuf| File::open(path).is_ok_and(|file| report::is_of_another_version(&file));
    if files.iter().any(other) {
        return Some(
            "its library is of another version than this command: use the `qspin` that is installed with it",
        );
    }
    Some(
        "its locks are those of `qspin run`, but it is the child of a fork that has executed no program, or has closed \
         its files: look at its parent",
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

    /// Whether its locks are those of the crate, which do not write down what threads hold.
    pub(in crate::command) fn is_of_the_crate(&self) -> bool {
        let found = report::read_slot(&self.file, self.slot).ok().flatten();
        found.is_some_and(|found| found.is_of_the_crate())
    }

    /// Whether it counts.
    pub(in crate::command) fn counts(&self) -> bool {
        let look = Switch::of(&self.file, self.slot).ok();
        look.is_some_and(|switch| switch.is_on(What::Counts))
    }

    /// Whether it writes down what its threads hold.
    pub(in crate::command) fn tracks(&self) -> bool {
        let look = Switch::of(&self.file, self.slot).ok();
        look.is_some_and(|switch| switch.is_on(What::Holds))
    }

    /// Switches something on, until this is dropped.
    pub(in crate::command) fn switch_on(&mut self, what: What) -> std::io::Result<()> {
        if self.switch.is_none() {
            let file = OpenOptions::new().read(true).write(true).open(&self.path)?;
            self.switch = Some(Switch::of(&file, self.slot)?);
        }
        self.switch.as_mut().into_iter().for_each(|switch| switch.on(what));
        Ok(())
    }

    /// What every thread waits for and holds, and what is wrong with that; and whether it is certain that something is.
    pub(in crate::command) fn deadlocks(&mut self) -> Result<(String, bool), Failure> {
        let find = |live: &Self| deadlock::find(&live.file, live.slot, live.process);
        let mut found = find(self)?;
        if found.iter().any(|finding| !matches!(finding, deadlock::Finding::Circle(_))) {
            // What is no circle may be about to end.
            std::thread::sleep(watch::LASTING);
            let again = find(self)?;
            found.retain(|finding| again.iter().any(|other| other.key() == finding.key()));
        }
        let map = proc::map(self.process).unwrap_or_default();
        let mut names = Names::of(&map);
        let certain = found.iter().any(deadlock::Finding::is_certain);
        Ok((watch::overview(&self.file, self.slot, self.process, &mut names), certain))
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
        table::map_of(&look.0, &self.maps)
    }
}
