//! What a notification counts, against how waits end.

use super::with;
use crate::failure::{Failure, Kind};

#[derive(Debug, Default)]
pub(super) struct Notified {
    /// Waiters that notifications have counted.
    counted: u64,
    /// Waits that have ended as notified.
    ended: u64,
}

/// A notification has counted so many waiters.
pub fn notified(count: u32) {
    with(|trace| trace.notified.counted += u64::from(count));
}

/// A wait has ended, as notified or not.
pub fn wait_ended(notified: bool) {
    with(|trace| trace.notified.ended += u64::from(notified));
}

/// All contexts have ended. A wait may end spuriously, so more may have ended as notified than were.
///
/// # Errors
/// A waiter that was counted did not return as notified.
pub fn must_agree() -> Result<(), Failure> {
    with(|trace| {
        let Notified { counted, ended } = trace.notified;
        if ended >= counted {
            return Ok(());
        }
        let message = format!("{counted} waiters were notified, and {ended} waits ended so");
        Err(Failure::new(Kind::Count, message))
    })
}
