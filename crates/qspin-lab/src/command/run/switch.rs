//! Switching counting and tracking on and off in a process that runs: bits of a word that its fast paths look at, in the
//! file that it has mapped (`statistics.rs` of the library).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::Ordering::{AcqRel, Relaxed};
use std::sync::atomic::{AtomicU32, AtomicU64};

use super::report;

/// What can be switched on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::command) enum What {
    /// Acquisitions, waits, stacks.
    Counts,
    /// What each thread holds.
    Holds,
}

/// The head of a slot, shared with the process.
pub(super) struct Switch {
    page: NonNull<u8>,
    on: Vec<What>,
}

const PAGE: usize = 4096;
/// Where in the head: whether it ever counted; the mode; how many want each; a request for a report; the epoch.
const COUNTS: usize = 24;
const MODE: usize = 512;
const WANTED: usize = 516;
const QUIT: usize = 524;
const EPOCH: usize = 528;

impl What {
    const fn bit(self) -> u32 {
        match self {
            Self::Counts => 2,
            Self::Holds => 4,
        }
    }
}

impl Switch {
    /// The head of this slot, of a file that is open for writing.
    pub(super) fn of(file: &File, slot: u64) -> io::Result<Self> {
        // SAFETY: a new mapping, wherever the kernel wants it; the file is as long (`report::read_slot` has read it).
        let page = unsafe {
            libc::mmap(
                null_mut(),
                PAGE,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                report::place_of(slot) as libc::off_t,
            )
        };
        match NonNull::new(page.cast::<u8>()) {
            Some(first) if page != libc::MAP_FAILED => Ok(Self { page: first, on: Vec::new() }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn word(&self, at: usize) -> &AtomicU32 {
        // SAFETY: within the page, aligned; the process uses it as an atomic, too.
        unsafe { AtomicU32::from_ptr(self.page.as_ptr().add(at).cast()) }
    }

    fn long(&self, at: usize) -> &AtomicU64 {
        // SAFETY: as in `word`.
        unsafe { AtomicU64::from_ptr(self.page.as_ptr().add(at).cast()) }
    }

    pub(super) fn is_on(&self, what: What) -> bool {
        self.word(MODE).load(Relaxed) & what.bit() != 0
    }

    /// Switches it on, until this is dropped and no other user wants it.
    pub(super) fn on(&mut self, what: What) {
        // ORDERING: AcqRel: the steps of several commands come in one order. None waits for another's.
        if self.word(WANTED + what as usize * 4).fetch_add(1, AcqRel) == 0 && !self.is_on(what) {
            match what {
                What::Counts => self.long(COUNTS).store(1, Relaxed),
                What::Holds => {
                    // ORDERING: before the mode, whose Release below pairs with the Acquire fence of the interposer's
                    // `Record::renew`: a thread that sees the mode sees the epoch.
                    self.long(EPOCH).fetch_add(1, AcqRel);
                }
            }
            self.word(MODE).fetch_or(what.bit(), AcqRel);
        }
        self.on.push(what);
    }

    /// Whether a thread of the process was sent SIGQUIT, and waits for a report.
    pub(super) fn is_asked(&self) -> bool {
        self.word(QUIT).load(Relaxed) == 1
    }

    /// The report is there.
    pub(super) fn answer(&self) {
        self.word(QUIT).store(2, Relaxed);
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        for what in &self.on {
            // ORDERING: AcqRel, as in `on`.
            if self.word(WANTED + *what as usize * 4).fetch_sub(1, AcqRel) == 1 {
                self.word(MODE).fetch_and(!what.bit(), AcqRel);
            }
        }
        // SAFETY: mapped by `of`, and not used after this.
        unsafe { libc::munmap(self.page.as_ptr().cast(), PAGE) };
    }
}
