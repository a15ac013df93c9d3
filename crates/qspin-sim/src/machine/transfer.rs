//! How lines move from core to core.
//!
//! # Model
//! A line serves one transfer of ownership at a time; reads overlap, each keeping the line for its occupancy
//! only. A request that has to wait does so in the line's queue. The next one served is not always the oldest:
//! with the machine's `near_bias` it is the nearest to the present owner, as interconnects prefer the cores
//! that they reach first. A line that is shared has none: the first of its sharers stands for it, or, by the
//! machine's `near_to_last_owner`, the core that owned it last, whose own request then waits for the others'.
//! Reads that follow each other are served together; a read that came after a request for ownership is not
//! served before that request. A request that has waited has made the first part of its way meanwhile: the rest
//! of its cost is the machine's `queued`.
//!
//! A read in progress while the line goes to a new owner delivers the line's content at its arrival, and leaves
//! no copy.
//!
//! # Limits
//! No home node: the cost of a transfer does not depend on which node's memory holds the line.

use crate::engine::{Client, State, Time, What};

/// A request for a line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request {
    /// For this core.
    pub(crate) core: u16,
    /// For writing, not only for reading.
    pub(crate) owns: bool,
    /// The party that asked for it.
    pub(crate) client: Client,
}

impl State {
    /// `request` comes to `line`.
    pub(crate) fn request(&mut self, line: usize, request: Request) {
        let it = &mut self.lines[line];
        if it.serving.is_some() || !it.waiting.is_empty() {
            it.waiting.push(request);
        } else if self.now >= it.free_at {
            self.serve(line, request, 0, false);
        } else {
            it.waiting.push(request);
            self.free_later(line);
        }
    }

    /// Serves `request` now or, if it is a read, that much later. A request that has `waited` has been on its
    /// way meanwhile.
    fn serve(&mut self, line: usize, request: Request, after: Time, waited: bool) {
        let rest = if waited { self.prices.queued } else { 65536 };
        if request.owns {
            let cost = self.jittered(self.cost_of_owning(line, request.core) * rest / 65536);
            self.lines[line].serving = Some(request);
            self.queue.push(self.now + cost, What::Granted { line: line as u32 });
            return;
        }
        let cost = self.jittered(self.cost_of_reading(line, request.core) * rest / 65536);
        self.lines[line].share();
        self.lines[line].free_at = self.now + after + self.prices.read_occupancy;
        let Client::Strand { strand, turn } = request.client else {
            unreachable!("a store owns its line")
        };
        let core = request.core;
        let what = What::Delivered { line: line as u32, strand, turn, core };
        self.queue.push(self.now + after + cost, what);
    }

    /// The line is ready for the next request.
    pub(crate) fn serve_next(&mut self, line: usize) {
        let now = self.now;
        let it = &self.lines[line];
        if it.serving.is_some() || it.waiting.is_empty() {
            return;
        }
        if now < it.free_at {
            self.free_later(line);
            return;
        }
        let next = self.choose(line);
        if self.lines[line].waiting[next].owns {
            let request = self.lines[line].waiting.remove(next);
            self.serve(line, request, 0, true);
            return;
        }
        // The reads that came before any request for ownership; or the nearest request.
        let waiting = &mut self.lines[line].waiting;
        let first = waiting.iter().position(|request| request.owns).unwrap_or(waiting.len());
        let reads = if next < first { 0..first } else { next..next + 1 };
        let reads: Vec<Request> = waiting.drain(reads).collect();
        let mut after = 0;
        for request in reads {
            self.serve(line, request, after, true);
            after += self.prices.read_occupancy;
        }
        if !self.lines[line].waiting.is_empty() {
            self.free_later(line);
        }
    }

    fn free_later(&mut self, line: usize) {
        let it = &mut self.lines[line];
        if !it.free_is_due {
            it.free_is_due = true;
            self.queue.push(it.free_at.max(self.now), What::Free { line: line as u32 });
        }
    }

    /// Makes the line serve the next request, if there is one, as soon as the present event is done.
    pub(crate) fn free_if_wanted(&mut self, line: usize) {
        if !self.lines[line].waiting.is_empty() {
            self.free_later(line);
        }
    }

    /// Which of the waiting requests is next.
    fn choose(&mut self, line: usize) -> usize {
        let it = &self.lines[line];
        if it.waiting.len() == 1 || self.random.below(65536) >= self.prices.near_bias {
            return 0;
        }
        let by_last = self.prices.near_to_last_owner;
        let present = || it.owner().or_else(|| it.sharers.iter().next());
        let Some(owner) = (if by_last { it.last_owner } else { present() }) else { return 0 };
        // Among the nearest, each has the same chance.
        let (mut nearest, mut alike, mut chosen) = (Time::MAX, 0, 0);
        for (place, request) in it.waiting.iter().enumerate() {
            let far = match by_last && request.core == owner {
                true => Time::MAX - 1,
                false => self.distances.over(owner, request.core),
            };
            if far < nearest {
                (nearest, alike, chosen) = (far, 1, place);
            } else if far == nearest {
                alike += 1;
                if self.random.below(alike) == 0 {
                    chosen = place;
                }
            }
        }
        chosen
    }

    /// The cost of bringing the line's data to `core`.
    fn cost_of_reading(&self, line: usize, core: u16) -> Time {
        let it = &self.lines[line];
        if let Some(owner) = it.owner() {
            return self.distances.over(owner, core);
        }
        if it.is_at(core) {
            return self.distances.over(core, core);
        }
        let from = it.sharers.iter().map(|sharer| self.distances.over(sharer, core));
        from.min().unwrap_or(self.prices.memory)
    }

    /// The cost of making `core` the line's owner: its data, or the slowest of the cores that lose their
    /// copies.
    fn cost_of_owning(&self, line: usize, core: u16) -> Time {
        let it = &self.lines[line];
        if let Some(owner) = it.owner() {
            return self.distances.over(owner, core);
        }
        let (mut copies, mut nearest, mut farthest) = (0, Time::MAX, 0);
        for sharer in it.sharers.iter().filter(|&sharer| sharer != core) {
            let far = self.distances.over(sharer, core);
            copies += 1;
            nearest = nearest.min(far);
            farthest = farthest.max(far);
        }
        let data = if it.is_at(core) {
            0
        } else if copies == 0 {
            self.prices.memory
        } else {
            nearest
        };
        data.max(farthest) + self.prices.invalidate * copies
    }

    #[inline]
    fn jittered(&mut self, cost: Time) -> Time {
        let jitter = self.prices.jitter;
        if jitter == 0 {
            return cost;
        }
        // Between 1 - jitter and 1 + jitter, in 65536ths.
        let spread = 2 * jitter * u64::from(self.random.below(65536)) / 65536;
        cost * (65536 - jitter + spread) / 65536
    }
}
