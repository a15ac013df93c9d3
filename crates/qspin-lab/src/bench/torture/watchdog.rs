//! Notices that a lock stands still.

use std::fmt;
use std::time::Duration;

use super::{LEVELS, which};

/// What goes on at a lock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Queue {
    /// How often it was acquired so far.
    pub acquired: u64,
    /// Threads that wait for it.
    pub wait: usize,
    /// Threads that are inside.
    pub inside: usize,
    /// Threads that are just releasing it.
    pub leave: usize,
}

/// A lock that has waiters, and that none of them acquires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stall {
    /// Of which lock: the depth of its handlers, 0 for that of the threads.
    pub level: usize,
    /// Since when.
    pub lasts: Duration,
    /// When it was noticed, since the beginning.
    pub at: Duration,
    /// The torture was about to end: no new threads, no signals.
    pub ending: bool,
    /// What goes on there.
    pub queue: Queue,
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Queue { acquired, wait, inside, leave } = self.queue;
        write!(
            f,
            "no thread got {} for {:.1} s although {wait} waited ({inside} inside, {leave} just \
             releasing, after {acquired} acquisitions), {} at {:.1} s",
            which(self.level),
            self.lasts.as_secs_f64(),
            if self.ending { "while the threads were ending," } else { "in the middle of it," },
            self.at.as_secs_f64(),
        )
    }
}

/// The longest time between two looks that counts: a process that was stopped, or had no CPU,
/// did not see the lock stand still.
const LONGEST_LOOK: Duration = Duration::from_millis(250);

/// What stands still for so long may stand still for ever.
const WORRIES: Duration = Duration::from_millis(20);

/// Looks at the locks again and again.
#[derive(Debug)]
pub struct Watchdog {
    timeout: Duration,
    looked: Duration,
    seen: [(u64, Duration); LEVELS],
}

impl Watchdog {
    /// One that reports what stands still for so long.
    pub fn new(timeout: Duration) -> Self {
        Self { timeout, looked: Duration::ZERO, seen: [(0, Duration::ZERO); LEVELS] }
    }

    /// Whether some lock has stood still for a while, though not for too long yet. Then no thread
    /// should be woken by a signal: it may be the wake-up that the lock has lost.
    pub fn worries(&self) -> bool {
        self.seen.iter().any(|(_, still)| *still >= WORRIES)
    }

    /// Looks, `at` so much time since the beginning. Of several locks that stand still the one
    /// of the deepest handlers is told: its waiters may hold the others.
    pub fn look(&mut self, queues: &[Queue; LEVELS], ending: bool, at: Duration) -> Option<Stall> {
        let since = at.saturating_sub(self.looked).min(LONGEST_LOOK);
        self.looked = at;
        let mut stall = None;
        for (level, (queue, (acquired, still))) in queues.iter().zip(&mut self.seen).enumerate() {
            // A thread that tries or releases must not stand still either.
            if queue.acquired != *acquired || queue.wait + queue.leave == 0 {
                (*acquired, *still) = (queue.acquired, Duration::ZERO);
                continue;
            }
            *still += since;
            if *still >= self.timeout {
                stall = Some(Stall { level, lasts: *still, at, ending, queue: *queue });
            }
        }
        stall
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queues(acquired: u64, wait: usize) -> [Queue; LEVELS] {
        let mut queues = [Queue::default(); LEVELS];
        queues[0] = Queue { acquired, wait, inside: 1, leave: 0 };
        queues
    }

    /// Looks every 100 ms for so many times; when a stall was noticed, if one was.
    fn noticed(
        looks: u32,
        step: Duration,
        queue: impl Fn(u32) -> [Queue; LEVELS],
    ) -> Option<Stall> {
        let mut dog = Watchdog::new(Duration::from_secs(5));
        (1..=looks).find_map(|look| dog.look(&queue(look), false, step * look))
    }

    const STEP: Duration = Duration::from_millis(100);

    #[test]
    fn a_lock_that_no_thread_gets_is_noticed_and_one_that_goes_on_slowly_is_not() {
        let stall = noticed(100, STEP, |_| queues(7, 3)).unwrap();
        assert_eq!((stall.level, stall.queue.wait), (0, 3));
        assert!(stall.lasts >= Duration::from_secs(5));
        let line = stall.to_string();
        assert!(
            line.contains("no thread got the threads' lock for 5.0 s although 3 waited"),
            "{line}"
        );
        // Once in 4 s.
        assert_eq!(noticed(1000, STEP, |look| queues(u64::from(look / 40), 3)), None);
        // It has no waiters.
        assert_eq!(noticed(1000, STEP, |_| queues(7, 0)), None);
    }

    #[test]
    fn a_stopped_waiter_has_seen_nothing() {
        let long = Duration::from_secs(60);
        assert_eq!(noticed(19, long, |_| queues(7, 3)), None);
        assert!(noticed(30, long, |_| queues(7, 3)).is_some());
    }

    #[test]
    fn the_deepest_of_several_is_told() {
        let stall = noticed(100, STEP, |_| {
            let mut queues = queues(7, 3);
            queues[2] = Queue { acquired: 1, wait: 1, inside: 0, leave: 0 };
            queues
        });
        assert_eq!(stall.map(|stall| stall.level), Some(2));
    }
}
