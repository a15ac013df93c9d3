//! Of a process's slot: the stacks that waited or kept others waiting, and what each thread waits for and holds.
//!
//! The layout is that of `statistics/stacks.rs` and `statistics/threads.rs` of the library.

use std::fs::File;
use std::os::unix::fs::FileExt;

use super::{HEAD, MAP, ROW, ROWS, number, place_of};

pub(super) const STACKS: u64 = 4096;
pub(super) const STACK: u64 = 256;
pub(super) const THREADS: u64 = 1024;
pub(super) const THREAD: u64 = 1024;
/// Where in a slot they begin.
pub(super) const STACKS_AT: u64 = HEAD + ROWS * ROW + MAP;
const THREADS_AT: u64 = STACKS_AT + STACKS * STACK;

const FRAMES: usize = 24;
const HOLDS: usize = 32;
/// Where in a head the epoch of tracking stands, and behind it how many records were given.
const EPOCH: u64 = 528;

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
        let depth = (number(bytes, 16) as usize).min(FRAMES);
        let word = |at: usize| number(bytes, at * 8);
        (depth > 0).then(|| Self {
            place,
            lock: word(1),
            waited_ns: word(3),
            waits: word(4),
            delayed_ns: word(5),
            releases: word(6),
            holds: word(7),
            frames: (0..depth).map(|frame| word(8 + frame)).collect(),
        })
    }
}

/// What a thread waits for, or holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::command::run) enum Kind {
    Mutex,
    Read,
    Write,
    Spin,
    Condition,
    Join,
}

impl Kind {
    const fn of(number: u64) -> Option<Self> {
        Some(match number {
            1 => Self::Mutex,
            2 => Self::Read,
            3 => Self::Write,
            4 => Self::Spin,
            5 => Self::Condition,
            6 => Self::Join,
            _ => return None,
        })
    }

    /// What kind of object it is.
    pub(in crate::command::run) const fn object(self) -> &'static str {
        match self {
            Self::Mutex => "mutex",
            Self::Read | Self::Write => "reader-writer lock",
            Self::Spin => "spinlock",
            Self::Condition => "condition variable",
            Self::Join => "thread",
        }
    }
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
        const KIND: u32 = 60;
        const EPOCH: usize = 8 + FRAMES;
        const HELD: usize = EPOCH + 1;
        let word = |at: usize| number(bytes, at * 8);
        let own = word(0) as u32;
        if own == 0 {
            return None;
        }
        let turn = word(2);
        let kind = word(3);
        let depth = (word(7) as usize).min(FRAMES);
        let wait = Kind::of(kind & 0xff).filter(|_| turn % 2 == 1).map(|what| Wait {
            kind: what,
            address: word(4),
            timed: kind & 1 << 8 != 0,
            writers_first: kind & 1 << 9 != 0,
            since_ns: word(5),
            frames: (0..depth).map(|frame| word(8 + frame)).collect(),
        });
        // Those of before tracking was switched on do not count.
        let held = if word(EPOCH) == epoch { (word(HELD) as usize).min(HOLDS) } else { 0 };
        let hold = |place: usize| {
            let lock = word(HELD + 1 + place * 2);
            let kind = Kind::of(lock >> KIND)?;
            let address = lock & ((1 << KIND) - 1);
            Some(Hold { kind, address, site: word(HELD + 2 + place * 2) })
        };
        Some(Self {
            number: own,
            handle: word(1),
            turn,
            wait,
            holds: (0..held).filter_map(hold).collect(),
        })
    }
}

/// The stacks of a slot.
pub(super) fn stacks(file: &File, slot: u64) -> std::io::Result<Vec<Stack>> {
    let mut bytes = vec![0; (STACKS * STACK) as usize];
    file.read_exact_at(&mut bytes, place_of(slot) + STACKS_AT)?;
    let each = bytes.chunks_exact(STACK as usize).zip(1..);
    Ok(each.filter_map(|(bytes, place)| Stack::of(place, bytes)).collect())
}

/// Lets the sums of stacks begin at zero again.
pub(super) fn reset_stacks(file: &File, slot: u64) -> std::io::Result<()> {
    for stack in stacks(file, slot)? {
        let at = place_of(slot) + STACKS_AT + (stack.place - 1) * STACK;
        file.write_all_at(&[0; 40], at + 24)?;
    }
    Ok(())
}

/// The threads of a slot, as their records say at this moment.
pub(in crate::command::run) fn threads(file: &File, slot: u64) -> std::io::Result<Vec<Thread>> {
    let at = place_of(slot);
    let mut words = [0; 16];
    file.read_exact_at(&mut words, at + EPOCH)?;
    let (epoch, given) = (number(&words, 0), number(&words, 8));
    let mut bytes = vec![0; (given.min(THREADS) * THREAD) as usize];
    file.read_exact_at(&mut bytes, at + THREADS_AT)?;
    Ok(bytes.chunks_exact(THREAD as usize).filter_map(|bytes| Thread::of(bytes, epoch)).collect())
}
