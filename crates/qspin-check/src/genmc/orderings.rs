//! Each ordering weakened, alone, under GenMC.

use std::fs;
use std::path::Path;

use super::{End, Explored, Limits, Memory, Tools};
use crate::emit::{Audit, Client, audit, subjects};
use crate::mutation::{expected, known};
use crate::weakening::Weakening;

/// Threads and sections of each, the smallest first.
const SIZES: &[(usize, usize)] = &[(2, 1), (2, 2), (3, 1)];

/// Locks that consult the site, and with which it is tried.
const LOCKS: usize = 4;

/// What came of a weakening.
#[derive(Debug, Clone)]
pub struct Weakened {
    /// The weakening.
    pub weakening: Weakening,
    /// The client, the memory model and the exploration in which it died.
    pub killed: Option<(Client, Memory, Explored)>,
    /// Explorations in which it did not, and did not live either: they were not finished.
    pub unfinished: usize,
    /// Complete executions of all explorations.
    pub executions: u64,
}

/// Every weakening that something is expected of.
pub fn weakenings() -> Vec<Weakening> {
    let mut all: Vec<_> = expected::all().collect();
    all.sort_by_key(|weakening| weakening.site);
    all
}

/// Looks for a weakening's counterexample: with the lock that it died with under loom, then with those whose client it
/// changes.
///
/// # Errors
/// A client cannot be made, or GenMC cannot be started.
pub fn explore_weakened(
    tools: &Tools,
    weakening: Weakening,
    limits: Limits,
    folder: &Path,
) -> Result<Weakened, String> {
    let mut result = Weakened { weakening, killed: None, unfinished: 0, executions: 0 };
    let mut tried = 0;
    for lock in candidates(weakening) {
        if tried == LOCKS {
            break;
        }
        for &(threads, sections) in SIZES {
            let sound = Client { lock: lock.to_owned(), threads, sections, weak: None };
            let client = Client { weak: Some(weakening), ..sound.clone() };
            let name =
                format!("{}-{:?}-{lock}-{threads}x{sections}", weakening.site.name(), weakening.to);
            let file = tools.prepare(&client, &name, folder)?;
            if !changes(&sound, &folder.join(format!("{name}.ll")))? {
                break;
            }
            tried += usize::from((threads, sections) == SIZES[0]);
            let mut finished = true;
            for memory in Memory::ALL {
                let explored = tools.explore(&file, memory, limits)?;
                result.executions += explored.executions;
                match explored.end {
                    End::Wrong(_) => {
                        result.killed = Some((client, memory, explored));
                        return Ok(result);
                    }
                    End::Unfinished(_) => {
                        result.unfinished += 1;
                        finished = false;
                    }
                    End::Passed => {}
                }
            }
            if !finished {
                // A larger one would not end either.
                break;
            }
        }
    }
    Ok(result)
}

/// The locks with which it is tried.
fn candidates(weakening: Weakening) -> Vec<&'static str> {
    let first = known::place(weakening).map(|place| place.lock);
    let mut all: Vec<_> = subjects().map(|subject| subject.name).collect();
    all.sort_by_key(|&name| Some(name) != first.as_deref());
    all
}

/// Whether the client's atomic accesses differ from the sound one's: else its lock does not consult the site. The rest of
/// the text differs anyway, in the numbers of its values.
fn changes(sound: &Client, weak: &Path) -> Result<bool, String> {
    let text = fs::read_to_string(weak).map_err(|error| format!("{}: {error}", weak.display()))?;
    // Beside the weak one: other workers have files of their own.
    let sound = sound.emit(&weak.with_extension("sound.ll"))?;
    Ok(sorted(sound) != sorted(audit(&text)))
}

fn sorted(mut audit: Audit) -> Vec<String> {
    audit.atomics.sort_unstable();
    audit.atomics
}
