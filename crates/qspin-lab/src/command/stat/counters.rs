//! A process's files of counters: finding, reading and resetting them.
//!
//! They are read by ordinary reads at an offset, never mapped: a file that is cut off gives
//! an error that way, not a signal.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::time::Duration;

use crate::command::proc;
use crate::failure::Failure;

use super::header::{self, Counter, Fault, Header};
use super::process::Process;

/// What the kernel calls the file, before the name of the group.
const PREFIX: &str = "/memfd:qspin-stat:";

/// A group of counters that a process publishes.
#[derive(Debug)]
pub(super) struct Found {
    header: Header,
    file: File,
    /// Opened for writing, or why it is not.
    writable: Result<File, String>,
    identity: (u64, u64),
}

/// What a group has counted.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) group: String,
    /// Tells the group from others of its name.
    pub(super) identity: (u64, u64),
    /// In the order of the file.
    pub(super) counts: Vec<(Counter, u64)>,
    /// For how long it has counted since it began or was reset, where the clock allows to say.
    pub(super) counted_for: Option<Duration>,
}

impl Reading {
    /// The count of a counter.
    pub(super) fn count(&self, name: &str) -> u64 {
        let found = self.counts.iter().find(|(counter, _)| counter.name == name);
        found.map_or(0, |(_, count)| *count)
    }
}

impl Found {
    pub(super) fn name(&self) -> &str {
        &self.header.group
    }

    /// Why the counters cannot be reset.
    pub(super) fn why_not_writable(&self) -> Option<&str> {
        self.writable.as_ref().err().map(String::as_str)
    }

    /// What was counted.
    pub(super) fn read(&self) -> Result<Reading, String> {
        let Header { group, counters, mark, started_ns, .. } = &self.header;
        // The mark first: counters only grow, so no sum is less than what an older mark says.
        let (mark, reset_ns) = {
            let record = self.records(*mark, 1)?;
            (self.sums(&record), *record.last().unwrap_or(&0))
        };
        let sums = self.all_sums()?;
        let counts = counters.iter().cloned().zip(sums.iter().zip(&mark));
        let since = if reset_ns == 0 { *started_ns } else { reset_ns };
        Ok(Reading {
            group: group.clone(),
            identity: self.identity,
            counts: counts
                .map(|(counter, (sum, mark))| (counter, sum.wrapping_sub(*mark)))
                .collect(),
            counted_for: since_boot_ns().checked_sub(since).map(Duration::from_nanos),
        })
    }

    /// Lets the counters begin at zero again: writes down what is to be subtracted. Nothing that is
    /// being counted is touched, so nothing is lost.
    pub(super) fn reset(&self) -> Result<(), String> {
        let file = self.writable.as_ref().map_err(Clone::clone)?;
        let mut record = self.all_sums()?;
        record.resize(self.header.stride as usize / 8 - 1, 0);
        record.push(since_boot_ns());
        let bytes: Vec<u8> = record.into_iter().flat_map(u64::to_ne_bytes).collect();
        let at = self.header.offset + self.header.mark * self.header.stride;
        file.write_all_at(&bytes, at).map_err(|why| format!("cannot be reset: {why}"))
    }

    /// The sum of each counter over all records but the mark.
    fn all_sums(&self) -> Result<Vec<u64>, String> {
        let Header { mark, records, .. } = self.header;
        let before = self.sums(&self.records(0, mark)?);
        let after = self.sums(&self.records(mark + 1, records - mark - 1)?);
        Ok(before.iter().zip(&after).map(|(one, other)| one.wrapping_add(*other)).collect())
    }

    /// The words of `number` records from the one numbered `first`.
    fn records(&self, first: u64, number: u64) -> Result<Vec<u64>, String> {
        let Header { offset, stride, .. } = self.header;
        let mut bytes = vec![0; (number * stride) as usize];
        self.file
            .read_exact_at(&mut bytes, offset + first * stride)
            .map_err(|why| format!("cannot be read: {why}"))?;
        let words = bytes.as_chunks().0;
        Ok(words.iter().map(|word| u64::from_ne_bytes(*word)).collect())
    }

    /// The sum of each counter over these records.
    fn sums(&self, words: &[u64]) -> Vec<u64> {
        let mut sums = vec![0_u64; self.header.counters.len()];
        for record in words.chunks_exact(self.header.stride as usize / 8) {
            for (sum, count) in sums.iter_mut().zip(record) {
                *sum = sum.wrapping_add(*count);
            }
        }
        sums
    }
}

/// What was found in a process, and what was said about it.
#[derive(Debug, Default)]
pub(super) struct Search {
    known: Vec<Found>,
    /// Faults that the user knows of.
    told: HashSet<String>,
}

/// A file with the right name.
enum Candidate {
    Good(Box<Found>),
    /// It counts for another process, which has this number.
    Foreign(u32),
    /// The file, and what is wrong with it.
    Bad(String),
}

impl Search {
    /// The groups of the process, at least one.
    ///
    /// # Errors
    ///
    /// Says why there is none.
    pub(super) fn first(&mut self, process: &Process) -> Result<&[Found], Failure> {
        let (foreign, bad) = self.look(process).map_err(|why| process.refusal(&why))?;
        if !self.known.is_empty() {
            self.tell(process, bad);
            return Ok(&self.known);
        }
        if !bad.is_empty() {
            let bad = bad.join(", ");
            return Err(Failure::usage(format!("{process} has no statistics to show: {bad}")));
        }
        let why = match foreign.first() {
            Some(other) => format!(
                "the file that it has open is process {other}'s (a raw fork makes a child count \
                 there)"
            ),
            None if has_closed_files(process) => {
                "it has closed their files, or has not counted yet since it was forked".to_owned()
            }
            None => "none of its locks counts (a CountedMutex, or one with a counter group), or \
                     none has had to wait yet; pthread locks are counted of a program that is started by \
                     `qspin run -- PROGRAM`"
                .to_owned(),
        };
        Err(Failure::usage(format!("{process} publishes no qspin statistics: {why}")))
    }

    /// The groups of the process as of now; those that have begun since are there, too.
    pub(super) fn again(&mut self, process: &Process) -> &[Found] {
        // An end, or a new user, between two looks shows itself at the next one.
        if let Ok((_, bad)) = self.look(process) {
            self.tell(process, bad);
        }
        &self.known
    }

    /// The groups of the look before.
    pub(super) fn known(&self) -> &[Found] {
        &self.known
    }

    /// Says once what is wrong with files beside good ones.
    fn tell(&mut self, process: &Process, bad: Vec<String>) {
        for bad in bad {
            if !self.told.contains(&bad) {
                crate::command::tell(&format!("{process}: {bad}"));
                self.told.insert(bad);
            }
        }
    }

    /// Looks through the open files. Gives the processes that other files count for, and what is
    /// wrong with files.
    fn look(&mut self, process: &Process) -> std::io::Result<(Vec<u32>, Vec<String>)> {
        let (mut present, mut foreign, mut bad) = (HashSet::new(), Vec::new(), Vec::new());
        for path in proc::files(process.pid, PREFIX)? {
            let Ok(identity) = fs::metadata(&path).map(|data| (data.dev(), data.ino())) else {
                // Closed in this moment.
                continue;
            };
            // One file may be open more than once.
            if !present.insert(identity) || self.known.iter().any(|had| had.identity == identity) {
                continue;
            }
            match open(process, &path, identity) {
                Candidate::Good(found) => self.known.push(*found),
                Candidate::Foreign(other) => foreign.push(other),
                Candidate::Bad(why) => bad.push(why),
            }
        }
        // Files that went with their process still hold what it has counted.
        if !present.is_empty() || !process.has_ended() {
            self.known.retain(|found| present.contains(&found.identity));
        }
        Ok((foreign, bad))
    }
}

fn open(process: &Process, path: &Path, identity: (u64, u64)) -> Candidate {
    let bad = |why: &dyn std::fmt::Display| Candidate::Bad(format!("{} {why}", path.display()));
    let file = match File::open(path) {
        Ok(file) => file,
        Err(why) => return bad(&format_args!("cannot be opened: {why}")),
    };
    // A file that its process has just made: the header comes in a moment.
    let mut header = read_header(&file);
    for _ in 0..20 {
        if !matches!(header, Err(Fault::Empty)) {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
        header = read_header(&file);
    }
    match header {
        Err(why) => bad(&why),
        Ok(header) if header.pid != process.own_pid => Candidate::Foreign(header.pid),
        Ok(header) => {
            let writable = OpenOptions::new().read(true).write(true).open(path);
            let writable = writable.map_err(|why| why.to_string());
            Candidate::Good(Box::new(Found { header, file, writable, identity }))
        }
    }
}

/// Reads the header of a file that may be anything.
fn read_header(file: &File) -> Result<Header, Fault> {
    let unreadable = |why: std::io::Error| Fault::Wrong(format!("cannot be read: {why}"));
    let size = file.metadata().map_err(unreadable)?.len();
    let mut beginning = vec![0; header::LONGEST];
    let mut length = 0;
    while length < beginning.len() {
        match file.read_at(&mut beginning[length..], length as u64).map_err(unreadable)? {
            0 => break,
            more => length += more,
        }
    }
    Header::parse(&beginning[..length], size)
}

/// Whether counters are in the memory of the process whose file is not among its open ones.
fn has_closed_files(process: &Process) -> bool {
    let maps = fs::read(format!("/proc/{}/maps", process.pid)).unwrap_or_default();
    maps.windows(PREFIX.len()).any(|bytes| bytes == PREFIX.as_bytes())
}

fn since_boot_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
