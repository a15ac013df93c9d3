//! What an execution leaves behind in the words of a lock.

use super::{Role, with};
use crate::failure::{Failure, Kind};

/// All contexts have ended.
///
/// # Errors
/// A word of a lock says that there is an owner, or a waiter.
pub fn must_rest() -> Result<(), Failure> {
    with(|trace| {
        let Some(rules) = trace.rules else { return Ok(()) };
        for word in &trace.words {
            let Role::Lock { lock, index } = word.role else { continue };
            if trace.locks[lock].freed {
                continue;
            }
            if !(rules.rests)(index, word.value) {
                let message =
                    format!("word {index} of lock {lock} is left as {:#010x}", word.value);
                return Err(Failure::new(Kind::State, message));
            }
        }
        Ok(())
    })
}
