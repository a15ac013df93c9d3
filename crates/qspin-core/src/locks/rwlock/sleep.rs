//! Sleeping beside the word: what the owner of the gate, readers, and both sides of an upgrade have in common.
//!
//! A waiter joins the sleepers, and then sets its bits by a compare-exchange from a word that does not admit it. The
//! step that would admit it sees the bits, and wakes it; or comes before, and then the compare-exchange fails
//! (RWLOCK-3, RWLOCK-8, RWLOCK-10).

use core::sync::atomic::Ordering::Relaxed;

use super::{DefaultRwLock, Sleeper};
use crate::node::NodeId;
use crate::platform::AtomicWord;
use crate::sleepers::{self, SleepPlatform};

/// How an attempt to sleep has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slept {
    /// The waiter could not join the sleepers.
    NoRoom,
    /// There was no need: the word `seen` does not keep the waiter out. A release may have taken it out of the queue
    /// meanwhile (`woken`); it meant this waiter, which is awake.
    Needless { seen: u32, woken: bool },
    /// Woken, or past the deadline: either way the waiter polls again.
    Over { woken: bool },
}

impl<W: AtomicWord, G> DefaultRwLock<W, G> {
    /// Sleeps as what `queued` says, with `bits` set in the word, if `waits` says of the word that the waiter has to.
    pub(super) fn sleep_while<P: SleepPlatform<Word = W>>(
        &self,
        p: &P,
        me: NodeId,
        queued: (Sleeper, sleepers::End),
        bits: u32,
        waits: impl Fn(u32) -> bool,
        until: u64,
    ) -> Slept {
        let (waiter, end) = queued;
        if !sleepers::enqueue(p, me, self.on(p), waiter as u32, end) {
            return Slept::NoRoom;
        }
        let mut seen = self.word.load(Relaxed);
        while waits(seen) {
            match self.word.compare_exchange(seen, seen | bits, Relaxed) {
                Ok(_) => return Slept::Over { woken: sleepers::await_wake(p, me, until) },
                Err(now) => seen = now,
            }
        }
        Slept::Needless { seen, woken: !sleepers::cancel(p, me) }
    }
}
