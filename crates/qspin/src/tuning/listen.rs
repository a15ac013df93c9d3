//! Whether other processes may change the tunables of this one. How they do it is the system's business.

use core::fmt;

use crate::platform::system;

/// Why no other process can change this one's tunables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListenError {
    /// `QSPIN_LISTEN=off` stood in the environment when the program was loaded.
    Refused,
    /// The kernel gave no file in memory: none is left, or a filter of system calls forbids it.
    NoFile,
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Refused => "QSPIN_LISTEN=off forbids that other processes change tunables",
            Self::NoFile => {
                "the kernel gives no file in memory, by which tunables could be changed"
            }
        })
    }
}

impl core::error::Error for ListenError {}

/// Lets other processes of the same user change this one's tunables, by `qspin stat PID --tune NAME=VALUE`, from
/// now on. Waits that are under way end as they began, or by the new values. A child of `fork` listens, too, with
/// a file of its own.
///
/// It costs an open file, numbered 200 or higher where that is allowed, and a page of memory. To be called
/// again is allowed. Not async-signal-safe.
///
/// # Errors
/// See [`ListenError`]. Nothing has changed then.
pub fn listen() -> Result<(), ListenError> {
    system::listen::listen()
}
