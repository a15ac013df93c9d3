//! Of a process's slot: the stacks that waited or kept others waiting, and what each thread waits for and holds.

use std::fs::File;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;

use qspin::locks_file::{
    ADDRESS, FRAMES, HOLDS, Head, KIND, Kind, Record, STACKS, Slot, THREADS, TIMED, WRITERS_FIRST,
    place_of,
};

use super::{field, number};

const STACK: usize = size_of::<qspin::locks_file::Stack>();
const RECORD: usize = size_of::<Record>();

/// A stack, and what it has to do with a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::command::run) struct Stack {
    /// One more than its number in the table.
    pub(in crate::command::run) place: u64,
    pub(in crate::command::run) lock: u64,
    pub(in crate::command::run) waited_ns: u64,
    pub(in crate::command::run) waits: u64,
    /// How long others waited for its releases.
    pub(in crate::command::run) delayed_ns: u64,
    pub(in crate::command::run) releases: u64,
    pub(in crate::command::run) holds: u64,
    /// Return addresses, the innermost first.
    pub(in crate::command::run) frames: Vec<u64>,
}

impl Stack {
    fn of(place: u64, bytes: &[u8]) -> Option<Self> {
        use qspin::locks_file::Stack as Layout;

        let frames = frames(bytes, field!(bytes, Layout, depth), offset_of!(Layout, frames));
        (!frames.is_empty()).then(|| Self {
            place,
            lock: field!(bytes, Layout, address),
            waited_ns: field!(bytes, Layout, waited_ns),
            waits: field!(bytes, Layout, waits),
            delayed_ns: field!(bytes, Layout, delayed_ns),
            releases: field!(bytes, Layout, releases),
            holds: field!(bytes, Layout, holds),
            frames,
        })
    }
}

/// So many return addresses, which begin at a place.
fn frames(bytes: &[u8], depth: u64, at: usize) -> Vec<u64> {
    (0..depth.min(FRAMES as u64) as usize).map(|frame| number(bytes, at + frame * 8)).collect()
}

/// A wait that has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::command::run) struct Wait {
    pub(in crate::command::run) kind: Kind,
    /// The object; of a join what `pthread_self` says in the other thread.
    pub(in crate::command::run) address: u64,
    /// It ends by itself.
    pub(in crate::command::run) timed: bool,
    /// A reader-writer lock whose waiting writers come before readers.
    pub(in crate::command::run) writers_first: bool,
    /// When it began, on the monotonic clock.
    pub(in crate::command::run) since_ns: u64,
    pub(in crate::command::run) frames: Vec<u64>,
}

/// A lock that a thread has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::command::run) struct Hold {
    pub(in crate::command::run) kind: Kind,
    pub(in crate::command::run) address: u64,
    /// Where it was taken; 0 if that is not known.
    pub(in crate::command::run) site: u64,
}

/// A thread's record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::command::run) struct Thread {
    /// Its number, as it knows itself.
    pub(in crate::command::run) number: u32,
    pub(in crate::command::run) handle: u64,
    /// Goes up with each wait that begins or ends.
    pub(in crate::command::run) turn: u64,
    pub(in crate::command::run) wait: Option<Wait>,
    pub(in crate::command::run) holds: Vec<Hold>,
}

impl Thread {
    fn of(bytes: &[u8], epoch: u64) -> Option<Self> {
        let own = field!(bytes, Record, thread) as u32;
        if own == 0 {
            return None;
        }
        let turn = field!(bytes, Record, turn);
        let kind = field!(bytes, Record, kind);
        let wait = Kind::of(kind & 0xff).filter(|_| turn % 2 == 1).map(|what| Wait {
            kind: what,
            address: field!(bytes, Record, address),
            timed: kind & TIMED != 0,
            writers_first: kind & WRITERS_FIRST != 0,
            since_ns: field!(bytes, Record, since),
            frames: frames(bytes, field!(bytes, Record, depth), offset_of!(Record, frames)),
        });
        // Those of before tracking was switched on do not count.
        let counts = field!(bytes, Record, epoch) == epoch;
        let held = if counts { field!(bytes, Record, held).min(HOLDS as u64) } else { 0 };
        let hold = |place: usize| {
            let at = offset_of!(Record, holds) + place * 16;
            let lock = number(bytes, at);
            let kind = Kind::of(lock >> KIND)?;
            Some(Hold { kind, address: lock & ADDRESS, site: number(bytes, at + 8) })
        };
        Some(Self {
            number: own,
            handle: field!(bytes, Record, handle),
            turn,
            wait,
            holds: (0..held as usize).filter_map(hold).collect(),
        })
    }
}

/// Where in the file the stacks of a slot begin.
const fn stacks_at(slot: u64) -> u64 {
    place_of(slot) + offset_of!(Slot, stacks) as u64
}

/// The stacks of a slot.
pub(super) fn stacks(file: &File, slot: u64) -> std::io::Result<Vec<Stack>> {
    let mut bytes = vec![0; STACKS * STACK];
    file.read_exact_at(&mut bytes, stacks_at(slot))?;
    let each = bytes.chunks_exact(STACK).zip(1..);
    Ok(each.filter_map(|(bytes, place)| Stack::of(place, bytes)).collect())
}

/// Lets the sums of stacks begin at zero again.
pub(super) fn reset_stacks(file: &File, slot: u64) -> std::io::Result<()> {
    const SUMS: usize = offset_of!(qspin::locks_file::Stack, waited_ns);
    for stack in stacks(file, slot)? {
        let at = stacks_at(slot) + (stack.place - 1) * STACK as u64;
        // With the four words that follow.
        file.write_all_at(&[0; 40], at + SUMS as u64)?;
    }
    Ok(())
}

/// The threads of a slot, as their records say at this moment.
pub(in crate::command::run) fn threads(file: &File, slot: u64) -> std::io::Result<Vec<Thread>> {
    let at = place_of(slot);
    let mut head = vec![0; size_of::<Head>()];
    file.read_exact_at(&mut head, at)?;
    let epoch = field!(&head, Head, epoch);
    let given = field!(&head, Head, threads).min(THREADS as u64) as usize;
    let mut bytes = vec![0; given * RECORD];
    file.read_exact_at(&mut bytes, at + offset_of!(Slot, threads) as u64)?;
    Ok(bytes.chunks_exact(RECORD).filter_map(|bytes| Thread::of(bytes, epoch)).collect())
}
