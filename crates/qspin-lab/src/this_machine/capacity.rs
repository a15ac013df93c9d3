//! How many threads this machine makes.

use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;

use crate::bench::cell::STACK;

/// How many of `wanted` threads can exist at once; they do nothing and end.
pub fn threads_possible(wanted: usize) -> usize {
    let done = Mutex::new(false);
    let changed = Condvar::new();
    thread::scope(|scope| {
        let mut made = 0;
        let wait = || {
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            while !*done {
                done = changed.wait(done).unwrap_or_else(PoisonError::into_inner);
            }
        };
        while made < wanted
            && thread::Builder::new().stack_size(STACK).spawn_scoped(scope, wait).is_ok()
        {
            made += 1;
        }
        *done.lock().unwrap_or_else(PoisonError::into_inner) = true;
        changed.notify_all();
        made
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_threads_are_possible_everywhere() {
        assert_eq!(threads_possible(4), 4);
    }
}
