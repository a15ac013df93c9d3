//! Switching counting and tracking on and off in a process that runs: bits of a word that its fast paths look at, in the
//! file that it has mapped ([`qspin::locks_file`]).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::Ordering::{AcqRel, Relaxed};

use qspin::locks_file::{COUNTED, Head, TRACKED, place_of};

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
    head: NonNull<Head>,
    on: Vec<What>,
}

impl What {
    const fn bit(self) -> u32 {
        match self {
            Self::Counts => COUNTED,
            Self::Holds => TRACKED,
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
                size_of::<Head>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                place_of(slot) as libc::off_t,
            )
        };
        match NonNull::new(page.cast::<Head>()) {
            Some(head) if page != libc::MAP_FAILED => Ok(Self { head, on: Vec::new() }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn head(&self) -> &Head {
        // SAFETY: mapped by `of`; the process uses these words as atomics, too.
        unsafe { self.head.as_ref() }
    }

    pub(super) fn is_on(&self, what: What) -> bool {
        self.head().mode.load(Relaxed) & what.bit() != 0
    }

    /// Switches it on, until this is dropped and no other user wants it.
    pub(super) fn on(&mut self, what: What) {
        // ORDERING: AcqRel: the steps of several commands come in one order. None waits for another's.
        if self.head().wanted[what as usize].fetch_add(1, AcqRel) == 0 && !self.is_on(what) {
            match what {
                What::Counts => self.head().counts.store(1, Relaxed),
                What::Holds => {
                    // ORDERING: before the mode, whose Release below pairs with the Acquire fence of the interposer's
                    // `Record::renew`: a thread that sees the mode sees the epoch.
                    self.head().epoch.fetch_add(1, AcqRel);
                }
            }
            self.head().mode.fetch_or(what.bit(), AcqRel);
        }
        self.on.push(what);
    }

    /// Whether a thread of the process was sent SIGQUIT, and waits for a report.
    pub(super) fn is_asked(&self) -> bool {
        self.head().quit.load(Relaxed) == 1
    }

    /// The report is there.
    pub(super) fn answer(&self) {
        self.head().quit.store(2, Relaxed);
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        for what in &self.on {
            // ORDERING: AcqRel, as in `on`.
            if self.head().wanted[*what as usize].fetch_sub(1, AcqRel) == 1 {
                self.head().mode.fetch_and(!what.bit(), AcqRel);
            }
        }
        // SAFETY: mapped by `of`, and not used after this.
        unsafe { libc::munmap(self.head.as_ptr().cast(), size_of::<Head>()) };
    }
}
