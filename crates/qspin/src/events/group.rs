//! A group of counters: one number per event, counted by many threads, read by other processes.
//!
//! # Problem
//! Counting must cost next to nothing. Another process must see the counts while they are counted, without
//! privileges and without help from the counting process, and nothing may stay behind when the counting process
//! is killed.
//!
//! So the counters are a static array of pages. At the first count of the group a file in memory replaces the
//! pages in place ([`publish`]); the kernel frees it with its last user. Counting needs no
//! pointer, and does not see the difference.
//!
//! ```text
//!       the first count                       fork, in the child
//!  NEW ─────────────────► READY ──────────────────────────────────────► NEW
//!   └──► ASIDE: the kernel refused to give the pages; counted in `early`, not seen by other processes
//! ```
//!
//! # Invariants
//! * **GROUP-1** Pages are touched in READY only. The replacement of the pages, a system call, comes before
//!   READY is stored, and only the child of a fork undoes it, which has one thread then.
//! * **GROUP-2** A record in `owned` is written by the thread with its number, and by signal handlers on that
//!   thread. No signal splits an addition ([`add_alone`]), so no count is lost
//!   although the addition is not locked. The thread that had the number before has finished (CPU-1 of
//!   [`cpu`](crate::platform::cpu)).
//! * **GROUP-3** A record in `shared` is written by read-modify-writes only.
//! * **GROUP-4** Counters only grow. A reset, by this process or another, records in `mark` what was counted
//!   until then; readers subtract it. So a reset never conflicts with an addition.
//! * **GROUP-5** What was added to `early` while another thread published reaches the pages: either the
//!   publisher finds it after it has stored READY, or the thread that added it finds READY after the addition.

use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

use qspin_core::events::Event;

use crate::platform::cpu;
use crate::platform::system::clock;
use crate::platform::system::page::Whole;
use crate::platform::system::processor::add_alone;
use crate::platform::system::publish::{self, Shown};

/// Bytes that describe the file, before the records.
pub(crate) const HEADER: usize = 4096;
/// Words of a record: one per event, and the last for the time of the last reset (in `mark`). A multiple of two
/// cache lines, since processors fetch lines in pairs.
const WORDS: usize = (Event::ALL.len() + 1).next_multiple_of(16);
/// Threads with a record of their own.
pub(crate) const OWNED: usize = 223;
/// Records for the other threads: two threads that share one lose time to its cache lines, never a count.
pub(crate) const SHARED: usize = 32;

/// Counts of some threads.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct Record(pub(crate) [AtomicU64; WORDS]);

impl Record {
    const fn zero() -> Self {
        Self([const { AtomicU64::new(0) }; WORDS])
    }
}

/// The memory of a [`Group`], whose place the file that other processes see takes: a header that describes the
/// file in words, and the records.
#[derive(Debug)]
pub struct Pages(pub(crate) Whole<Content>);

#[derive(Debug)]
#[repr(C)]
pub(crate) struct Content {
    #[allow(dead_code, reason = "read where other processes see the pages")]
    pub(crate) header: [AtomicU8; HEADER],
    mark: Record,
    shared: [Record; SHARED],
    owned: [Record; OWNED],
}

impl Pages {
    /// Not used yet.
    #[doc(hidden)]
    #[must_use]
    pub const fn untouched() -> Self {
        Self(Whole::new(Content {
            header: [const { AtomicU8::new(0) }; HEADER],
            mark: Record::zero(),
            shared: [const { Record::zero() }; SHARED],
            owned: [const { Record::zero() }; OWNED],
        }))
    }

    #[inline]
    fn add(&self, event: Event, amount: u64) {
        let number = cpu::current().map(|cpu| cpu.number() as usize);
        match number.and_then(|number| self.0.owned.get(number)) {
            // GROUP-2.
            Some(record) => add_alone(&record.0[event as usize], amount),
            None => self.add_shared(number, event, amount),
        }
    }

    #[cold]
    fn add_shared(&self, number: Option<usize>, event: Event, amount: u64) {
        // A thread without a number shares the record of numbers 0, 32 and so on.
        let record = &self.0.shared[number.unwrap_or(0) % SHARED];
        record.0[event as usize].fetch_add(amount, Relaxed);
    }

    pub(crate) fn sum(&self, event: Event) -> u64 {
        let count = |record: &Record| record.0[event as usize].load(Relaxed);
        self.0.shared.iter().chain(&self.0.owned).map(count).fold(0, u64::wrapping_add)
    }
}

/// Counters under a name, which other processes of the same user can read.
///
/// At the first count the group makes a memory file, `memfd:qspin-stat:NAME` among the open files in
/// `/proc/PID/fd`, sealed to its size; `qspin stat` finds it there. Nothing of it is on a disk, and the kernel
/// frees it when the process ends, however it ends.
///
/// * Counting is async-signal-safe, even the first count; it leaves `errno` alone.
/// * The child of `fork` begins at zero, with a file of its own at its first count.
/// * A child made by a raw `fork` system call, behind the C library's back, goes on counting in its parent's
///   file, and the two may lose counts to each other. So does a child until the handlers of its `fork` have
///   run, if a signal handler counts that early.
/// * Where no memory file can be made (the process has no file descriptor left, forbids `memfd_create`, may not
///   make files of 70 KB, or its pages are larger than 64 KiB) the group counts on, but no other process sees
///   it.
/// * A program that closes all its files closes this one: the group counts on, but no other process sees it.
pub struct Group {
    /// `qspin-stat:NAME` and a zero.
    pub(crate) file_name: &'static str,
    pub(crate) pages: &'static Pages,
    pub(crate) state: AtomicU32,
    pub(crate) early: Record,
    /// What the platform keeps of a group that other processes see.
    pub(crate) shown: Shown,
}

pub(crate) const NEW: u32 = 0;
const READY: u32 = 1;
pub(crate) const ASIDE: u32 = 2;

/// The prefix of every file's name, before the name of its group.
const PREFIX: &str = "qspin-stat:";
/// The longest name of a group.
const LONGEST_NAME: usize = 64;

impl Group {
    /// A group that counts in `pages`, of which it is the only user. Use
    /// [`counter_group!`](crate::counter_group).
    #[doc(hidden)]
    #[must_use]
    pub const fn new(file_name: &'static str, pages: &'static Pages) -> Self {
        let bytes = file_name.as_bytes();
        let end = bytes.len() - 1;
        assert!(
            end > PREFIX.len() && end <= PREFIX.len() + LONGEST_NAME && bytes[end] == 0,
            "the name of a counter group has 1 to 64 characters"
        );
        let mut at = PREFIX.len();
        while at < end {
            assert!(
                bytes[at].is_ascii_alphanumeric() || bytes[at] == b'-' || bytes[at] == b'_',
                "the name of a counter group is made of letters, digits, `-` and `_`"
            );
            at += 1;
        }
        Self {
            file_name,
            pages,
            state: AtomicU32::new(NEW),
            early: Record::zero(),
            shown: Shown::NOT_YET,
        }
    }

    /// The name under which it is shown.
    #[must_use]
    pub fn name(&self) -> &'static str {
        &self.file_name[PREFIX.len()..self.file_name.len() - 1]
    }

    /// Adds `amount` to `event`. Async-signal-safe.
    #[inline]
    pub fn add(&'static self, event: Event, amount: u64) {
        // ORDERING: Relaxed suffices: READY is stored after the kernel has replaced the pages for
        // every thread (GROUP-1).
        if self.state.load(Relaxed) == READY {
            self.pages.add(event, amount);
        } else {
            self.add_early(event, amount);
        }
    }

    #[cold]
    fn add_early(&'static self, event: Event, amount: u64) {
        if self.state.load(Relaxed) != ASIDE {
            publish::try_publish(self);
            if self.state.load(Relaxed) == READY {
                return self.pages.add(event, amount);
            }
        }
        self.add_aside(event, amount);
    }

    fn add_aside(&self, event: Event, amount: u64) {
        // GROUP-5. ORDERING: SeqCst pairs with `become_ready`. Each side writes, then reads: this one adds,
        // then reads the state; the publisher stores READY, then reads `early`. At least one sees the other's
        // write.
        self.early.0[event as usize].fetch_add(amount, SeqCst);
        if self.state.load(SeqCst) == READY {
            self.fold();
        }
    }

    /// Whether the pages are neither published nor counted in yet.
    pub(crate) fn is_new(&self) -> bool {
        self.state.load(Relaxed) == NEW
    }

    /// From here on the pages are zero and this process's own.
    pub(crate) fn become_ready(&self) {
        // GROUP-5. ORDERING: SeqCst pairs with `add_early`.
        self.state.store(READY, SeqCst);
        self.fold();
    }

    /// Moves into the pages what was counted before they were ready.
    fn fold(&self) {
        for event in Event::ALL {
            let amount = self.early.0[event as usize].swap(0, SeqCst);
            if amount != 0 {
                self.pages.add_shared(None, event, amount);
            }
        }
    }

    /// How often each event happened since the last reset, in the order of [`Event::ALL`].
    #[must_use]
    pub fn counts(&self) -> [u64; Event::ALL.len()] {
        if publish::is_inherited(self) {
            return [0; Event::ALL.len()];
        }
        let ready = self.state.load(Relaxed) == READY;
        Event::ALL.map(|event| {
            let early = self.early.0[event as usize].load(Relaxed);
            if !ready {
                return early;
            }
            // The mark first: counters only grow (GROUP-4), so a sum is never less than an older mark.
            let mark = self.pages.0.mark.0[event as usize].load(Relaxed);
            early.wrapping_add(self.pages.sum(event)).wrapping_sub(mark)
        })
    }

    /// Resets every counter to zero.
    pub fn reset(&self) {
        for counter in &self.early.0 {
            counter.store(0, Relaxed);
        }
        if self.state.load(Relaxed) == READY {
            for event in Event::ALL {
                self.pages.0.mark.0[event as usize].store(self.pages.sum(event), Relaxed);
            }
            self.pages.0.mark.0[WORDS - 1].store(clock::since_boot_ns(), Relaxed);
        }
    }
}

impl core::fmt::Debug for Group {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.debug_tuple("Group").field(&self.name()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{CounterGroup, Events};

    #[test]
    fn what_comes_late_into_early_is_folded_by_its_bringer() {
        crate::counter_group!(Late = "late");
        Late.count(Event::HashCount);
        let group = Late::group();
        assert!(!group.is_new());
        // Like a thread that saw another one publish, and was overtaken by it.
        group.add_aside(Event::HashCount, 5);
        assert_eq!(group.pages.sum(Event::HashCount), 6, "seen by other processes");
        assert_eq!(group.counts()[Event::HashCount as usize], 6);
    }
}
