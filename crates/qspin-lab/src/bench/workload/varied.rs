//! Loads that no single pair of lengths describes: lengths that vary, several locks, holders that now and
//! then leave their CPU, and a load that changes while it runs.
//!
//! Nothing of that is decided in the loop that is measured. Before it begins, each thread writes a *script*:
//! so many steps, each with a length inside, a length outside and the lock to take. In the loop it reads the
//! next step: twelve bytes, one after the other, and round again. Lengths are not drawn one by one but taken
//! at the middles of equal shares of their distribution and shuffled: each script has the mean that it should
//! have, and each thread another order. All contenders of a round play the same scripts.
//!
//! # Invariants
//! * **SCRIPT-1** The lengths of a script are those of its distribution, whatever the seed; only the order
//!   is drawn.

use std::time::Duration;

use super::lengths::Lines;

/// Steps of a script. Small enough for a first-level cache, and a multiple of a hundred: one length in a
/// hundred is long.
pub const STEPS: usize = 1000;

/// How long a load stays the same where it changes.
pub const CHANGE: Duration = Duration::from_millis(100);

/// One length in so many is long where they are tailed.
const LONG_ONE_IN: usize = 100;
/// And so many times as long as the others.
const LONG_TIMES: f64 = 50.0;

/// How lengths vary around the one that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Spread {
    /// Not at all.
    #[default]
    Fixed,
    /// Exponentially distributed, with that mean.
    Exponential,
    /// One in a hundred is 50 times as long as the others.
    Tailed,
}

impl Spread {
    /// Its name in options and rows.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Exponential => "exponential",
            Self::Tailed => "tailed",
        }
    }

    /// The mean over the length that was asked for.
    pub fn mean(self) -> f64 {
        match self {
            Self::Fixed | Self::Exponential => 1.0,
            Self::Tailed => 1.0 + (LONG_TIMES - 1.0) / LONG_ONE_IN as f64,
        }
    }

    /// Length number `index` of [`STEPS`], ascending, as a multiple of the one that was asked for.
    fn at(self, index: usize) -> f64 {
        match self {
            Self::Fixed => 1.0,
            Self::Exponential => -(1.0 - (index as f64 + 0.5) / STEPS as f64).ln(),
            Self::Tailed if index >= STEPS - STEPS / LONG_ONE_IN => LONG_TIMES,
            Self::Tailed => 1.0,
        }
    }
}

/// Lengths in steps of [`busy`](crate::bench::busy::busy).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pair {
    /// Under the lock.
    pub critical: u64,
    /// Between two acquisitions.
    pub outside: u64,
}

/// How a holder leaves its CPU: what a page fault, a write to a log or a full pipe does to a section of any
/// program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leave {
    /// It sleeps for this many nanoseconds (and as long again, or more, as the kernel's timers need).
    Sleep(u32),
    /// It yields to what is ready to run.
    Yield,
}

impl Leave {
    fn leave(self) {
        match self {
            Self::Sleep(ns) => std::thread::sleep(Duration::from_nanos(u64::from(ns))),
            Self::Yield => std::thread::yield_now(),
        }
    }
}

/// Holders that leave their CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leaving {
    /// How.
    pub how: Leave,
    /// In one section of so many of each thread.
    pub one_in: u32,
}

/// What varies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Varied {
    /// The lengths.
    pub lengths: Pair,
    /// The lengths to which the load changes every [`CHANGE`], and back.
    pub then: Option<Pair>,
    /// How lengths vary.
    pub spread: Spread,
    /// How many locks the threads take, each as often.
    pub locks: u32,
    /// Shared cache lines written under each lock.
    pub lines: usize,
    /// Holders that leave their CPU.
    pub leaving: Option<Leaving>,
    /// Seed of the order of each script.
    pub seed: u64,
}

impl Varied {
    /// Fresh data of each lock.
    pub fn shared(&self) -> impl Iterator<Item = Lines> {
        (0..self.locks.max(1)).map(|_| Lines::new(self.lines))
    }

    /// When the load changes, if it does.
    pub fn changes_every(&self) -> Option<Duration> {
        self.then.map(|_| CHANGE)
    }
}

/// One operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Steps of work under the lock.
    pub critical: u32,
    /// Steps of work between this acquisition and the next.
    pub outside: u32,
    /// Index of the lock.
    pub lock: u32,
}

/// What a thread does, step by step.
#[derive(Debug)]
pub struct Script {
    /// Those of each of the loads between which it changes, one load after the other.
    steps: Box<[Step]>,
    at: usize,
    leaving: Option<Leave>,
    one_in: u32,
    sections: u32,
}

impl Script {
    /// The script of thread `index` of `threads`.
    pub fn new(varied: &Varied, index: usize, threads: usize) -> Self {
        let mut random = fastrand::Rng::with_seed(varied.seed ^ (index as u64 + 1));
        let mut steps = Vec::with_capacity(2 * STEPS);
        for lengths in [Some(varied.lengths), varied.then].into_iter().flatten() {
            let critical = shuffled(lengths.critical, varied.spread, &mut random);
            let outside = shuffled(lengths.outside, varied.spread, &mut random);
            let mut locks: Vec<u32> =
                (0..STEPS as u32).map(|step| step % varied.locks.max(1)).collect();
            random.shuffle(&mut locks);
            let all = critical.into_iter().zip(outside).zip(locks);
            steps.extend(all.map(|((critical, outside), lock)| Step { critical, outside, lock }));
        }
        let one_in = varied.leaving.map_or(u32::MAX, |leaving| leaving.one_in);
        Self {
            steps: steps.into(),
            at: 0,
            leaving: varied.leaving.map(|leaving| leaving.how),
            one_in,
            // Threads do not leave all at once.
            sections: (u64::from(one_in) * index as u64 / threads.max(1) as u64) as u32,
        }
    }

    /// The next step of load `turn`: 0, or 1 where the load changes.
    #[inline(always)]
    pub fn next(&mut self, turn: usize) -> Step {
        let step = self.steps[turn * STEPS + self.at];
        self.at += 1;
        if self.at == STEPS {
            self.at = 0;
        }
        step
    }

    /// Leaves the CPU, where this is the section in which the holder does.
    #[inline(always)]
    pub fn leave_now_and_then(&mut self) {
        self.sections = self.sections.wrapping_add(1);
        if self.sections >= self.one_in {
            self.leave();
        }
    }

    #[cold]
    fn leave(&mut self) {
        self.sections = 0;
        if let Some(how) = self.leaving {
            how.leave();
        }
    }
}

/// The lengths of a script in an order of its own.
fn shuffled(length: u64, spread: Spread, random: &mut fastrand::Rng) -> Vec<u32> {
    let steps = |index| (length as f64 * spread.at(index)).round().min(f64::from(u32::MAX)) as u32;
    let mut lengths: Vec<u32> = (0..STEPS).map(steps).collect();
    random.shuffle(&mut lengths);
    lengths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn varied(spread: Spread) -> Varied {
        let lengths = Pair { critical: 1000, outside: 3000 };
        Varied { lengths, spread, locks: 4, lines: 1, seed: 7, ..Varied::default() }
    }

    fn all(varied: &Varied, index: usize, turn: usize) -> Vec<Step> {
        let mut script = Script::new(varied, index, 4);
        (0..STEPS).map(|_| script.next(turn)).collect()
    }

    #[test]
    fn script_1_lengths_are_those_of_their_distribution() {
        for spread in [Spread::Fixed, Spread::Exponential, Spread::Tailed] {
            let steps = all(&varied(spread), 0, 0);
            let mean = |of: fn(&Step) -> u32| {
                steps.iter().map(|step| f64::from(of(step))).sum::<f64>() / STEPS as f64
            };
            for (found, asked) in
                [(mean(|step| step.critical), 1000.0), (mean(|step| step.outside), 3000.0)]
            {
                let wanted = asked * spread.mean();
                assert!((found / wanted - 1.0).abs() < 0.002, "{spread:?}: {found} for {wanted}");
            }
            for lock in 0..4 {
                assert_eq!(steps.iter().filter(|step| step.lock == lock).count(), STEPS / 4);
            }
        }
        let long = |step: &&Step| step.critical == 50_000;
        assert_eq!(all(&varied(Spread::Tailed), 0, 0).iter().filter(long).count(), 10);
        let mut lengths: Vec<u32> =
            all(&varied(Spread::Exponential), 1, 0).iter().map(|step| step.critical).collect();
        lengths.sort_unstable();
        assert_eq!((lengths[0], lengths[STEPS / 2], lengths[STEPS - 1]), (1, 694, 7601));
    }

    #[test]
    fn a_script_is_played_again_and_each_thread_and_seed_has_its_own() {
        let varied = varied(Spread::Exponential);
        let mut script = Script::new(&varied, 0, 4);
        let twice: Vec<Step> = (0..2 * STEPS).map(|_| script.next(0)).collect();
        assert_eq!(twice[..STEPS], twice[STEPS..]);
        assert_eq!(twice[..STEPS], all(&varied, 0, 0)[..]);
        assert_ne!(twice[..STEPS], all(&varied, 1, 0)[..]);
        assert_ne!(twice[..STEPS], all(&Varied { seed: 8, ..varied }, 0, 0)[..]);
    }

    #[test]
    fn a_load_that_changes_has_the_lengths_of_both() {
        let then = Some(Pair { critical: 5, outside: 6 });
        let changing = Varied { then, ..varied(Spread::Fixed) };
        assert!(
            all(&changing, 2, 0).iter().all(|step| (step.critical, step.outside) == (1000, 3000))
        );
        assert!(all(&changing, 2, 1).iter().all(|step| (step.critical, step.outside) == (5, 6)));
        assert_eq!(
            (changing.changes_every(), varied(Spread::Fixed).changes_every()),
            (Some(CHANGE), None)
        );
    }
}
