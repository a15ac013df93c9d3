//! What a run measures, and in which order.

use std::collections::BTreeMap;
use std::time::Duration;

use qspin::tuning::Tuning;
use serde_json::Value;

use crate::contender::catalog::{EMPTY, Engine, Lock};
use crate::remedy::Remedy;
use crate::tune;

use super::affinity::Placement;
use super::engine::MutexWork;
use super::rw_station::Mix;
use super::workload::locktorture::Locktorture;
use super::workload::varied::Varied;

/// The work of a cell.
#[derive(Debug, Clone, Copy)]
pub enum Job {
    /// For mutual exclusion locks.
    Mutex(MutexWork),
    /// For reader-writer locks.
    Rw(Mix),
}

impl Job {
    /// The same work with other dice: the same ones again would be one round measured often.
    pub fn in_round(self, round: usize) -> Self {
        /// Odd, so that every round has its own; with bits everywhere, since threads differ in
        /// the low ones.
        const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
        let mixed = |seed: u64| seed ^ (round as u64).wrapping_mul(SPREAD);
        let again = |work: Varied| Varied { seed: mixed(work.seed), ..work };
        match self {
            Self::Mutex(MutexWork::Locktorture(work)) => {
                Self::Mutex(MutexWork::Locktorture(Locktorture { seed: mixed(work.seed), ..work }))
            }
            Self::Mutex(MutexWork::Varied(work)) => Self::Mutex(MutexWork::Varied(again(work))),
            Self::Rw(mix) => Self::Rw(Mix { work: again(mix.work), ..mix }),
            same => same,
        }
    }

    /// How long the load stays the same, where it changes.
    pub fn changes_every(self) -> Option<Duration> {
        match self {
            Self::Mutex(MutexWork::Varied(work)) | Self::Rw(Mix { work, .. }) => {
                work.changes_every()
            }
            Self::Mutex(_) => None,
        }
    }
}

/// A phase in which a load that changes is each of its two as long.
fn whole_changes(phase: Duration, every: Option<Duration>) -> Duration {
    let Some(every) = every else { return phase };
    let both = 2 * every;
    both * phase.as_nanos().div_ceil(both.as_nanos()) as u32
}

/// A workload with its parameters, as rows show it.
#[derive(Debug, Clone)]
pub struct Setting {
    /// Name of the workload.
    pub workload: &'static str,
    /// What the workload adds to the key.
    pub params: BTreeMap<String, Value>,
    /// Length of the critical section, ns; 0 where the workload decides.
    pub critical_ns: f64,
    /// Length of the work between two critical sections, ns; 0 where the workload decides.
    pub outside_ns: f64,
    /// Shared cache lines written in the critical section.
    pub lines: u32,
    /// What the threads do.
    pub job: Job,
    /// What stands around them.
    pub beside: Beside,
}

/// What a setting puts around its threads, beside the hogs of [`Cell::hogs`].
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Beside {
    /// Threads of this process that spin.
    pub hogs: usize,
    /// So many CPUs' time is all that the process may use.
    pub quota_cpus: Option<f64>,
}

/// In which form a lock takes part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variant {
    /// The tunables that are in force while it is measured.
    pub tuning: &'static Tuning,
    /// Whether it is measured in the form that counts its events.
    pub counting: bool,
    /// The step of a series that it is, as rows name it.
    pub step: Option<&'static str>,
    /// The remedy against an owner that does not run that it is, as rows name it.
    pub remedy: Option<Remedy>,
}

impl Default for Variant {
    fn default() -> Self {
        Self { tuning: &Tuning::DEFAULT, counting: false, step: None, remedy: None }
    }
}

impl Variant {
    /// What rows say of it.
    pub fn tune(&self) -> BTreeMap<String, Value> {
        let mut tune = tune::away_from_default(self.tuning);
        if self.counting {
            tune.insert("statistics".to_owned(), "on".into());
        }
        tune
    }
}

/// One measurement of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// Index of the lock in [`Plan::locks`].
    pub lock: usize,
    /// In which form the lock takes part.
    pub variant: Variant,
    /// How many threads.
    pub threads: usize,
    /// Index of the setting in [`Plan::settings`].
    pub setting: usize,
    /// Hogs beside the threads.
    pub hogs: usize,
    /// Whether it becomes a row; the others are measured for what they say about the loop.
    pub shown: bool,
}

/// Everything that a run measures.
pub struct Plan {
    /// The contenders; a lock that takes part in several forms is here as often.
    pub locks: Vec<Lock>,
    /// The workloads.
    pub settings: Vec<Setting>,
    /// Every measurement of a round, in the order of the rows.
    pub cells: Vec<Cell>,
    /// Where the threads run.
    pub placement: Placement,
    /// Name of the pinning scenario.
    pub pin: String,
    /// Rounds that were asked for.
    pub rounds: usize,
    /// Length of a phase.
    pub phase: Duration,
    /// The least that a phase gives to each thread where threads outnumber CPUs and take turns.
    pub turn: Duration,
    /// Whether waits are measured.
    pub waits: bool,
    /// The run of its own that tells how fair a lock is, where there is one.
    pub fairness: Option<Fairness>,
    /// Whether a round measures all contenders of a cell one after the other, so that those that are
    /// compared have met the same moments of the machine.
    pub cell_by_cell: bool,
    /// The longest phase in which events are counted after the rounds.
    pub counting: Duration,
    /// No round is begun that would end later than this; the first ones, without which there is
    /// no interval, have a reserve beyond it.
    pub budget: Option<Duration>,
    /// Seed of the order.
    pub seed: u64,
}

/// A run of its own for each cell: long enough that every thread has had many turns.
#[derive(Debug, Clone)]
pub struct Fairness {
    /// How long it lasts.
    pub length: Duration,
    /// The locks that have one, by name.
    pub locks: Vec<&'static str>,
}

/// How many hogs stand beside a number of threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HogsBeside {
    /// As many.
    Hogs(usize),
    /// So many that hogs and threads are this many times the CPUs; none at 1x, where only the
    /// threads run.
    Overcommit(u32),
}

impl HogsBeside {
    /// Hogs beside `threads` threads on `cpus` CPUs.
    pub fn hogs(self, threads: usize, cpus: usize) -> usize {
        match self {
            Self::Hogs(hogs) => hogs,
            Self::Overcommit(1) => 0,
            Self::Overcommit(times) => (times as usize * cpus).saturating_sub(threads),
        }
    }
}

/// Every measurement of a round: each lock at each number of threads under each setting, and the
/// empty lock at one thread, which shows what the loop costs.
pub fn cells(
    locks: &mut Vec<Lock>,
    settings: &[Setting],
    threads: &[usize],
    hogs: impl Fn(usize) -> usize,
    empty: Option<Lock>,
) -> Vec<Cell> {
    let shown = locks.len();
    if let Some(empty) = empty
        && !locks.iter().any(|lock| lock.name == EMPTY)
    {
        locks.push(empty);
    }
    let mut cells = Vec::new();
    for (setting, of) in settings.iter().enumerate() {
        let cell = |index: usize, threads: usize| {
            let lock: &Lock = &locks[index];
            let fits = matches!(
                (lock.engine, of.job),
                (Engine::Mutex(_), Job::Mutex(_)) | (Engine::Rw(_), Job::Rw(_))
            );
            (fits && (threads == 1 || !lock.is_for_one_thread())).then(|| Cell {
                lock: index,
                variant: Variant::default(),
                threads,
                setting,
                hogs: hogs(threads),
                shown: index < shown,
            })
        };
        for &threads in threads {
            cells.extend((0..locks.len()).filter_map(|index| cell(index, threads)));
        }
        if !threads.contains(&1) {
            cells.extend((shown..locks.len()).filter_map(|index| cell(index, 1)));
        }
    }
    cells
}

/// The order of the measurements in each round: shuffled by the seed and nothing else.
pub fn orders(seed: u64, cells: usize, rounds: usize) -> Vec<Vec<usize>> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..rounds)
        .map(|_| {
            let mut order: Vec<usize> = (0..cells).collect();
            random.shuffle(&mut order);
            order
        })
        .collect()
}

impl Plan {
    /// Whether nothing stands around the threads of any cell.
    pub fn is_undisturbed(&self) -> bool {
        let alone = |setting: &Setting| setting.beside == Beside::default();
        self.cells.iter().all(|cell| cell.hogs == 0) && self.settings.iter().all(alone)
    }

    /// Length of a phase with `threads` threads.
    pub fn phase_with(&self, threads: usize) -> Duration {
        let cpus = self.placement.cpus();
        if threads <= cpus {
            return self.phase;
        }
        self.phase.max(self.turn.mul_f64(threads as f64 / cpus as f64))
    }

    /// Length of a cell's phase: under a quota it sees ten of its periods, or what it found would be
    /// whether a period ended in it.
    pub fn phase_of(&self, cell: Cell) -> Duration {
        let job = self.settings[cell.setting].job;
        let phase = whole_changes(self.phase_with(cell.threads), job.changes_every());
        match self.settings[cell.setting].beside.quota_cpus {
            Some(_) => phase.max(Duration::from_secs(1)),
            None => phase,
        }
    }

    /// The order of the measurements in each round.
    pub fn orders(&self) -> Vec<Vec<usize>> {
        if self.cell_by_cell {
            return (0..self.rounds as u64)
                .map(|round| self.by_cells(self.seed.wrapping_add(round)))
                .collect();
        }
        orders(self.seed, self.cells.len(), self.rounds)
    }

    /// The measurements, those together that are compared with each other, shuffled within and without.
    pub fn by_cells(&self, seed: u64) -> Vec<usize> {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut groups: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
        for (index, cell) in self.cells.iter().enumerate() {
            groups.entry((cell.setting, cell.threads)).or_default().push(index);
        }
        let mut groups: Vec<Vec<usize>> = groups.into_values().collect();
        random.shuffle(&mut groups);
        for group in &mut groups {
            random.shuffle(group);
        }
        groups.concat()
    }

    /// A round's order as the machine row shows it.
    pub fn show_order(&self, order: &[usize]) -> String {
        let names: Vec<String> = order
            .iter()
            .map(|&index| {
                let cell = self.cells[index];
                let name = self.short_name(cell);
                if self.settings.len() == 1 {
                    format!("{name}@{}", cell.threads)
                } else {
                    format!("{name}@{}#{}", cell.threads, cell.setting)
                }
            })
            .collect();
        names.join(" ")
    }

    /// The lock of a cell and in which form it takes part, without blanks: `native`,
    /// `paravirt:kick_ahead=2`.
    pub fn short_name(&self, cell: Cell) -> String {
        let name = self.locks[cell.lock].name;
        if let Some(step) = cell.variant.step {
            return format!("{name}:{step}");
        }
        if let Some(remedy) = cell.variant.remedy {
            return format!("{name}:{remedy}");
        }
        let tune = cell.variant.tune();
        if tune.is_empty() {
            return name.to_owned();
        }
        let knobs: Vec<String> = tune
            .iter()
            .map(|(knob, value)| match value.as_str() {
                Some(word) => format!("{knob}={word}"),
                None => format!("{knob}={value}"),
            })
            .collect();
        format!("{name}:{}", knobs.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::workload::lengths::Lengths;
    use crate::contender::catalog::locks;

    fn setting() -> Setting {
        Setting {
            workload: "lengths",
            params: BTreeMap::new(),
            critical_ns: 0.0,
            outside_ns: 0.0,
            lines: 1,
            job: Job::Mutex(MutexWork::Lengths(Lengths { critical: 0, outside: 0, lines: 1 })),
            beside: Beside::default(),
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_order_and_another_another() {
        assert_eq!(orders(1, 20, 3), orders(1, 20, 3));
        assert_ne!(orders(1, 20, 3), orders(2, 20, 3));
        let order = &orders(1, 20, 3)[2];
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..20).collect::<Vec<_>>());
        assert_ne!(order, &sorted);
    }

    #[test]
    fn the_form_of_a_lock_is_in_its_short_name() {
        let all = locks();
        let named = |name| *all.iter().find(|lock| lock.name == name).unwrap();
        let mut chosen = vec![named("native"), named("paravirt-queued"), named("paravirt-queued")];
        let settings = vec![setting()];
        let mut cells = cells(&mut chosen, &settings, &[2], |_| 0, None);
        let tunes = ["kick_ahead=2", "defer=never"].map(|text| tune::parse(text).unwrap());
        cells[1].variant.tuning = tune::tuning(&tunes);
        cells[1].variant.counting = true;
        cells[2].variant.step = Some("3-statistics");
        let plan = Plan {
            locks: chosen,
            settings,
            cells,
            placement: Placement::new(crate::bench::affinity::Pin::B, vec![0]),
            pin: "B".to_owned(),
            rounds: 1,
            phase: Duration::ZERO,
            turn: Duration::ZERO,
            waits: false,
            fairness: None,
            cell_by_cell: false,
            counting: Duration::ZERO,
            budget: None,
            seed: 1,
        };
        assert_eq!(
            plan.show_order(&[0, 1, 2]),
            "native@2 paravirt-queued:defer=never,kick_ahead=2,statistics=on@2 \
             paravirt-queued:3-statistics@2"
        );
    }

    #[test]
    fn every_round_has_its_own_dice() {
        let mix = Mix { readers: 1, writers: 1, work: Varied { seed: 7, ..Varied::default() } };
        let seed = |round| match Job::Rw(mix).in_round(round) {
            Job::Rw(mix) => mix.work.seed,
            Job::Mutex(_) => unreachable!("readers and writers stay what they are"),
        };
        assert_eq!((seed(0), seed(3)), (7, seed(3)));
        assert!(seed(1) != seed(0) && seed(1) != seed(2));
    }

    #[test]
    fn hogs_make_up_what_threads_leave_of_the_overcommitment() {
        assert_eq!(HogsBeside::Hogs(3).hogs(8, 2), 3);
        assert_eq!(HogsBeside::Overcommit(1).hogs(2, 4), 0);
        assert_eq!(HogsBeside::Overcommit(2).hogs(4, 4), 4);
        assert_eq!(HogsBeside::Overcommit(4).hogs(4, 4), 12);
        assert_eq!(HogsBeside::Overcommit(2).hogs(16, 4), 0);
    }

    #[test]
    fn the_empty_lock_is_measured_always_but_shown_on_demand() {
        let all = locks();
        let named = |name| *all.iter().find(|lock| lock.name == name).unwrap();
        let mut chosen = vec![named("native"), named("std")];
        let found = cells(&mut chosen, &[setting()], &[1, 2], |_| 0, Some(named(EMPTY)));
        let shown: Vec<_> =
            found.iter().map(|cell| (chosen[cell.lock].name, cell.threads, cell.shown)).collect();
        let expected = [
            ("native", 1, true),
            ("std", 1, true),
            ("empty", 1, false),
            ("native", 2, true),
            ("std", 2, true),
        ];
        assert_eq!(shown, expected);
        let mut chosen = vec![named("std")];
        let found = cells(&mut chosen, &[setting()], &[8], |_| 0, Some(named(EMPTY)));
        let at: Vec<_> = found.iter().map(|cell| (cell.threads, cell.shown)).collect();
        assert_eq!(at, [(8, true), (1, false)]);
        let mut chosen = vec![named("empty")];
        let found = cells(&mut chosen, &[setting()], &[1, 2], |_| 0, Some(named(EMPTY)));
        assert_eq!((found.len(), found[0].shown), (1, true));
    }
}
