//! What will happen, in the order in which it will.
//!
//! # Model
//! Events are ordered by time and, at one time, by the order in which they were made. So the order is
//! total, and nothing of it depends on addresses or on the host's threads.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::Time;

/// What happens. A `turn` that is no longer the strand's says that the event has been overtaken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// A strand goes on.
    Resume { strand: u32, turn: u32 },
    /// A watcher looks at its word.
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
    /// The time slice of a processor's task is over, or somebody else is to run at once.
    Slice { processor: u16, turn: u32 },
    /// Tasks are moved from long queues to short ones.
    Balance,
    /// The quota of the virtual machine may be used up.
    QuotaSpent { turn: u32 },
    /// A new period of the quota begins.
    QuotaPeriod,
    /// Somebody must have made progress since the last time.
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
        // The heap's greatest is the earliest.
        (other.time, other.number).cmp(&(self.time, self.number))
    }
}

/// A picosecond's day is its time without that many of the lowest bits: two nanoseconds are one.
const DAY: u32 = 11;
/// Days of the calendar: four microseconds ahead.
const DAYS: usize = 2048;
/// The end of a day's list, and of the list of free slots.
const NONE: u32 = u32::MAX;

/// An event of the calendar, and the next one of its day.
#[derive(Debug, Clone, Copy)]
struct Slot {
    event: Event,
    next: u32,
}

/// The events to come.
///
/// Most are for soon. So they are kept as in a calendar: a list for each of the days to come, unsorted, and
/// a day is sorted when it comes. Whatever is for later lies in a heap.
///
/// # Invariants
/// * **Q1** `front` is earlier than everything else.
/// * **Q2** `today` holds the events of day `day` and before it, the earliest last; the calendar those of
///   the `DAYS - 1` days after it; the heap any after it.
/// * **Q3** `rest`, if it is known, is the earliest time of all but `front`.
#[derive(Debug)]
pub(crate) struct Queue {
    /// The earliest, if it was made of late: most events are made to be the next.
    front: Option<Event>,
    today: Vec<Event>,
    day: u64,
    /// The first event of each day, by its number modulo `DAYS`.
    days: Box<[u32]>,
    /// A bit for each day that has events.
    busy: [u64; DAYS / 64],
    slots: Vec<Slot>,
    free: u32,
    later: BinaryHeap<Event>,
    rest: Option<Time>,
    made: u64,
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            front: None,
            today: Vec::new(),
            day: 0,
            days: vec![NONE; DAYS].into(),
            busy: [0; DAYS / 64],
            slots: Vec::new(),
            free: NONE,
            later: BinaryHeap::new(),
            rest: None,
            made: 0,
        }
    }
}

fn day_of(time: Time) -> u64 {
    time >> DAY
}

impl Queue {
    #[inline]
    pub(crate) fn push(&mut self, time: Time, what: What) {
        let event = Event { time, number: self.made, what };
        self.made += 1;
        // An event made later comes later at one time.
        if self.next_time() <= time {
            self.put(event);
        } else if let Some(front) = self.front.replace(event) {
            self.put(front);
        }
    }

    /// Where it belongs by Q2.
    #[inline]
    fn put(&mut self, event: Event) {
        if self.rest.is_some_and(|rest| event.time < rest) {
            self.rest = Some(event.time);
        }
        let day = day_of(event.time);
        if day <= self.day {
            let place = self.today.partition_point(|other| *other < event);
            self.today.insert(place, event);
        } else if day - self.day < DAYS as u64 {
            self.note(event, day as usize % DAYS);
        } else {
            self.later.push(event);
        }
    }

    fn note(&mut self, event: Event, place: usize) {
        let slot = Slot { event, next: self.days[place] };
        if self.free == NONE {
            self.days[place] = self.slots.len() as u32;
            self.slots.push(slot);
        } else {
            let number = self.free;
            self.free = std::mem::replace(&mut self.slots[number as usize], slot).next;
            self.days[place] = number;
        }
        self.busy[place / 64] |= 1 << (place % 64);
    }

    /// The next day of the calendar that has events.
    fn next_busy(&self) -> Option<u64> {
        let first = (self.day + 1) as usize % DAYS;
        // The word in which the days begin is looked at twice: at its end, and at its beginning.
        for step in 0..=DAYS / 64 {
            let word = (first / 64 + step) % (DAYS / 64);
            let mut busy = self.busy[word];
            if step == 0 {
                busy &= u64::MAX << (first % 64);
            }
            if busy != 0 {
                let place = word * 64 + busy.trailing_zeros() as usize;
                return Some(self.day + 1 + ((place + DAYS - first) % DAYS) as u64);
            }
        }
        None
    }

    /// The earliest time of all but `front`; the end of time if there is nothing else.
    #[inline]
    fn rest(&mut self) -> Time {
        match self.rest {
            Some(rest) => rest,
            None => self.find_rest(),
        }
    }

    fn find_rest(&mut self) -> Time {
        let mut rest = Time::MAX;
        if let Some(event) = self.today.last() {
            rest = event.time;
        } else {
            let mut at = self.next_busy().map_or(NONE, |day| self.days[day as usize % DAYS]);
            while let Some(slot) = self.slots.get(at as usize) {
                rest = rest.min(slot.event.time);
                at = slot.next;
            }
            rest = self.later.peek().map_or(rest, |event| rest.min(event.time));
        }
        self.rest = Some(rest);
        rest
    }

    /// The time of the next event; the end of time if there is none.
    #[inline]
    pub(crate) fn next_time(&mut self) -> Time {
        match &self.front {
            Some(front) => front.time,
            None => self.rest(),
        }
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(Time, What)> {
        let next = match self.front.take() {
            Some(front) => {
                // Every day before this one is over (Q1): the calendar reaches further.
                self.day = self.day.max(day_of(front.time).saturating_sub(1));
                front
            }
            None => self.pop_rest()?,
        };
        Some((next.time, next.what))
    }

    #[inline]
    fn pop_rest(&mut self) -> Option<Event> {
        if self.today.is_empty() {
            self.turn_over();
        }
        let next = self.today.pop();
        self.rest = self.today.last().map(|event| event.time);
        next
    }

    /// The next day with events becomes today.
    fn turn_over(&mut self) {
        let noted = self.next_busy();
        let later = self.later.peek().map(|event| day_of(event.time));
        let Some(day) = noted.into_iter().chain(later).min() else { return };
        self.day = day;
        if noted == Some(day) {
            let place = day as usize % DAYS;
            let mut at = std::mem::replace(&mut self.days[place], NONE);
            self.busy[place / 64] &= !(1 << (place % 64));
            while at != NONE {
                let slot = &mut self.slots[at as usize];
                self.today.push(slot.event);
                let next = std::mem::replace(&mut slot.next, self.free);
                self.free = at;
                at = next;
            }
        }
        while self.later.peek().is_some_and(|event| day_of(event.time) == day) {
            self.today.extend(self.later.pop());
        }
        self.today.sort_unstable();
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

    #[test]
    fn the_calendar_is_in_the_order_of_a_sorted_list() {
        let mut random = super::super::Random::new(1);
        let mut queue = Queue::default();
        let (mut now, mut number) = (0, 0);
        let mut waiting: Vec<(Time, u32)> = Vec::new();
        for round in 0..20_000 {
            // Few and many; now, soon, in the calendar's last days, and long after them.
            let most = if round % 2000 < 1000 { 3 } else { 300 };
            while waiting.len() < most {
                let reach = [1, 3_000, 500_000, (DAYS << DAY) as u32 + 5_000, 1 << 30];
                let reach = reach[random.below(5) as usize];
                let time = now + Time::from(random.below(reach));
                queue.push(time, What::Free { line: number });
                waiting.push((time, number));
                number += 1;
            }
            let next = *waiting.iter().min().unwrap();
            assert_eq!(queue.next_time(), next.0);
            assert_eq!(queue.pop(), Some((next.0, What::Free { line: next.1 })));
            waiting.retain(|it| *it != next);
            now = next.0;
        }
        let mut rest = std::iter::from_fn(|| queue.pop()).map(|it| it.0).collect::<Vec<_>>();
        assert_eq!(rest.len(), waiting.len());
        let sorted = rest.clone();
        rest.sort_unstable();
        assert_eq!(rest, sorted);
    }
}
