//! Which CPU is stopped, when, and for how long.
//!
//! The guest rings when its plan strikes, and says on the shared page which CPU owns the lock and since when which wait
//! ([`qspin_guest::shared_page`]). The warden stops one of them, keeps it so for the time that was ordered, and
//! lets it go on. Where it honours hints (remedy b of document 001), it stops no holder that asks not to be
//! preempted: that one owes the time, and pays when its critical section has ended, or when the warden's
//! timeout has.
//!
//! # Invariants
//! * **WARDEN-1** A CPU that was stopped is let go on: when its time has passed, or when the warden ends.
//! * **WARDEN-2** Every request is answered, whether a CPU could be stopped for it or not: the guest
//!   waits.

use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use qspin_guest::preempt::Victim;
use qspin_guest::shared_page::{NOTHING, OWED, PAYS, SharedPage};

/// What a warden can do with virtual CPUs, which it knows by the names of their APICs.
pub trait CpuControl {
    /// Stops a CPU; returns when it runs no more, and whether that could be done.
    fn stop(&mut self, apic_id: u32) -> bool;
    /// Lets it go on.
    fn go_on(&mut self, apic_id: u32);
}

impl<H: CpuControl + ?Sized> CpuControl for Box<H> {
    fn stop(&mut self, apic_id: u32) -> bool {
        (**self).stop(apic_id)
    }
    fn go_on(&mut self, apic_id: u32) {
        (**self).go_on(apic_id);
    }
}

/// What was ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// Which CPU is stopped.
    pub victim: Victim,
    /// How long.
    pub time: Duration,
    /// Holders that ask not to be preempted are not, until they have released.
    pub honours_hints: bool,
}

/// The longest that a holder's hint is honoured.
pub const TIMEOUT: Duration = Duration::from_millis(10);

/// What has happened so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Requests of the guest.
    pub asked: u64,
    /// CPUs that were stopped and let go on.
    pub stopped: u64,
    /// Requests for which there was no CPU: no CPU waits, or the one that does is stopped already.
    pub missed: u64,
    /// Of the stopped, those that held the lock, or still waited for it, when they were.
    pub hit: u64,
    /// Requests that a hint has put off.
    pub put_off: u64,
    /// Of these, the ones for which the timeout ended first.
    pub impatient: u64,
    /// Nanoseconds for which CPUs were stopped, in sum, the shortest and the longest.
    pub ns: u64,
    /// The shortest.
    pub least_ns: u64,
    /// The longest.
    pub most_ns: u64,
}

impl Tally {
    fn add(&mut self, hit: bool, time: Duration) {
        self.hit += u64::from(hit);
        let ns = time.as_nanos() as u64;
        self.least_ns = if self.stopped == 0 { ns } else { self.least_ns.min(ns) };
        self.most_ns = self.most_ns.max(ns);
        self.ns += ns;
        self.stopped += 1;
    }
}

/// A CPU that was stopped.
#[derive(Debug)]
struct Stopped {
    seat: usize,
    apic_id: u32,
    since: Instant,
    /// It still was what it was stopped for.
    hit: bool,
}

/// See the file's head.
#[derive(Debug)]
pub struct Warden<H> {
    order: Order,
    hands: H,
    stopped: Vec<Stopped>,
    /// Seats that owe, and since when.
    owing: Vec<(usize, Instant)>,
    tally: Tally,
}

impl<H: CpuControl> Warden<H> {
    /// A warden with these hands.
    pub fn new(order: Order, hands: H) -> Self {
        Self { order, hands, stopped: Vec::new(), owing: Vec::new(), tally: Tally::default() }
    }

    /// What has happened so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Deals with everything that the shared page asks for; whether there was anything. `clock` is read where
    /// the time of a stop begins and ends.
    pub fn look(&mut self, shared: &SharedPage, clock: &impl Fn() -> Instant) -> bool {
        let mut found = false;
        // ORDERING: Acquire pairs with the Release of the guest: what it has written before.
        let request = shared.request.load(Acquire);
        if request != shared.answer.load(Acquire) {
            found = true;
            self.strike(shared, clock);
            // ORDERING: Release pairs with the Acquire of the guest.
            shared.answer.store(request, Release);
        }
        for seat in 0..shared.seats.len() {
            if shared.seats[seat].owed.load(Acquire) == PAYS {
                found = true;
                self.owing.retain(|(other, _)| *other != seat);
                self.stop(shared, seat, clock);
                shared.seats[seat].owed.store(NOTHING, Release);
            }
        }
        found
    }

    fn strike(&mut self, shared: &SharedPage, clock: &impl Fn() -> Instant) {
        self.tally.asked += 1;
        let victim = match self.order.victim {
            Victim::Holder => shared.holder(),
            Victim::Next => shared.next(),
        };
        let Some(seat) = victim else {
            self.tally.missed += 1;
            return;
        };
        let asks = shared.seats[seat].keep.load(Acquire) != 0;
        if self.order.honours_hints && self.order.victim == Victim::Holder && asks {
            self.tally.put_off += 1;
            shared.seats[seat].owed.store(OWED, Release);
            self.owing.push((seat, clock()));
            return;
        }
        if self.stop(shared, seat, clock)
            && let Some(stopped) = self.stopped.last_mut()
        {
            stopped.hit = match self.order.victim {
                Victim::Holder => shared.holder() == Some(seat),
                Victim::Next => shared.seats[seat].waits_since.load(Acquire) != 0,
            };
        }
    }

    fn stop(&mut self, shared: &SharedPage, seat: usize, clock: &impl Fn() -> Instant) -> bool {
        let name = shared.seats[seat].apic_id.load(Acquire).checked_sub(1);
        let free = self.stopped.iter().all(|stopped| stopped.seat != seat);
        let Some(apic_id) = name.filter(|name| free && self.hands.stop(*name)) else {
            self.tally.missed += 1;
            return false;
        };
        shared.seats[seat].stopped.store(1, Release);
        self.stopped.push(Stopped { seat, apic_id, since: clock(), hit: false });
        true
    }

    /// Lets those go on whose time has passed, and takes what is owed for too long; when to look again.
    pub fn due(&mut self, shared: &SharedPage, clock: &impl Fn() -> Instant) -> Option<Instant> {
        let now = clock();
        while let Some(late) = self.stopped.iter().position(|s| s.since + self.order.time <= now) {
            self.free(late, shared, clock);
        }
        let late = |(_, since): &mut (usize, Instant)| *since + TIMEOUT <= now;
        for (seat, _) in self.owing.extract_if(.., late).collect::<Vec<_>>() {
            let owed = &shared.seats[seat].owed;
            // ORDERING: as in `look`. Fails where the guest pays in this moment, and rings.
            if owed.compare_exchange(OWED, NOTHING, Acquire, Acquire).is_ok() {
                self.tally.impatient += 1;
                self.stop(shared, seat, clock);
            }
        }
        let times = self.stopped.iter().map(|stopped| stopped.since + self.order.time);
        times.chain(self.owing.iter().map(|(_, since)| *since + TIMEOUT)).min()
    }

    fn free(&mut self, index: usize, shared: &SharedPage, clock: &impl Fn() -> Instant) {
        let stopped = self.stopped.swap_remove(index);
        shared.seats[stopped.seat].stopped.store(0, Release);
        self.tally.add(stopped.hit, clock().saturating_duration_since(stopped.since));
        self.hands.go_on(stopped.apic_id);
    }

    /// Everybody goes on (WARDEN-1), and the guest waits for nothing (WARDEN-2).
    pub fn end(&mut self, shared: &SharedPage, clock: &impl Fn() -> Instant) {
        while !self.stopped.is_empty() {
            self.free(0, shared, clock);
        }
        shared.answer.store(shared.request.load(Acquire), Release);
        for seat in &shared.seats {
            seat.owed.store(NOTHING, Release);
        }
    }

    /// Serves a guest whose bell rings through `bells`, until that is closed; `shown` is kept up to date.
    pub fn serve(mut self, shared: &SharedPage, bells: &Receiver<()>, shown: &Arc<Mutex<Tally>>) {
        let clock = Instant::now;
        loop {
            let next = self.due(shared, &clock);
            *shown.lock().unwrap_or_else(PoisonError::into_inner) = self.tally;
            let left = next.map(|next| next.saturating_duration_since(clock()));
            let rung = match left {
                Some(left) => bells.recv_timeout(left),
                None => bells.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match rung {
                Ok(()) => self.answer(shared, &clock),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.end(shared, &clock);
        *shown.lock().unwrap_or_else(PoisonError::into_inner) = self.tally;
    }

    /// The word comes after the bell; where none comes, nothing was rung for.
    fn answer(&mut self, shared: &SharedPage, clock: &impl Fn() -> Instant) {
        let until = Instant::now() + Duration::from_secs(1);
        while !self.look(shared, clock) && Instant::now() < until {
            // A CPU must not be stopped for longer because another one does not run.
            self.due(shared, clock);
            std::thread::sleep(Duration::from_micros(20));
        }
    }
}

/// Lets sleeps of this thread end when they should: the kernel adds 50 µs otherwise.
pub fn sleep_exactly() {
    #[cfg(target_os = "linux")]
    // SAFETY: sets a property of this thread. Where that fails, sleeps are as they were.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1);
    }
}

#[cfg(test)]
mod tests;
