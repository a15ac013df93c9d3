//! The distribution of loads.
//!
//! | what | drawn |
//! |---|---|
//! | threads | log-uniform from 2 to 16 times the CPUs |
//! | critical | in one cell of 8 nothing; else log-uniform from 20 ns to 100 µs |
//! | outside | in one cell of 4 nothing; else as long as critical (at least 20 ns) times log-uniform 0.1 to 20 |
//! | lengths | fixed, exponential or tailed, a third each |
//! | locks | 1 in half of the cells, 4 or 64 in a quarter each |
//! | lines | 1 to 4 |
//! | reads, of reader-writer locks | writes log-uniform from one in a thousand to all |
//!
//! Every fifth cell is *disturbed*, in one of five ways: hogs (from 1 to twice the CPUs, threads of the process
//! or processes), a quota (a quarter to nine tenths of the CPUs), holders that yield, or that sleep, in one
//! section of 10 to 1000 (log-uniform), or a load that changes every 100 ms: to a critical section that is a
//! quarter to four times as long (at least 20 ns), and an outside that is drawn anew.
//!
//! # Invariants
//! * **DRAW-1** A cell is a function of the seed, its number and the number of CPUs: how many cells are asked
//!   for, and which of them, changes none.

use std::time::Duration;

use crate::bench::load::{Holder, Load};
use crate::bench::workload::varied::Spread;

/// Every so many cells, one is disturbed.
const DISTURBED: u32 = 5;

/// Threads are at most so many times the CPUs.
const MAX_TIMES: usize = 16;

/// Which cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Loads {
    /// Quiet and disturbed ones, four to one.
    #[default]
    All,
    /// Without hogs, quotas, holders that leave, or changes.
    Quiet,
    /// With one of them.
    Disturbed,
}

impl Loads {
    /// The numbers of the first `count` such cells; they begin at 1.
    pub fn numbers(self, count: u32) -> impl Iterator<Item = u32> {
        let is_wanted = move |number: &u32| match self {
            Self::All => true,
            Self::Quiet => !is_disturbed(*number),
            Self::Disturbed => is_disturbed(*number),
        };
        (1..).filter(is_wanted).take(count as usize)
    }
}

/// Whether the cell of this number is disturbed; 0, which is never drawn, is not.
pub fn is_disturbed(number: u32) -> bool {
    number > 0 && number.is_multiple_of(DISTURBED)
}

/// A drawn cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Drawn {
    /// Its number.
    pub number: u32,
    /// How many threads.
    pub threads: usize,
    /// Processes that spin beside them.
    pub hogs: usize,
    /// What the threads do.
    pub load: Load,
}

impl Drawn {
    /// The options of `qspin bench` that ask for it.
    pub fn options(&self) -> String {
        let hogs = match self.hogs {
            0 => String::new(),
            hogs => format!(" --hogs {hogs}"),
        };
        format!("--threads {} {}{hogs}", self.threads, self.load.options())
    }

    /// How long an operation of one thread takes that never waits, on average over its lengths.
    pub fn cycle(&self) -> Duration {
        let one = |(critical, outside): (Duration, Duration)| critical + outside;
        let (first, then) = ((self.load.critical, self.load.outside), self.load.then);
        one(first).max(then.map_or(Duration::ZERO, one)).mul_f64(self.load.lengths.mean())
    }
}

/// Draws cell `number` of `seed` for a machine of so many CPUs; `shared`, for reader-writer locks.
pub fn draw(seed: u64, number: u32, cpus: usize, shared: bool) -> Drawn {
    /// Odd, with bits everywhere: neighbours in seed and number have nothing in common.
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut dice = Dice(fastrand::Rng::with_seed(
        (seed ^ SPREAD).wrapping_mul(SPREAD) ^ u64::from(number).wrapping_mul(SPREAD),
    ));
    // What is not used is drawn all the same: it moves nothing that comes after it.
    let threads = dice.log_uniform(2.0, (MAX_TIMES * cpus) as f64).round() as usize;
    let critical = dice.critical();
    let outside = dice.outside(critical);
    let lengths = dice.one_of([Spread::Fixed, Spread::Exponential, Spread::Tailed]);
    let locks = dice.one_of([1, 1, 4, 64]);
    let lines = dice.one_of([1, 2, 3, 4]);
    let writes = (1000.0 * dice.log_uniform(0.001, 1.0)).round().clamp(1.0, 1000.0) as u32;
    let mut drawn = Drawn {
        number,
        threads,
        hogs: 0,
        load: Load {
            lengths,
            locks,
            lines: if shared { 1 } else { lines },
            mix: shared.then_some((1000 - writes, writes)),
            ..Load::of(critical, outside)
        },
    };
    if is_disturbed(number) {
        dice.disturb(&mut drawn, cpus);
    }
    drawn
}

struct Dice(fastrand::Rng);

impl Dice {
    fn log_uniform(&mut self, least: f64, most: f64) -> f64 {
        least * (most / least).powf(self.0.f64())
    }

    fn one_of<T: Copy, const N: usize>(&mut self, values: [T; N]) -> T {
        values[self.0.usize(..N)]
    }

    fn critical(&mut self) -> Duration {
        let (none, ns) = (self.0.u32(..8) == 0, self.log_uniform(SHORTEST_NS, 100_000.0));
        if none { Duration::ZERO } else { rounded(ns) }
    }

    fn outside(&mut self, critical: Duration) -> Duration {
        let (none, times) = (self.0.u32(..4) == 0, self.log_uniform(0.1, 20.0));
        let beside = (critical.as_nanos() as f64).max(SHORTEST_NS);
        if none { Duration::ZERO } else { rounded(beside * times) }
    }

    fn disturb(&mut self, drawn: &mut Drawn, cpus: usize) {
        let one_in = self.log_uniform(10.0, 1000.0).round() as u32;
        let load = &mut drawn.load;
        match self.0.u32(..5) {
            0 => {
                let hogs = self.0.usize(1..=2 * cpus);
                if self.0.bool() {
                    load.hogs_inside = hogs;
                } else {
                    drawn.hogs = hogs;
                }
            }
            1 => {
                let share = 0.25 + 0.65 * self.0.f64();
                load.quota = Some((share * cpus as f64 * 20.0).round() / 20.0);
            }
            2 => load.holder = Some((Holder::Yields, one_in)),
            3 => load.holder = Some((Holder::Sleeps, one_in)),
            _ => {
                let ns = (load.critical.as_nanos() as f64).max(SHORTEST_NS);
                let critical = rounded((ns * self.log_uniform(0.25, 4.0)).max(SHORTEST_NS));
                load.then = Some((critical, self.outside(critical)));
            }
        }
    }
}

/// The shortest critical section that is any.
const SHORTEST_NS: f64 = 20.0;

/// To three digits: what is shown is what was measured.
fn rounded(ns: f64) -> Duration {
    let unit = 10_f64.powf((ns.log10().floor() - 2.0).max(0.0));
    Duration::from_nanos(((ns / unit).round() * unit) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draw_1_the_first_cells_of_seed_1_on_two_cpus() {
        let first = FIRST.lines().enumerate();
        for (index, options) in first {
            assert_eq!(draw(1, index as u32 + 1, 2, false).options(), options.trim());
        }
        // The same threads and lengths, and a share of writes.
        assert_eq!(
            draw(1, 2, 2, true).options(),
            "--threads 5 --workload rw --ratio 996:4 --critical 71900ns --outside 29800ns --lengths tailed"
        );
    }

    const FIRST: &str = "--threads 16 --critical 97ns --outside 0ns --lines 3
        --threads 5 --critical 71900ns --outside 29800ns --lengths tailed --lines 2
        --threads 3 --critical 1130ns --outside 1920ns --lines 3
        --threads 17 --critical 289ns --outside 177ns --lengths exponential --lock-count 4 --lines 3
        --threads 3 --critical 23ns --outside 301ns --lengths tailed --lock-count 4 --lines 2 --phases 20ns/0ns
        --threads 8 --critical 92ns --outside 435ns --lengths exponential --lock-count 64 --lines 4
        --threads 15 --critical 7760ns --outside 6720ns --lock-count 4 --lines 4
        --threads 15 --critical 77ns --outside 0ns --lengths tailed --lines 2
        --threads 11 --critical 1790ns --outside 11700ns
        --threads 8 --critical 55ns --outside 338ns --lengths tailed --lines 2 --holder yields/14";

    #[test]
    fn everything_is_in_its_range_and_all_kinds_come() {
        let cells: Vec<Drawn> =
            Loads::All.numbers(2000).map(|number| draw(3, number, 4, false)).collect();
        let ns = |time: Duration| time.as_nanos() as f64;
        for cell in &cells {
            assert!((2..=64).contains(&cell.threads), "{cell:?}");
            let load = &cell.load;
            let critical = ns(load.critical);
            assert!(critical == 0.0 || (20.0..=100_000.0).contains(&critical), "{cell:?}");
            let times = ns(load.outside) / critical.max(20.0);
            assert!(times == 0.0 || (0.095..=20.1).contains(&times), "{cell:?}");
            assert!([1, 4, 64].contains(&load.locks) && (1..=4).contains(&load.lines));
            let disturbances = [
                cell.hogs > 0,
                load.hogs_inside > 0,
                load.quota.is_some(),
                load.holder.is_some(),
                load.then.is_some(),
            ];
            let count = disturbances.iter().filter(|there| **there).count();
            assert_eq!(count, usize::from(is_disturbed(cell.number)), "{cell:?}");
            assert!(load.holder.is_none_or(|(_, one_in)| (10..=1000).contains(&one_in)));
            assert!(load.quota.is_none_or(|cpus| (1.0..=3.6).contains(&cpus)), "{cell:?}");
            assert!(cell.hogs.max(load.hogs_inside) <= 8 && load.mix.is_none());
        }
        let share = |is: &dyn Fn(&Drawn) -> bool| {
            cells.iter().filter(|cell| is(cell)).count() as f64 / cells.len() as f64
        };
        let about = |found: f64, wanted: f64| assert!((found - wanted).abs() < 0.04, "{found}");
        about(share(&|cell| cell.load.critical.is_zero()), 1.0 / 8.0);
        about(share(&|cell| cell.load.outside.is_zero()), 1.0 / 4.0);
        about(share(&|cell| cell.load.lengths == Spread::Tailed), 1.0 / 3.0);
        about(share(&|cell| cell.load.locks == 1), 0.5);
        about(share(&|cell| cell.load.then.is_some()), 1.0 / 25.0);
        // Half of the logarithms: 2 to 64 threads, and 20 ns to 100 µs.
        about(share(&|cell| cell.threads <= 11), 0.5);
        about(share(&|cell| ns(cell.load.critical) <= 1414.0), 0.5 + 0.5 / 8.0);
    }

    #[test]
    fn quiet_and_disturbed_cells_keep_their_numbers() {
        let numbers = |loads: Loads| loads.numbers(6).collect::<Vec<_>>();
        assert_eq!(numbers(Loads::All), [1, 2, 3, 4, 5, 6]);
        assert_eq!(numbers(Loads::Quiet), [1, 2, 3, 4, 6, 7]);
        assert_eq!(numbers(Loads::Disturbed), [5, 10, 15, 20, 25, 30]);
    }

    #[test]
    fn lengths_have_three_digits() {
        for (ns, shown) in [(20.4, 20), (123.4, 123), (1234.0, 1230), (98_765.0, 98_800)] {
            assert_eq!(rounded(ns).as_nanos(), shown);
        }
    }
}
