//! The events to come, in their order.
//!
//! # Model
//! A heap ordered by time and, at equal times, by the order in which the events were made. So the order is
//! total, and does not depend on addresses or on the host's threads.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::Time;

/// An event. If `turn` is no longer the strand's, the event has been overtaken and is void.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// A strand goes on.
    Resume { strand: u32, turn: u32 },
    /// A watcher polls its word.
    Look { strand: u32, turn: u32 },
    /// A watcher's budget is spent.
    Expire { strand: u32, turn: u32 },
    /// A watcher has spun through the window of the pause-loop exit.
    PauseLoop { strand: u32, turn: u32 },
    /// A line has come to the core that asked to own it.
    Granted { line: u32 },
    /// A line is ready for the next request.
    Free { line: u32 },
    /// A copy of a line has come to `core`.
    Delivered { line: u32, strand: u32, turn: u32, core: u16 },
    /// A kick has reached a halted strand.
    Wake { strand: u32, turn: u32 },
    /// The time slice of a processor's task is over, or another task is to run at once.
    Slice { processor: u16, turn: u32 },
    /// Tasks are moved from long queues to short ones.
    Balance,
    /// The quota of the virtual machine may be used up.
    QuotaSpent { turn: u32 },
    /// A new period of the quota begins.
    QuotaPeriod,
    /// The watchdog: there must have been progress since the last time.
    Watchdog,
}

#[derive(Debug, Clone, Copy)]
struct Event {
    time: Time,
    number: u64,
    what: What,
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}
impl Eq for Event {}
impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Event {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        // The heap's greatest element is the earliest event.
        (other.time, other.number).cmp(&(self.time, self.number))
    }
}

/// The events to come.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// The earliest of the recent events, if it is earlier than the heap's: most events are made to be the
    /// next, and need not go through the heap.
    front: Option<Event>,
    heap: BinaryHeap<Event>,
    made: u64,
}

impl Queue {
    #[inline]
    pub(crate) fn push(&mut self, time: Time, what: What) {
        let event = Event { time, number: self.made, what };
        self.made += 1;
        match &mut self.front {
            // At equal times an event made later comes later.
            Some(front) if front.time <= time => self.heap.push(event),
            Some(front) => {
                let later = std::mem::replace(front, event);
                self.heap.push(later);
            }
            None if self.heap.peek().is_some_and(|first| first.time <= time) => {
                self.heap.push(event);
            }
            None => self.front = Some(event),
        }
    }

    /// The time of the next event; the end of time if there is none.
    #[inline]
    pub(crate) fn next_time(&self) -> Time {
        let next = self.front.as_ref().or_else(|| self.heap.peek());
        next.map_or(Time::MAX, |event| event.time)
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(Time, What)> {
        let next = self.front.take().or_else(|| self.heap.pop());
        next.map(|event| (event.time, event.what))
    }

    /// Events made so far.
    pub(crate) fn made(&self) -> u64 {
        self.made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_and_at_one_time_in_the_order_they_were_made() {
        let mut queue = Queue::default();
        for (time, line) in [(5, 0), (3, 1), (5, 2), (1, 3), (3, 4)] {
            queue.push(time, What::Free { line });
        }
        assert_eq!(queue.next_time(), 1);
        let order: Vec<_> = std::iter::from_fn(|| queue.pop())
            .map(|(_, what)| match what {
                What::Free { line } => line,
                _ => unreachable!("only these were made"),
            })
            .collect();
        assert_eq!(order, [3, 1, 4, 0, 2]);
        assert_eq!(queue.next_time(), Time::MAX);
    }
}
