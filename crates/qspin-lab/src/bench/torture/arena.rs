//! The locks under torture, what they protect, and what a thread does there.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, compiler_fence};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;

use crate::bench::affinity::Placement;
use crate::bench::busy::{Pace, busy};
use crate::bench::station::{Padded, count};
use crate::contender::Contender;

use super::watchdog::Queue;
use super::{LEVELS, Outcome, Torment, Violation, signals};

/// The longest critical section, and the longest pause.
const LONGEST_NS: f64 = 200_000.0;
/// The longest critical section of a handler: what it interrupts stands still meanwhile.
const LONGEST_IN_HANDLER_NS: f64 = 20_000.0;
/// One section in so many sleeps.
const SLEEP_ONE_IN: u32 = 50;
/// The longest sleep.
const LONGEST_SLEEP_NS: f64 = 2_000_000.0;
/// One acquisition in so many only tries.
const TRY_ONE_IN: u32 = 4;
/// One section of a handler in so many is interrupted on the spot. From outside a handler is hit
/// rarely: it is short.
const NEST_ONE_IN: u32 = 3;
/// The longest life of a thread.
const LONGEST_LIFE_NS: f64 = 300_000_000.0;

/// A length up to `most` ns: each order of magnitude is as likely as any other, 0 among them.
fn length(random: &mut Rng, most: f64) -> u64 {
    ((most + 1.0).powf(random.f64()) - 1.0) as u64
}

// What a thread is about at a lock.
const OUTSIDE: u32 = 0;
const WAITS: u32 = 1;
const INSIDE: u32 = 2;
const LEAVES: u32 = 3;

/// A lock under torture, whatever its type: what it is put through is compiled once.
trait Victim: Send + Sync {
    /// Acquires the lock, or only `tries` to; does what is to be done `inside`, and releases it. Returns whether it was
    /// acquired.
    fn visit(&self, tries: bool, inside: &mut dyn FnMut()) -> bool;
}

impl<C: Contender> Victim for Padded<C> {
    fn visit(&self, tries: bool, inside: &mut dyn FnMut()) -> bool {
        let Some(held) = (if tries { self.0.try_lock() } else { Some(self.0.lock()) }) else {
            return false;
        };
        inside();
        // SAFETY: `held` was returned by this lock in this thread, above.
        unsafe { self.0.unlock(held) };
        true
    }
}

/// A lock and what it protects, each in a cache line of its own.
struct Level {
    lock: Box<dyn Victim>,
    /// The thread inside, 1 more than its place; 0 for none.
    mark: Padded<AtomicU32>,
    counter: Padded<AtomicU64>,
}

/// What a thread, or its handler at a depth, has done at one lock. No other thread writes it: a
/// handler interrupts other depths only.
#[derive(Default)]
struct Own {
    doing: AtomicU32,
    acquired: AtomicU64,
    by_trying: AtomicU64,
    refused: AtomicU64,
    sleeps: AtomicU64,
    longest_ns: AtomicU64,
    dice: AtomicU64,
}

/// A place for a thread: when one has died the next takes it over.
#[derive(Default)]
struct Place {
    levels: [Own; LEVELS],
    /// How many handlers are under way.
    depth: AtomicU32,
    deepest: AtomicU32,
    signals: AtomicU64,
}

/// Everything that the threads of a torture share.
pub(super) struct Arena {
    levels: Box<[Level]>,
    /// Whether the lock can be acquired by trying, and whether by a handler.
    tries: bool,
    in_handlers: bool,
    places: Box<[Padded<Place>]>,
    placement: Placement,
    pace: Pace,
    ended: AtomicBool,
    /// The first that was not alone: its level and place, 1 more; 0 is none.
    met: AtomicU64,
}

impl Arena {
    /// For fresh locks of kind `C`.
    pub(super) fn new<C: Contender>(torment: &Torment) -> Arc<Self> {
        let level = |_| {
            let mut lock = Box::new(Padded(C::new()));
            lock.0.settle();
            Level { lock, mark: Padded::default(), counter: Padded::default() }
        };
        let mut seeds = Rng::with_seed(torment.seed);
        let places: Box<[Padded<Place>]> =
            (0..torment.threads).map(|_| Padded::default()).collect();
        for own in places.iter().flat_map(|place| &place.0.levels) {
            own.dice.store(seeds.u64(..), Relaxed);
        }
        Arc::new(Self {
            levels: (0..LEVELS).map(level).collect(),
            tries: C::TRIES,
            in_handlers: C::IN_HANDLERS,
            places,
            placement: torment.placement.clone(),
            pace: torment.pace,
            ended: AtomicBool::new(false),
            met: AtomicU64::new(0),
        })
    }

    /// Tells all threads to end.
    pub(super) fn end(&self) {
        self.ended.store(true, Relaxed);
    }

    /// The life of a thread.
    pub(super) fn live(self: &Arc<Self>, place: usize) {
        self.placement.settle(place);
        let visitor = Visitor { arena: self, place };
        signals::while_interruptible(&visitor, || {
            let dice = &self.places[place].0.levels[0].dice;
            let mut random = Rng::with_seed(dice.load(Relaxed));
            let life = Duration::from_nanos(length(&mut random, LONGEST_LIFE_NS));
            dice.store(random.get_seed(), Relaxed);
            let born = Instant::now();
            loop {
                let pause = self.visit(place, 0);
                if self.ended.load(Relaxed) || born.elapsed() >= life {
                    break;
                }
                std::hint::black_box(busy(1, pause));
            }
        });
    }

    /// Comes to the lock of `level` once; returns how many steps to pause before the next time.
    fn visit(&self, place: usize, level: usize) -> u64 {
        let Level { lock, mark, counter } = &self.levels[level];
        let own = &self.places[place].0.levels[level];
        let mut random = Rng::with_seed(own.dice.load(Relaxed));
        let tries = self.tries && random.u32(..TRY_ONE_IN) == 0;
        let sleeps = level == 0 && random.u32(..SLEEP_ONE_IN) == 0;
        let longest = if level == 0 { LONGEST_NS } else { LONGEST_IN_HANDLER_NS };
        let nests = level > 0 && random.u32(..NEST_ONE_IN) == 0;
        let inside = self.pace.steps(length(&mut random, longest));
        let asleep = Duration::from_nanos(length(&mut random, LONGEST_SLEEP_NS));
        let pause = self.pace.steps(length(&mut random, LONGEST_NS));
        own.dice.store(random.get_seed(), Relaxed);

        own.doing.store(WAITS, Relaxed);
        let asked = Instant::now();
        let (mut waited, mut before, mut after) = (0, 0, 0);
        let mine = place as u32 + 1;
        let acquired = lock.visit(tries, &mut || {
            waited = asked.elapsed().as_nanos() as u64;
            own.doing.store(INSIDE, Relaxed);
            count(&own.acquired);

            before = mark.0.load(Relaxed);
            mark.0.store(mine, Relaxed);
            // Read at the beginning and written at the end: whatever comes in between loses a count.
            let seen = counter.0.load(Relaxed);
            if sleeps {
                thread::sleep(asleep);
                count(&own.sleeps);
            } else {
                std::hint::black_box(busy(seen, inside));
            }
            if nests {
                signals::interrupt_myself();
            }
            counter.0.store(seen + 1, Relaxed);
            after = mark.0.load(Relaxed);
            mark.0.store(0, Relaxed);

            own.doing.store(LEAVES, Relaxed);
        });
        if !acquired {
            own.doing.store(OUTSIDE, Relaxed);
            count(&own.refused);
            return pause;
        }
        own.doing.store(OUTSIDE, Relaxed);
        if before != 0 || after != mine {
            let found = (level as u64) << 32 | u64::from(mine);
            // The first is told; those after it are its consequence.
            let _ = self.met.compare_exchange(0, found, Relaxed, Relaxed);
        }
        if tries {
            count(&own.by_trying);
        }
        own.longest_ns.store(own.longest_ns.load(Relaxed).max(waited), Relaxed);
        pause
    }

    /// Whether an owner was seen inside beside another one.
    pub(super) fn met(&self) -> Option<Violation> {
        let found = self.met.load(Relaxed);
        let place = (found as u32).checked_sub(1)? as usize;
        Some(Violation::TwoInside { level: (found >> 32) as usize, place })
    }

    /// How many handlers are under way in the thread at `place`.
    pub(super) fn depth(&self, place: usize) -> u32 {
        self.places[place].0.depth.load(Relaxed)
    }

    fn sum(&self, level: usize, of: impl Fn(&Own) -> &AtomicU64) -> u64 {
        self.places.iter().map(|place| of(&place.0.levels[level]).load(Relaxed)).sum()
    }

    /// What goes on at each lock.
    pub(super) fn queues(&self) -> [Queue; LEVELS] {
        std::array::from_fn(|level| {
            let doing = |what: u32| {
                let at = |place: &&Padded<Place>| place.0.levels[level].doing.load(Relaxed) == what;
                self.places.iter().filter(at).count()
            };
            Queue {
                acquired: self.sum(level, |own| &own.acquired),
                wait: doing(WAITS),
                inside: doing(INSIDE),
                leave: doing(LEAVES),
            }
        })
    }

    /// Fills in what the threads have counted.
    pub(super) fn sum_up(&self, outcome: &mut Outcome) {
        for level in 0..LEVELS {
            let acquired = self.sum(level, |own| &own.acquired);
            outcome.acquisitions += acquired;
            outcome.in_handlers += if level == 0 { 0 } else { acquired };
            outcome.by_trying += self.sum(level, |own| &own.by_trying);
            outcome.refused += self.sum(level, |own| &own.refused);
            outcome.sleeps += self.sum(level, |own| &own.sleeps);
        }
        for place in &self.places {
            outcome.signals += place.0.signals.load(Relaxed);
            outcome.deepest = outcome.deepest.max(place.0.deepest.load(Relaxed));
            for own in &place.0.levels {
                let longest = Duration::from_nanos(own.longest_ns.load(Relaxed));
                outcome.longest = outcome.longest.max(longest);
            }
        }
    }

    /// The locks whose counter is wrong, now that all threads have ended.
    pub(super) fn miscounted(&self) -> Vec<Violation> {
        (0..LEVELS)
            .filter_map(|level| {
                let acquired = self.sum(level, |own| &own.acquired);
                let counted = self.levels[level].counter.0.load(Relaxed);
                (acquired != counted).then_some(Violation::Counts { level, acquired, counted })
            })
            .collect()
    }
}

/// A thread at its place, as its signal handler knows it.
struct Visitor<'a> {
    arena: &'a Arena,
    place: usize,
}

impl signals::Interruptible for Visitor<'_> {
    /// Allocates nothing and waits for nothing but the lock of its depth, which no waiter
    /// for one of a smaller depth holds.
    fn interrupted(&self) {
        let place = &self.arena.places[self.place].0;
        // A handler that comes in between has ended, and left all as it was, when this goes on.
        let depth = place.depth.load(Relaxed) + 1;
        place.depth.store(depth, Relaxed);
        // ORDERING: for the compiler alone, since a handler runs on this thread. One that comes from here on must find
        // the new depth, or it would wait for this one.
        compiler_fence(SeqCst);
        place.signals.fetch_add(1, Relaxed);
        place.deepest.fetch_max(depth, Relaxed);
        if self.arena.in_handlers && (depth as usize) < LEVELS {
            self.arena.visit(self.place, depth as usize);
        }
        // ORDERING: as above: one that comes until here finds the new depth.
        compiler_fence(SeqCst);
        place.depth.store(depth - 1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_of_every_order_of_magnitude() {
        let mut random = Rng::with_seed(1);
        let lengths: Vec<u64> = (0..1000).map(|_| length(&mut random, 200_000.0)).collect();
        for range in [0..1, 1..10, 10..100, 100..1000, 1000..10_000, 10_000..200_001] {
            assert!(lengths.iter().filter(|ns| range.contains(*ns)).count() > 20, "{range:?}");
        }
        assert!(lengths.iter().all(|ns| *ns <= 200_000));
    }
}
