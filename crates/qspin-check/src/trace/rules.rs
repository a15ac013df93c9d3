//! What a lock's words may do.

use super::Reached;

/// What the harness knows of a lock's word or words: `index` counts them in the order in which
/// the lock makes them.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// Whether the state diagram has the step `from` to `to`.
    pub legal: fn(index: usize, from: u32, to: u32) -> bool,
    /// Whether that step is an arrival: it fixes the order in which it is served.
    pub arrives: fn(index: usize, from: u32, to: u32) -> bool,
    /// Whether that step takes back the arrival of the context that makes it: it will arrive again.
    pub departs: fn(index: usize, from: u32, to: u32) -> bool,
    /// Whether that step is one more that a context without a place in a queue may make.
    pub placeless: fn(index: usize, from: u32, to: u32) -> bool,
    /// Whether only a context with a number may make that step.
    pub numbered: fn(index: usize, from: u32, to: u32) -> bool,
    /// Whether a word admits a reader that is no interrupt.
    pub admits: fn(index: usize, word: u32) -> bool,
    /// Whether that step announces a waiting writer, which new readers may not pass.
    pub announces: fn(index: usize, from: u32, to: u32) -> bool,
    /// Whether the lock promises to serve in the order of arrival.
    pub fifo: bool,
    /// Whether it has at most one halted waiter in the table of them.
    pub one_entry: bool,
    /// Which waiter forbids others by that step to acquire the lock past it.
    pub forbids: fn(index: usize, from: u32, to: u32) -> Option<Reached>,
    /// Whether that step leaves the last of a secondary queue as the tail.
    pub replaces: fn(from: u32, to: u32) -> bool,
    /// Whether waiters that are near come first, within the bounds that the order promises.
    pub near_first: bool,
    /// Whether a word may be this when no context holds the lock, or waits for it.
    pub rests: fn(index: usize, word: u32) -> bool,
}
