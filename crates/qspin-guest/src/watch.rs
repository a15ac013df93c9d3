//! What must end: a time limit, and what is said when it has passed.

use core::fmt::Write;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU32, AtomicU64};

use qspin_core::locks::LOCKS;

use crate::hardware::cpu::{self, Cpu, HOLDS};
use crate::hardware::entry::TIMER;
use crate::hardware::{apic, clock, exit, serial};
use crate::options::TESTS;

/// When; 0 for never.
static DEADLINE: AtomicU64 = AtomicU64::new(0);
/// What is running: a test's place in the list, plus 1; 0 for a measurement.
static TEST: AtomicU32 = AtomicU32::new(0);
static SAID: AtomicU32 = AtomicU32::new(0);

/// From now on everything ends within `ms`, or hangs. `test`: its place in the list, plus 1.
pub fn limit(ms: u64, test: u32) {
    TEST.store(test, Relaxed);
    DEADLINE.store(clock::now_ns() + ms * 1_000_000, Relaxed);
}

/// Nothing is waited for any more.
pub fn end() {
    DEADLINE.store(0, Relaxed);
}

/// Time that the user is willing to wait, in which the machine runs: a standstill does not count.
#[derive(Debug)]
pub struct Timeout {
    end: u64,
    last: u64,
}

impl Timeout {
    /// From now on.
    #[must_use]
    pub fn new(ns: u64) -> Self {
        let now = clock::now_ns();
        Self { end: now + ns, last: now }
    }

    /// Whether it has ended. To be asked again and again.
    pub fn is_over(&mut self) -> bool {
        self.is_over_at(clock::now_ns())
    }

    fn is_over_at(&mut self, now: u64) -> bool {
        let gap = now.saturating_sub(self.last);
        if gap > STANDSTILL_NS {
            self.end += gap;
        }
        self.last = now;
        now > self.end
    }
}

/// Waits until `holds`, at most so long; returns whether it does.
pub fn within(ms: u64, mut holds: impl FnMut() -> bool) -> bool {
    let mut timeout = Timeout::new(ms * 1_000_000);
    while !holds() {
        if timeout.is_over() {
            return holds();
        }
        core::hint::spin_loop();
    }
    true
}

/// A gap between two ticks in which no CPU can have done anything: the whole machine stood still.
const STANDSTILL_NS: u64 = 1_000_000_000;
/// Time of the last tick.
static TICKED: AtomicU64 = AtomicU64::new(0);
/// When an NMI found the deadline passed, and not moved; 0 if none has.
static SUSPECTED: AtomicU64 = AtomicU64::new(0);

/// Nanoseconds between two looks of the first CPU.
const TICK_NS: u32 = 10_000_000;

/// Lets the timer of the first CPU tick, from now on.
pub fn begin() {
    apic::timer_once(TIMER, TICK_NS);
}

/// Everybody's timer. The first CPU's ends the guest where the time has passed. Time in which the host ran
/// none of this does not count.
pub fn tick() {
    let me = cpu::this();
    me.dozes.store(0, Relaxed);
    if me.number() != 0 {
        return;
    }
    begin();
    let now = clock::now_ns();
    let gap = now - TICKED.swap(now, Relaxed).min(now);
    if gap > STANDSTILL_NS && DEADLINE.load(Relaxed) != 0 {
        DEADLINE.fetch_add(gap, Relaxed);
    }
    if is_over(now) {
        hang();
    }
}

/// Every NMI: the button of the machine, for a guest whose interrupts are off; pressed twice. Most NMIs
/// are kicks, and the first of them after a standstill may come before the tick.
pub fn look() {
    let now = clock::now_ns();
    if !is_over(now) {
        SUSPECTED.store(0, Relaxed);
        return;
    }
    let since = SUSPECTED.load(Relaxed);
    if since == 0 {
        SUSPECTED.store(now, Relaxed);
    } else if now > since + STANDSTILL_NS {
        hang();
    }
}

fn is_over(now: u64) -> bool {
    let deadline = DEADLINE.load(Relaxed);
    deadline != 0 && now > deadline
}

fn hang() {
    if SAID.swap(1, Relaxed) == 0 {
        say();
        exit::exit(exit::HANG);
    }
}

/// Which CPU waits for which lock. The line begins anew: another may have been begun.
fn say() {
    let test = TESTS.get((TEST.load(Relaxed) as usize).wrapping_sub(1)).unwrap_or(&"bench");
    let of = |cpu: &'static Cpu| {
        cpu.waits.iter().enumerate().filter_map(|(level, state)| {
            let state = state.load(Relaxed);
            let lock = LOCKS.get(((state & (HOLDS - 1)) as usize).wrapping_sub(1))?.name;
            Some((cpu.number(), LEVELS[level], lock, state & HOLDS != 0))
        })
    };
    // There is nowhere to report a port that fails.
    let _ = serial::Port.write_str("\n");
    serial::line("hang", |line| {
        line.text("test", test)
            .objects("waits", cpu::online().flat_map(of), |(cpu, level, lock, holds), line| {
                line.number("cpu", cpu).text("level", level).text("lock", lock).flag("holds", holds)
            })
            .end();
    });
}

const LEVELS: [&str; 4] = ["task", "interrupt", "nested interrupt", "NMI"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standstill_does_not_end_a_timeout_and_time_does() {
        let mut timeout = Timeout { end: 3 * STANDSTILL_NS, last: 0 };
        assert!(!timeout.is_over_at(STANDSTILL_NS));
        assert!(!timeout.is_over_at(100 * STANDSTILL_NS), "no CPU ran");
        assert!(!timeout.is_over_at(101 * STANDSTILL_NS));
        assert!(!timeout.is_over_at(102 * STANDSTILL_NS));
        assert!(timeout.is_over_at(102 * STANDSTILL_NS + 1));
    }
}
