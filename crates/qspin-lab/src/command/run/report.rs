//! What the library writes into its file: of each process, what its locks did.
//!
//! Its layout is that of [`qspin::locks_file`]. It is read by ordinary reads, so a file that is cut off is an error and
//! no signal.

use std::fs::File;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;

use anyhow::Context;
use qspin::locks_file::{
    BLOCK, BUCKETS, FORMAT, Head, MAP, ROWS, Row, SITES, SLOT_BYTES, Slot, TRACKED, place_of,
};
pub(super) use qspin::locks_file::{Kind, LEFT, LENGTH, SLOTS};

use crate::failure::Failure;

pub(super) use observed::{Hold, Stack, Thread, Wait, threads};

mod observed;

const HEAD: usize = size_of::<Head>();
const ROW: usize = size_of::<Row>();

/// What a file says.
#[derive(Debug, Clone, Default)]
pub(super) struct Report {
    /// In the order in which they have loaded the library.
    pub(super) processes: Vec<Process>,
    /// Processes that found no slot.
    pub(super) without_slot: u64,
    /// It was written by another version of the library, and cannot be read.
    pub(super) of_another_version: bool,
}

/// A process that has loaded the library. One that then executes another program, which loads it again, is another one.
#[derive(Debug, Clone)]
pub(super) struct Process {
    pub(super) number: u32,
    /// Where in the file it has written.
    pub(super) slot: u64,
    /// The lock that serves.
    pub(super) lock: String,
    /// The reader-writer lock that serves in the place of the library's own; else empty.
    pub(super) rwlock: String,
    /// Whether it counts.
    pub(super) counts: bool,
    /// Acquisitions of locks that found no row.
    pub(super) lost: u64,
    /// In the order of [`LEFT`].
    pub(super) left: [u64; LEFT.len()],
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

/// A number of eight bytes at the place of a field.
macro_rules! field {
    ($bytes:expr, $type:ty, $field:ident) => {
        $crate::command::run::report::number($bytes, core::mem::offset_of!($type, $field))
    };
}
use field;

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
        let acquisitions = field!(row, Row, acquisitions);
        let address = field!(row, Row, address);
        if acquisitions == 0 || !is_rest && address == 0 {
            return None;
        }
        const SITES_AT: usize = offset_of!(Row, sites);
        let mut sites: Vec<(u64, u64)> = (0..SITES)
            .map(|site| (number(row, SITES_AT + site * 16), number(row, SITES_AT + site * 16 + 8)))
            .filter(|(_, seen)| *seen > 0)
            .collect();
        sites.sort_by_key(|(_, seen)| core::cmp::Reverse(*seen));
        let [waits, holds] =
            [offset_of!(Row, waits), offset_of!(Row, holds)].map(|at| &row[at..at + 4 * BUCKETS]);
        let longest_wait_ns = field!(row, Row, longest_wait_ns);
        Some(Self {
            address,
            acquisitions,
            contended: field!(row, Row, contended),
            wait_ns: field!(row, Row, wait_ns),
            longest_wait_ns,
            sites,
            // The end of a bucket may lie beyond the longest wait.
            wait_p99_ns: p99(waits).map(|end| end.min(longest_wait_ns)),
            hold_p99_ns: p99(holds),
            waits: buckets(waits),
            holds: buckets(holds),
            longest_stack: field!(row, Row, longest_stack),
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

/// Where in a row stands what does not count any more, of how many counts; and where in a head, of `lost` and `left`.
/// Written by [`reset`] alone.
const ROW_BEFORE: usize = offset_of!(Row, before);
const ROW_COUNTS: [usize; 3] =
    [offset_of!(Row, acquisitions), offset_of!(Row, contended), offset_of!(Row, wait_ns)];
const HEAD_BEFORE: usize = offset_of!(Head, before);
/// `left` follows `lost`.
const HEAD_COUNTS: [usize; 1 + LEFT.len()] = {
    let mut counts = [offset_of!(Head, lost); 1 + LEFT.len()];
    let mut place = 0;
    while place < counts.len() {
        counts[place] += place * 8;
        place += 1;
    }
    counts
};

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
    note(at, HEAD, &HEAD_COUNTS, HEAD_BEFORE)?;
    observed::reset_stacks(file, slot)?;
    for row in 0..ROWS {
        let at = at + (offset_of!(Slot, rows) + row * ROW) as u64;
        let mut address = [0; 16];
        file.read_exact_at(&mut address, at)?;
        if field!(&address, Row, acquisitions) == 0 {
            continue;
        }
        note(at, ROW, &ROW_COUNTS, ROW_BEFORE)?;
        file.write_all_at(&[0; 8], at + offset_of!(Row, longest_wait_ns) as u64)?;
        // With the waits and the holds, which follow.
        file.write_all_at(&[0; 16 * SITES + 8 * BUCKETS], at + offset_of!(Row, sites) as u64)?;
    }
    Ok(())
}

const PROBLEM: &str = "cannot read what the library says";

/// How many processes have asked for a slot.
fn asked(file: &File) -> Result<u64, Failure> {
    let mut page = [0; 24];
    file.read_exact_at(&mut page, 0).context(PROBLEM)?;
    Ok(if page[..16] == FORMAT { number(&page, 16) } else { 0 })
}

/// What the processes of a file have said so far.
pub(super) fn read(file: &File) -> Result<Report, Failure> {
    let asked = asked(file)?;
    let slots = 0..asked.min(SLOTS);
    let each = slots.filter_map(|slot| read_slot(file, slot).transpose());
    Ok(Report {
        processes: each.collect::<Result<_, _>>()?,
        without_slot: asked.saturating_sub(SLOTS),
        of_another_version: is_of_another_version(file),
    })
}

/// The numbers of the processes of a file that count, some of which may have ended.
pub(super) fn running(file: &File) -> Vec<u32> {
    let many = asked(file).unwrap_or(0).min(SLOTS);
    let number_of = |slot: u64| {
        let mut head = [0; 32];
        file.read_exact_at(&mut head, place_of(slot)).ok()?;
        (head[..16] == FORMAT && field!(&head, Head, counts) != 0)
            .then(|| field!(&head, Head, process) as u32)
    };
    (0..many).filter_map(number_of).collect()
}

/// Whether a file is one of the library's, of another version than this one.
pub(super) fn is_of_another_version(file: &File) -> bool {
    let mut magic = [0; 16];
    let read = file.read_exact_at(&mut magic, 0).is_ok();
    read && magic[..12] == FORMAT[..12] && magic != FORMAT
}

/// The slots of a file, with the numbers of their processes, in which holds are written down.
pub(super) fn tracked(file: &File) -> Vec<(u64, u32)> {
    let many = asked(file).unwrap_or(0).min(SLOTS);
    let number_of = |slot: u64| {
        let mut head = vec![0; HEAD];
        file.read_exact_at(&mut head, place_of(slot)).ok()?;
        // The mode is a number of four bytes.
        let tracked = field!(&head, Head, mode) as u32 & TRACKED != 0;
        (head[..16] == FORMAT && tracked).then(|| (slot, field!(&head, Head, process) as u32))
    };
    (0..many).filter_map(number_of).collect()
}

/// Which slots a process writes to that has this map of memory: those that lie there. Of a Rust program with the crate's
/// feature `profile` that is one for its locks, and under the library one for pthread's.
pub(in crate::command) fn slots_in(map: &str) -> Vec<u64> {
    let slot = |line: &str| {
        let offset = u64::from_str_radix(line.split(' ').nth(2)?, 16).ok()?;
        Some(offset.checked_sub(BLOCK as u64)? / SLOT_BYTES as u64)
    };
    map.lines().filter(|line| line.contains("/memfd:qspin-locks")).filter_map(slot).collect()
}

/// What the process with this slot has said so far.
pub(super) fn read_slot(file: &File, slot: u64) -> Result<Option<Process>, Failure> {
    let at = place_of(slot);
    let mut head = vec![0; HEAD];
    file.read_exact_at(&mut head, at).context(PROBLEM)?;
    if head[..16] != FORMAT {
        return Ok(None);
    }
    since_reset(&mut head, &HEAD_COUNTS, HEAD_BEFORE);
    let (mut locks, mut stacks) = (Vec::new(), Vec::new());
    let counts = field!(&head, Head, counts) != 0;
    if counts {
        let mut rows = vec![0; ROWS * ROW];
        file.read_exact_at(&mut rows, at + offset_of!(Slot, rows) as u64).context(PROBLEM)?;
        for row in rows.chunks_exact_mut(ROW) {
            since_reset(row, &ROW_COUNTS, ROW_BEFORE);
        }
        let each = rows.chunks_exact(ROW).enumerate();
        stacks = observed::stacks(file, slot).context(PROBLEM)?;
        locks = each.filter_map(|(place, row)| Lock::of(row, place == 0)).collect();
    }
    // The one of the end is written over the one of the beginning.
    let (last, first) = (field!(&head, Head, map_length), field!(&head, Head, first_map));
    let mut map = vec![0; last.max(first).min(MAP as u64) as usize];
    file.read_exact_at(&mut map, at + offset_of!(Slot, map) as u64).context(PROBLEM)?;
    let map = String::from_utf8_lossy(&map).into_owned();
    let (map, first_map) = if last > 0 { (map, String::new()) } else { (String::new(), map) };
    let name = |at: usize| {
        let name = head[at..][..32].split(|byte| *byte == 0).next();
        String::from_utf8_lossy(name.unwrap_or_default()).into_owned()
    };
    let left = core::array::from_fn(|place| number(&head, offset_of!(Head, left) + place * 8));
    Ok(Some(Process {
        number: field!(&head, Head, process) as u32,
        slot,
        lock: name(offset_of!(Head, lock)),
        rwlock: name(offset_of!(Head, rwlock)),
        counts,
        lost: field!(&head, Head, lost),
        left,
        spinlocks: field!(&head, Head, spinlocks),
        locks,
        stacks,
        threads: threads(file, slot).context(PROBLEM)?,
        stacks_lost: field!(&head, Head, stacks_lost),
        map,
        first_map,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_end_where_the_next_one_begins() {
        use qspin::locks_file::bucket;

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
        assert_eq!([1, SLOTS - 1].map(|slot| place_of(slot) % BLOCK as u64), [0, 0]);
        assert!(slots_in("55e0-55f0 r-xp 00000000 08:01 7   /bin/true\n").is_empty());
    }

    #[test]
    fn a_file_of_another_version_is_told_from_others() {
        let file = tempfile::tempfile().unwrap();
        for (magic, is_other) in [
            (&b"qspin-locks 1\0\0\0"[..], true),
            (&FORMAT, false),
            (b"something of16 b", false),
            (b"short", false),
        ] {
            file.set_len(0).unwrap();
            file.write_all_at(magic, 0).unwrap();
            assert_eq!(is_of_another_version(&file), is_other, "{magic:?}");
            if magic.len() == 16 {
                file.set_len(LENGTH).unwrap();
                let report = read(&file).unwrap();
                assert_eq!((report.of_another_version, report.processes.len()), (is_other, 0));
            }
        }
    }

    #[test]
    fn processes_beyond_the_slots_are_counted() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(LENGTH).unwrap();
        assert_eq!(read(&file).unwrap().processes.len(), 0, "no process has loaded it");
        file.write_all_at(&FORMAT, 0).unwrap();
        file.write_all_at(&(SLOTS + 3).to_ne_bytes(), 16).unwrap();
        for (slot, pid) in [(0, 7_u64), (1, 7), (SLOTS - 1, 9)] {
            let head = [FORMAT.as_slice(), &pid.to_ne_bytes(), &1_u64.to_ne_bytes()].concat();
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
