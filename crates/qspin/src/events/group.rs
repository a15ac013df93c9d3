//! A group of counters: one number per event, counted by many threads, read by other processes.
//!
//! # Problem
//! Counting must cost next to nothing. Another process must see the counts while they are counted, without
//! privileges and without help from the counting process, and nothing may stay behind when the counting process
//! is killed.
//!
//! So the counters are a static array of pages. At the first count of the group a file in memory replaces the
//! pages in place ([`publish`](super::publish)); the kernel frees it with its last user. Counting needs no
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
//!   thread. No signal splits an addition ([`processor`](crate::platform::processor)), so no count is lost
//!   although the addition is not locked. The thread that had the number before has finished (CPU-1 of
//!   [`cpu`](crate::platform::cpu)).
//! * **GROUP-3** A record in `shared` is written by read-modify-writes only.
//! * **GROUP-4** Counters only grow. A reset, by this process or another, records in `mark` what was counted
//!   until then; readers subtract it. So a reset never conflicts with an addition.
//! * **GROUP-5** What was added to `early` while another thread published reaches the pages: either the
//!   publisher finds it after it has stored READY, or the thread that added it finds READY after the addition.

use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64};

use qspin_core::events::Event;

use super::publish::{self, File};
use super::system;
use crate::platform::cpu;
use crate::platform::page::Whole;
use crate::platform::processor::add_alone;

/// Bytes that describe the file, before the records.
pub(super) const HEADER: usize = 4096;
/// Words of a record: one per event, and the last for the time of the last reset (in `mark`). A multiple of two
/// cache lines, since processors fetch lines in pairs.
const WORDS: usize = (Event::ALL.len() + 1).next_multiple_of(16);
/// Threads with a record of their own.
const OWNED: usize = 223;
/// Records for the other threads: two threads that share one lose time to its cache lines, never a count.
const SHARED: usize = 32;

/// Counts of some threads.
#[derive(Debug)]
#[repr(C, align(128))]
struct Record([AtomicU64; WORDS]);

impl Record {
    const fn zero() -> Self {
        Self([const { AtomicU64::new(0) }; WORDS])
    }
}

/// The memory of a [`Group`], whose place the file that other processes see takes: a header that describes the
/// file in words, and the records.
#[derive(Debug)]
pub struct Pages(Whole<Content>);

#[derive(Debug)]
#[repr(C)]
struct Content {
    header: [AtomicU8; HEADER],
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

    /// Where the records begin, the distance from one to the next, and their number.
    pub(super) const LAYOUT: [usize; 3] = [HEADER, size_of::<Record>(), 1 + SHARED + OWNED];

    /// The description of the file, in words.
    pub(super) fn header(&self) -> &[AtomicU8; HEADER] {
        &self.0.header
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

    fn sum(&self, event: Event) -> u64 {
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
    file_name: &'static str,
    pages: &'static Pages,
    state: AtomicU32,
    early: Record,
    pub(super) file: File,
    /// Whether it is in the list of groups (PUBLISH-3 of [`publish`](super::publish)).
    pub(super) listed: AtomicU32,
    pub(super) next: AtomicPtr<Group>,
    /// The pages may hold another process's counts: of the parent of a fork.
    used: AtomicBool,
}

const NEW: u32 = 0;
const READY: u32 = 1;
const ASIDE: u32 = 2;

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
            file: File::none(),
            listed: AtomicU32::new(publish::UNLISTED),
            next: AtomicPtr::new(core::ptr::null_mut()),
            used: AtomicBool::new(false),
        }
    }

    /// The name under which it is shown.
    #[must_use]
    pub fn name(&self) -> &'static str {
        &self.file_name[PREFIX.len()..self.file_name.len() - 1]
    }

    /// The name of its file, with a zero at the end.
    pub(super) fn file_name(&self) -> &'static str {
        self.file_name
    }

    pub(super) fn pages(&self) -> &'static Pages {
        self.pages
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
    pub(super) fn is_new(&self) -> bool {
        self.state.load(Relaxed) == NEW
    }

    /// Whether the pages may hold what another process has counted.
    pub(super) fn is_used(&self) -> bool {
        self.used.load(Relaxed)
    }

    /// From here on the pages are zero and this process's own.
    pub(super) fn become_ready(&self) {
        self.used.store(true, Relaxed);
        // GROUP-5. ORDERING: SeqCst pairs with `add_early`.
        self.state.store(READY, SeqCst);
        self.fold();
    }

    /// The pages cannot be used.
    pub(super) fn stand_aside(&self) {
        self.used.store(true, Relaxed);
        self.state.store(ASIDE, Relaxed);
    }

    /// In the child of a fork: forgets what the parent has counted, without touching it.
    pub(super) fn begin_anew(&self) {
        self.state.store(NEW, Relaxed);
        for counter in &self.early.0 {
            counter.store(0, Relaxed);
        }
        self.file.close();
    }

    /// What was counted before the pages were ready.
    pub(super) fn early(&self) -> [u64; Event::ALL.len()] {
        Event::ALL.map(|event| self.early.0[event as usize].load(Relaxed))
    }

    /// In the child of a fork: forgets this much, and not what other threads add meanwhile. A reset that comes
    /// in between has forgotten it already.
    pub(super) fn take_away(&self, amounts: &[u64; Event::ALL.len()]) {
        for (event, amount) in Event::ALL.into_iter().zip(amounts) {
            let less = |count: u64| Some(count.saturating_sub(*amount));
            let _ = self.early.0[event as usize].fetch_update(Relaxed, Relaxed, less);
        }
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
            self.pages.0.mark.0[WORDS - 1].store(system::since_boot_ns(), Relaxed);
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
    fn what_comes_late_into_early_is_folded_by_who_brought_it() {
        crate::counter_group!(Late = "late");
        Late.count(Event::HashCount);
        let group = Late::group();
        assert!(!group.is_new());
        // Like a thread that saw another one publish, and was overtaken by it.
        group.add_aside(Event::HashCount, 5);
        assert_eq!(group.pages.sum(Event::HashCount), 6, "seen by other processes");
        assert_eq!(group.counts()[Event::HashCount as usize], 6);
    }

    #[test]
    fn a_group_without_pages_counts_all_the_same() {
        crate::counter_group!(Aside = "aside");
        Aside::group().stand_aside();
        Aside.add(Event::HashCount, 5);
        assert_eq!(Aside::count_of(Event::HashCount), 5);
        Aside::reset();
        Aside.count(Event::HashCount);
        assert_eq!(Aside::count_of(Event::HashCount), 1);
        assert_eq!(Aside::group().pages.sum(Event::HashCount), 0, "nobody touches them");
    }
}
