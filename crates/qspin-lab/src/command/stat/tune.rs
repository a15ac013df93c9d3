//! `qspin stat PID --tune NAME=VALUE`: other tunables for a running process.
//!
//! The process offers a file in memory (`qspin/src/tuning/listen.rs`). It was written by another process, perhaps
//! of another version, so nothing in it is believed before it is checked.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

use super::process::Process;
use crate::command::proc;
use crate::failure::Failure;
use crate::tune::{self, Tune};

/// What the kernel calls the file.
const FILE: &str = "/memfd:qspin-tunables";
/// The format that is read here.
const FORMAT: &str = "qspin-tune 1";
/// The largest text, and the most tunables, that are read.
const LONGEST: u64 = 1 << 16;
const MAX: usize = 1 << 10;
/// In a request: that it is one.
const REQUEST: u32 = 1 << 31;
/// How long a thread of the process may take to heed before the command ends without an answer.
const TIMEOUT: Duration = Duration::from_millis(500);

/// Where a process takes requests.
struct Page {
    file: File,
    /// Where the words begin: `asked`, `heeded`, the values in force, the requests.
    words: u64,
    names: Vec<String>,
}

impl Page {
    fn word(&self, number: usize) -> io::Result<u32> {
        let mut bytes = [0; 4];
        self.file.read_exact_at(&mut bytes, self.words + 4 * number as u64)?;
        Ok(u32::from_ne_bytes(bytes))
    }

    fn write(&self, number: usize, word: u32) -> io::Result<()> {
        self.file.write_all_at(&word.to_ne_bytes(), self.words + 4 * number as u64)
    }

    fn heeded(&self) -> io::Result<u32> {
        self.word(1)
    }

    fn value(&self, place: usize) -> io::Result<u32> {
        self.word(2 + place)
    }

    fn request(&self, place: usize, value: u32) -> io::Result<()> {
        self.write(2 + self.names.len() + place, REQUEST | value)
    }

    /// Asks that the requests be taken.
    fn ask(&self) -> io::Result<()> {
        self.write(0, 1)
    }
}

/// Changes the tunables, and says what they were and are.
///
/// # Errors
///
/// A process that does not listen, or that cannot be written to: wrong input. Nothing has changed then.
pub(super) fn run(process: &Process, tunes: &[Tune]) -> Result<(), Failure> {
    let page = find(process)?;
    let places: Vec<usize> =
        tunes.iter().map(|tune| place(process, &page, tune)).collect::<Result<_, _>>()?;
    let cannot =
        |why: io::Error| Failure::usage(format!("cannot write the tunables of {process}: {why}"));
    // Two commands at a time take turns. Where that is not to be had, the later request holds.
    let _ = flock(&page.file, FlockOperation::LockExclusive);
    let values = || places.iter().map(|&place| page.value(place)).collect::<io::Result<Vec<u32>>>();
    let before = values().map_err(cannot)?;
    let heeded = page.heeded().map_err(cannot)?;
    for (tune, &place) in tunes.iter().zip(&places) {
        page.request(place, tune.value()).map_err(cannot)?;
    }
    page.ask().map_err(cannot)?;
    let end = Instant::now() + TIMEOUT;
    while page.heeded().map_err(cannot)? == heeded && Instant::now() < end && !process.has_ended() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let is_heeded = page.heeded().map_err(cannot)? != heeded;
    let after = values().map_err(cannot)?;
    let mut text = String::new();
    for ((tune, before), after) in tunes.iter().zip(before).zip(after) {
        let [before, after] = [before, after].map(|value| tune::show(tune.tunable(), value));
        let when = if is_heeded { "" } else { ", when a thread next waits for a lock" };
        // The last of several values of one tunable is the one in force.
        let after = if is_heeded { after } else { tune::show(tune.tunable(), tune.value()) };
        text += &format!("{}: {before} -> {after}{when}\n", tune.name());
    }
    super::write_on(&mut io::stdout().lock(), &text)?;
    Ok(())
}

/// The place of a tunable in the page.
fn place(process: &Process, page: &Page, tune: &Tune) -> Result<usize, Failure> {
    page.names.iter().position(|name| name == tune.name()).ok_or_else(|| {
        Failure::usage(format!(
            "{process} has no tunable {}: its qspin is of another version",
            tune.name()
        ))
    })
}

/// The page of the process.
fn find(process: &Process) -> Result<Page, Failure> {
    let files = proc::files(process.pid, FILE).map_err(|why| process.refusal(&why))?;
    let mut foreign = false;
    for path in files {
        match open(&path) {
            Ok((pid, _)) if pid != process.own_pid => foreign = true,
            Ok((_, page)) => return Ok(page),
            Err(why) => {
                return Err(Failure::usage(format!(
                    "cannot change the tunables of {process}: {} {why}",
                    path.display()
                )));
            }
        }
    }
    let why = if foreign {
        "it is the child of a fork, and none of its threads has waited for a lock since"
    } else {
        "it does not listen: start it with `qspin run`, or let it call qspin::tuning::listen() (in C \
         qspin_tunables_listen()), without QSPIN_LISTEN=off"
    };
    Err(Failure::usage(format!("cannot change the tunables of {process}: {why}")))
}

/// Reads the text at the beginning of the file. Gives the process that takes requests there.
fn open(path: &Path) -> Result<(u32, Page), String> {
    let failed = |why: io::Error| format!("cannot be opened for writing: {why}");
    let file = OpenOptions::new().read(true).write(true).open(path).map_err(failed)?;
    let mut bytes = vec![0; LONGEST as usize];
    let mut length = 0;
    while length < bytes.len() {
        match file.read_at(&mut bytes[length..], length as u64) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(why) => return Err(format!("cannot be read: {why}")),
        }
    }
    let (pid, words, names) =
        parse(&bytes[..length]).ok_or("is not a file of tunables, or of another version's")?;
    Ok((pid, Page { file, words, names }))
}

/// What the text says: the process, where the words begin, and the names of the tunables. `None` if it is
/// malformed, or says more than is in the file.
fn parse(bytes: &[u8]) -> Option<(u32, u64, Vec<String>)> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    let text = str::from_utf8(&bytes[..end]).ok()?;
    let mut lines = text.lines();
    if lines.next()? != FORMAT || !text.ends_with("\nend\n") {
        return None;
    }
    let (mut pid, mut words, mut names) = (None, None, Vec::new());
    for line in lines {
        let mut parts = line.split(' ');
        match (parts.next()?, parts.next()) {
            ("pid", Some(number)) => pid = number.parse().ok(),
            ("words", Some(at)) => {
                words = Some((at.parse::<u64>().ok()?, parts.next()?.parse::<usize>().ok()?));
            }
            ("tunable", Some(name)) => names.push(name.to_owned()),
            // A line that a later version has added.
            _ => {}
        }
    }
    let (words, number) = words?;
    let most = words.checked_add(4 * (2 + 2 * number as u64))?;
    (number == names.len() && number <= MAX && most <= bytes.len() as u64)
        .then_some((pid?, words, names))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> Vec<u8> {
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize(4096, 0);
        bytes
    }

    #[test]
    fn a_page_is_read_with_lines_that_are_not_known_yet() {
        let text = "qspin-tune 1\npid 7\nwords 4000 2\nmoon full\ntunable a\ntunable b more\nend\n";
        assert_eq!(parse(&file(text)), Some((7, 4000, vec!["a".to_owned(), "b".to_owned()])));
    }

    #[test]
    fn what_lies_or_is_cut_off_is_no_page() {
        for text in [
            "",
            "qspin-tune 2\npid 7\nwords 4000 0\nend\n",
            "qspin-tune 1\nwords 4000 0\nend\n",
            "qspin-tune 1\npid 7\nend\n",
            "qspin-tune 1\npid 7\nwords 4000 1\nend\n",
            "qspin-tune 1\npid 7\nwords 4000 0\n",
            "qspin-tune 1\npid 7\nwords 4096 0\nend\n",
            "qspin-tune 1\npid 7\nwords 18446744073709551615 0\nend\n",
            "qspin-tune 1\npid 7\nwords x 0\nend\n",
            "qspin-tune 1\npid 4294967296\nwords 4000 0\nend\n",
        ] {
            assert_eq!(parse(&file(text)), None, "{text}");
        }
        assert_eq!(parse(b"qspin-tune 1\npid 7\nwords 0 0\nend\n"), None);
    }
}
