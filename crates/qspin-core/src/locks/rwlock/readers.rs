//! Readers that are not admitted: they sleep beside the word, and are all woken when nothing keeps them out.

use core::sync::atomic::Ordering::Relaxed;

use super::{DefaultRwLock, End, KEEPS_OUT, Sleeper, Slept, WAITING, Want, admitting, is_over};
use crate::lock::RawTimedLock;
use crate::node::NodeId;
use crate::platform::AtomicWord;
use crate::sleepers::{self, Choice, Pace, SleepPlatform};

/// Wakes all readers that sleep, or in doubt more. Called after a release (RWLOCK-4).
pub(super) fn wake_all<P: SleepPlatform>(p: &P, on: usize) {
    let choose = |tag| if tag == Sleeper::Reader as u32 { Choice::Take } else { Choice::Leave };
    match sleepers::take(p, on, choose) {
        Some(taken) => taken.wake(p),
        None => sleepers::wake_later(p, on),
    }
}

impl<W: AtomicWord, G> DefaultRwLock<W, G> {
    /// Waits beside the word, and with the gate once the reader starves (RWLOCK-5).
    pub(super) fn acquire_shared_slow<P>(&self, p: &P, deadline: u64) -> bool
    where
        P: SleepPlatform<Word = W>,
        G: RawTimedLock<P>,
    {
        let mut since = 0;
        loop {
            if is_over(p, deadline) {
                return self.newcomer(p, Want::Read);
            }
            if Pace::of_rwlock(p, self.on(p)).keeps_away() {
                return self.acquire_by_gate(p, Want::Read, deadline, true, since) == End::Inside;
            }
            if self.polls(p, Want::Read) {
                return true;
            }
            let now = p.now_ns();
            if since == 0 {
                since = now.max(1);
            }
            let starves = since.saturating_add(sleepers::starves_after_ns(p, self.on(p)));
            if now >= starves {
                return self.acquire_by_gate(p, Want::Read, deadline, false, since) == End::Inside;
            }
            let until = deadline.min(starves);
            if sleepers::with_sleeper(p, |me| self.sleep_to_read(p, me, until)) != Some(true) {
                p.timed_backoff();
            }
        }
    }

    /// RWLOCK-10. Returns false if the reader could not sleep.
    fn sleep_to_read<P: SleepPlatform<Word = W>>(&self, p: &P, me: NodeId, until: u64) -> bool {
        let queued = (Sleeper::Reader, sleepers::End::Last);
        let is_out = |seen| seen & KEEPS_OUT != 0;
        match self.sleep_while(p, me, queued, WAITING, is_out, until) {
            Slept::NoRoom => false,
            // Without room the reader waits (RWLOCK-7), and is not woken.
            Slept::Needless { seen, .. } => Want::Read.fits(seen),
            Slept::Over { .. } => true,
        }
    }

    /// After a step of a thread that does not release the lock: wakes the readers if nothing keeps them out.
    pub(super) fn admit_readers<P: SleepPlatform<Word = W>>(&self, p: &P) {
        let mut seen = self.word.load(Relaxed);
        while admitting(seen) != seen {
            match self.word.compare_exchange(seen, admitting(seen), Relaxed) {
                Ok(_) => return wake_all(p, self.on(p)),
                Err(now) => seen = now,
            }
        }
    }
}
