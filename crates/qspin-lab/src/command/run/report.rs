//! What the library writes into its file: of each process, what its locks did.
//!
//! The layout is that of `crates/qspin-preload/src/statistics.rs`. It is read by ordinary reads, so a file that
//! is cut off is an error and no signal.

use std::fs::File;
use std::os::unix::fs::FileExt;

use anyhow::Context;

use crate::failure::Failure;

pub(super) use observed::{Hold, Kind, Stack, Thread, Wait, threads};
use observed::{STACK, STACKS, STACKS_AT, THREAD, THREADS};

mod observed;

/// What lies before the slots, and of what each begins at a multiple: the largest page that any kernel has.
const BLOCK: u64 = 1 << 16;
const HEAD: u64 = 4096;
const ROWS: u64 = 2048;
const ROW: u64 = 1024;
const MAP: u64 = 1 << 17;
/// Processes that find a slot.
pub(super) const SLOTS: u64 = 64;
const SLOT: u64 = (STACKS_AT + STACKS * STACK + THREADS * THREAD).next_multiple_of(BLOCK);
const MAGIC: &[u8; 16] = b"qspin-locks 4\0\0\0";
const BUCKETS: usize = 96;
const SITES: usize = 4;

/// How long the file is.
pub(super) const LENGTH: u64 = BLOCK + SLOTS * SLOT;

/// Why objects were left to the C library, in the order of the file.
pub(super) const REASONS: [&str; 6] = [
    "process-shared mutexes",
    "robust mutexes",
    "priority-inheriting mutexes",
    "priority-protected mutexes",
    "process-shared condition variables",
    "process-shared reader-writer locks",
];

/// What a file says.
#[derive(Debug, Clone, Default)]
pub(super) struct Report {
    /// In the order in which they have loaded the library.
    pub(super) processes: Vec<Process>,
    /// Processes that found no slot.
    pub(super) without_slot: u64,
}

/// A process that has loaded the library. One that then executes another program, which loads it again, is another one.
#[derive(Debug, Clone)]
pub(super) struct Process {
    pub(super) number: u32,
    /// Where in the file it has written.
    pub(super) slot: u64,
    /// The lock that serves.
    pub(super) lock: String,
    /// Whether it counts.
    pub(super) counts: bool,
    /// Acquisitions of locks that found no row.
    pub(super) lost: u64,
    /// In the order of [`REASONS`].
    pub(super) left: [u64; 6],
    /// Spinlocks that it has made.
    spinlocks: u64,
    pub(super) locks: Vec<Lock>,
    pub(super) stacks: Vec<Stack>,
    pub(super) threads: Vec<Thread>,
    /// Stacks that found no place.
    pub(super) stacks_lost: u64,
    /// Its map of memory at its end; empty if it ended without one.
    pub(super) map: String,
    /// That with which it began.
    pub(super) first_map: String,
}

/// What a lock did.
#[derive(Debug, Clone)]
pub(super) struct Lock {
    /// 0: the locks that found no row of their own.
    pub(super) address: u64,
    pub(super) acquisitions: u64,
    pub(super) contended: u64,
    pub(super) wait_ns: u64,
    pub(super) longest_wait_ns: u64,
    /// Call sites with how often each was seen, the most frequent first.
    pub(super) sites: Vec<(u64, u64)>,
    pub(super) wait_p99_ns: Option<u64>,
    pub(super) hold_p99_ns: Option<u64>,
    /// Waits and holds by how long they took: the end of a bucket, and how many are in it.
    pub(super) waits: Vec<(u64, u64)>,
    pub(super) holds: Vec<(u64, u64)>,
    /// The place of the stack of the longest wait; 0 if it is not known.
    pub(super) longest_stack: u64,
}

fn number(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].as_array().map_or(0, |bytes| u64::from_ne_bytes(*bytes))
}

/// The first nanosecond that is beyond a bucket: two buckets to a power of two.
fn end_of(bucket: usize) -> u64 {
    match bucket {
        0 => 1,
        1 => 2,
        _ => (2 + (bucket as u64 + 1) % 2) << (bucket.div_ceil(2) - 1),
    }
}

/// The buckets in which something is.
fn buckets(bytes: &[u8]) -> Vec<(u64, u64)> {
    let counts = bytes
        .chunks_exact(4)
        .map(|count| count.as_array().map_or(0, |count| u32::from_ne_bytes(*count)));
    let all = counts.enumerate().filter(|(_, count)| *count > 0);
    all.map(|(bucket, count)| (end_of(bucket), count.into())).collect()
}

/// Below which value 99 of 100 are, to the bucket; `None` of nothing.
fn p99(bytes: &[u8]) -> Option<u64> {
    let counts: Vec<u64> = bytes
        .chunks_exact(4)
        .map(|count| count.as_array().map_or(0, |count| u64::from(u32::from_ne_bytes(*count))))
        .collect();
    let all: u64 = counts.iter().sum();
    let mut below = 0;
    counts.iter().enumerate().find_map(|(bucket, count)| {
        below += count;
        (all > 0 && below * 100 >= all * 99).then(|| end_of(bucket))
    })
}

impl Lock {
    fn of(row: &[u8], is_rest: bool) -> Option<Self> {
        let acquisitions = number(row, 8);
        if acquisitions == 0 || !is_rest && number(row, 0) == 0 {
            return None;
        }
        let mut sites: Vec<(u64, u64)> = (0..SITES)
            .map(|site| (number(row, 48 + site * 16), number(row, 56 + site * 16)))
            .filter(|(_, seen)| *seen > 0)
            .collect();
        sites.sort_by_key(|(_, seen)| core::cmp::Reverse(*seen));
        Some(Self {
            address: number(row, 0),
            acquisitions,
            contended: number(row, 16),
            wait_ns: number(row, 24),
            longest_wait_ns: number(row, 32),
            sites,
            // The end of a bucket may lie beyond the longest wait.
            wait_p99_ns: p99(&row[112..112 + 4 * BUCKETS]).map(|end| end.min(number(row, 32))),
            hold_p99_ns: p99(&row[496..496 + 4 * BUCKETS]),
            waits: buckets(&row[112..112 + 4 * BUCKETS]),
            holds: buckets(&row[496..496 + 4 * BUCKETS]),
            longest_stack: number(row, 936),
        })
    }
}

impl Process {
    /// Whether its locks are those of the crate, which a Rust program has with the feature `profile`.
    pub(super) fn is_of_the_crate(&self) -> bool {
        self.lock == "crate qspin"
    }
}

impl Report {
    /// Whether every process has counted, and none has anything to show for it.
    pub(super) fn locks_nothing(&self) -> bool {
        let silent = |process: &Process| {
            let others = process.left.iter().sum::<u64>() + process.spinlocks + process.lost;
            process.counts && process.locks.is_empty() && others == 0
        };
        // What was killed may have counts that its rows do not have yet, but not of its first acquisitions.
        self.without_slot == 0 && self.processes.iter().all(silent)
    }
}

/// Where in a row stands what does not count any more, of how many counts from the second word on; and where in a head,
/// of `lost` and `left`. Written by [`reset`] alone.
const ROW_BEFORE: usize = 888;
const ROW_COUNTS: [usize; 3] = [8, 16, 24];
const HEAD_BEFORE: usize = 144;
const HEAD_COUNTS: [usize; 7] = [32, 40, 48, 56, 64, 72, 80];

/// Takes away what does not count any more.
fn since_reset(bytes: &mut [u8], counts: &[usize], before: usize) {
    for (place, at) in counts.iter().enumerate() {
        let left = number(bytes, *at).wrapping_sub(number(bytes, before + place * 8));
        bytes[*at..at + 8].copy_from_slice(&left.to_ne_bytes());
    }
}

/// Lets the counts of a slot begin at zero again. The process adds to them meanwhile, without asking, so they are noted
/// and not changed; what is an estimate (percentiles, sites, the longest wait) is.
pub(super) fn reset(file: &File, slot: u64) -> std::io::Result<()> {
    let note = |at: u64, length: usize, counts: &[usize], before: usize| {
        let mut bytes = vec![0; length];
        file.read_exact_at(&mut bytes, at)?;
        let noted: Vec<u8> =
            counts.iter().flat_map(|count| number(&bytes, *count).to_ne_bytes()).collect();
        file.write_all_at(&noted, at + before as u64)?;
        Ok::<_, std::io::Error>(bytes)
    };
    let at = place_of(slot);
    note(at, HEAD as usize, &HEAD_COUNTS, HEAD_BEFORE)?;
    observed::reset_stacks(file, slot)?;
    for row in 0..ROWS {
        let at = at + HEAD + row * ROW;
        let mut address = [0; 16];
        file.read_exact_at(&mut address, at)?;
        if number(&address, 8) == 0 {
            continue;
        }
        note(at, ROW as usize, &ROW_COUNTS, ROW_BEFORE)?;
        // The longest wait; sites; waits and holds.
        file.write_all_at(&[0; 8], at + 32)?;
        file.write_all_at(&[0; 16 * SITES + 8 * BUCKETS], at + 48)?;
    }
    Ok(())
}

const PROBLEM: &str = "cannot read what the library says";

/// How many processes have asked for a slot.
fn asked(file: &File) -> Result<u64, Failure> {
    let mut page = [0; 24];
    file.read_exact_at(&mut page, 0).context(PROBLEM)?;
    Ok(if &page[..16] == MAGIC { number(&page, 16) } else { 0 })
}

/// What the processes of a file have said so far.
pub(super) fn read(file: &File) -> Result<Report, Failure> {
    let asked = asked(file)?;
    let slots = 0..asked.min(SLOTS);
    let each = slots.filter_map(|slot| read_slot(file, slot).transpose());
    Ok(Report {
        processes: each.collect::<Result<_, _>>()?,
        without_slot: asked.saturating_sub(SLOTS),
    })
}

/// The numbers of the processes of a file that count, some of which may have ended.
pub(super) fn running(file: &File) -> Vec<u32> {
    let many = asked(file).unwrap_or(0).min(SLOTS);
    let number_of = |slot: u64| {
        let mut head = [0; 32];
        file.read_exact_at(&mut head, place_of(slot)).ok()?;
        (&head[..16] == MAGIC && number(&head, 24) != 0).then(|| number(&head, 16) as u32)
    };
    (0..many).filter_map(number_of).collect()
}

/// Whether a file is one of the library's, of another version than this one.
pub(super) fn is_of_another_version(file: &File) -> bool {
    let mut magic = [0; 16];
    let read = file.read_exact_at(&mut magic, 0).is_ok();
    read && magic[..12] == MAGIC[..12] && &magic != MAGIC
}

/// Where in the file a slot begins.
pub(super) const fn place_of(slot: u64) -> u64 {
    BLOCK + slot * SLOT
}

/// The slots of a file, with the numbers of their processes, in which holds are written down.
pub(super) fn tracked(file: &File) -> Vec<(u64, u32)> {
    const MODE: u64 = 512;
    const TRACKED: u8 = 4;
    let many = asked(file).unwrap_or(0).min(SLOTS);
    let number_of = |slot: u64| {
        let mut head = [0; 24];
        file.read_exact_at(&mut head, place_of(slot)).ok()?;
        let mut mode = [0; 4];
        file.read_exact_at(&mut mode, place_of(slot) + MODE).ok()?;
        (&head[..16] == MAGIC && mode[0] & TRACKED != 0).then(|| (slot, number(&head, 16) as u32))
    };
    (0..many).filter_map(number_of).collect()
}

/// Which slots a process writes to that has this map of memory: those that lie there. Of a Rust program with the crate's
/// feature `profile` that is one for its locks, and under the library one for pthread's.
pub(in crate::command) fn slots_in(map: &str) -> Vec<u64> {
    let slot = |line: &str| {
        let offset = u64::from_str_radix(line.split(' ').nth(2)?, 16).ok()?;
        Some(offset.checked_sub(BLOCK)? / SLOT)
    };
    map.lines().filter(|line| line.contains("/memfd:qspin-locks")).filter_map(slot).collect()
}

/// What the process with this slot has said so far.
pub(super) fn read_slot(file: &File, slot: u64) -> Result<Option<Process>, Failure> {
    let at = place_of(slot);
    let mut head = vec![0; HEAD as usize];
    file.read_exact_at(&mut head, at).context(PROBLEM)?;
    if &head[..16] != MAGIC {
        return Ok(None);
    }
    since_reset(&mut head, &HEAD_COUNTS, HEAD_BEFORE);
    let (mut locks, mut stacks) = (Vec::new(), Vec::new());
    let counts = number(&head, 24) != 0;
    if counts {
        let mut rows = vec![0; (ROWS * ROW) as usize];
        file.read_exact_at(&mut rows, at + HEAD).context(PROBLEM)?;
        for row in rows.chunks_exact_mut(ROW as usize) {
            since_reset(row, &ROW_COUNTS, ROW_BEFORE);
        }
        let each = rows.chunks_exact(ROW as usize).enumerate();
        stacks = observed::stacks(file, slot).context(PROBLEM)?;
        locks = each.filter_map(|(place, row)| Lock::of(row, place == 0)).collect();
    }
    // The second is written over the first.
    let mut map = vec![0; number(&head, 88).max(number(&head, 128)).min(MAP) as usize];
    file.read_exact_at(&mut map, at + HEAD + ROWS * ROW).context(PROBLEM)?;
    let map = String::from_utf8_lossy(&map).into_owned();
    let (map, first_map) =
        if number(&head, 88) > 0 { (map, String::new()) } else { (String::new(), map) };
    let lock = head[96..128].split(|byte| *byte == 0).next().unwrap_or_default();
    let mut left = [0; 6];
    for (place, left) in left.iter_mut().enumerate() {
        *left = number(&head, 40 + place * 8);
    }
    Ok(Some(Process {
        number: number(&head, 16) as u32,
        slot,
        lock: String::from_utf8_lossy(lock).into_owned(),
        counts,
        lost: number(&head, 32),
        left,
        spinlocks: number(&head, 136),
        locks,
        stacks,
        threads: threads(file, slot).context(PROBLEM)?,
        stacks_lost: number(&head, 200),
        map,
        first_map,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_end_where_the_next_one_begins() {
        let bucket = |ns: u64| {
            let power = ns.ilog2();
            (2 * power as usize) + (ns >> (power - 1) & 1) as usize
        };
        for ns in 2..5000 {
            assert!(ns < end_of(bucket(ns)), "{ns}");
            assert!(ns >= end_of(bucket(ns) - 1), "{ns}");
        }
    }

    #[test]
    fn the_slot_of_a_process_is_found_in_its_map() {
        let map = |offset: u64| {
            format!(
                "55e0-55f0 r-xp 00000000 08:01 7   /bin/true\n\
                 7f00-7fff rw-s {offset:08x} 00:01 12   /memfd:qspin-locks (deleted)\n"
            )
        };
        for slot in [0, 1, SLOTS - 1] {
            assert_eq!(slots_in(&map(place_of(slot))), [slot]);
        }
        let both = map(place_of(0)) + &map(place_of(1));
        assert_eq!(slots_in(&both), [0, 1]);
        assert!(slots_in(&map(0)).is_empty());
        // Any kernel can map a slot: no page is larger than a block.
        assert_eq!([place_of(1) % BLOCK, place_of(SLOTS - 1) % BLOCK], [0, 0]);
        assert!(slots_in("55e0-55f0 r-xp 00000000 08:01 7   /bin/true\n").is_empty());
    }

    #[test]
    fn a_file_of_another_version_is_told_from_others() {
        let file = tempfile::tempfile().unwrap();
        for (magic, is_other) in [
            (&b"qspin-locks 1\0\0\0"[..], true),
            (MAGIC, false),
            (b"something of16 b", false),
            (b"short", false),
        ] {
            file.set_len(0).unwrap();
            file.write_all_at(magic, 0).unwrap();
            assert_eq!(is_of_another_version(&file), is_other, "{magic:?}");
        }
    }

    #[test]
    fn processes_beyond_the_slots_are_counted() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(LENGTH).unwrap();
        assert_eq!(read(&file).unwrap().processes.len(), 0, "no process has loaded it");
        file.write_all_at(MAGIC, 0).unwrap();
        file.write_all_at(&(SLOTS + 3).to_ne_bytes(), 16).unwrap();
        for (slot, pid) in [(0, 7_u64), (1, 7), (SLOTS - 1, 9)] {
            let head = [MAGIC.as_slice(), &pid.to_ne_bytes(), &1_u64.to_ne_bytes()].concat();
            file.write_all_at(&head, place_of(slot)).unwrap();
        }
        let report = read(&file).unwrap();
        let seen: Vec<_> = report.processes.iter().map(|one| (one.slot, one.number)).collect();
        assert_eq!(seen, [(0, 7), (1, 7), (SLOTS - 1, 9)]);
        assert_eq!(report.without_slot, 3);
        assert_eq!(running(&file), [7, 7, 9]);
    }

    #[test]
    fn the_percentile_is_that_of_the_bucket_with_the_last_hundredth() {
        let mut bytes = vec![0; 4 * BUCKETS];
        assert_eq!(p99(&bytes), None);
        bytes[4 * 10] = 99;
        assert_eq!(p99(&bytes), Some(end_of(10)));
        bytes[4 * 20] = 1;
        assert_eq!(p99(&bytes), Some(end_of(10)));
        bytes[4 * 20] = 2;
        assert_eq!(p99(&bytes), Some(end_of(20)));
    }
}
