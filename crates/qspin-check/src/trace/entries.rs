//! The table of halted waiters.

use super::{Role, Trace, WordId, with};
use crate::failure::{Failure, Kind};

/// Entry `id` has been claimed.
pub(super) fn must_be_alone(trace: &Trace, id: WordId) -> Result<(), Failure> {
    let lock = trace.words[id].value;
    let entries = trace.words.iter().filter(|word| word.role == Role::Entry);
    let of_the_lock = entries.filter(|word| word.value == lock).count();
    if of_the_lock > 1 {
        let message = format!("lock {lock} has {of_the_lock} entries in the table");
        return Err(Failure::new(Kind::Hash, message));
    }
    Ok(())
}

/// All contexts have ended.
///
/// # Errors
/// An entry has been left behind.
pub fn must_be_gone() -> Result<(), Failure> {
    with(|trace| {
        let left = |word: &&super::Word| word.role == Role::Entry && word.value != 0;
        match trace.words.iter().find(left) {
            None => Ok(()),
            Some(word) => {
                let message = format!("lock {} is left in the table", word.value);
                Err(Failure::new(Kind::Hash, message))
            }
        }
    })
}
