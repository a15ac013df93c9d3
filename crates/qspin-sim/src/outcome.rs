//! The outcome of a simulation.

use std::collections::BTreeMap;

use qspin_core::events::Event;
use serde::Serialize;

use crate::engine::{State, to_ns};
use crate::platform::SimEvents;
use crate::scenario::Scenario;
use crate::workload::Work;

/// The figures of one run. All of them are simulated.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// Hash of the stream of events: equal for equal runs.
    pub hash: u64,
    /// When the last CPU was done, in simulated nanoseconds.
    pub elapsed_ns: f64,
    /// Operations per microsecond, as the workload defines them.
    pub throughput: f64,
    /// Critical sections of each CPU; its operations, if the workload counts those.
    pub sections: Vec<u64>,
    /// When each CPU was done.
    pub finished_ns: Vec<f64>,
    /// Dice's fairness factor: the share of the busier half of the CPUs; 0.5 is fair.
    pub fairness_factor: f64,
    /// Sections of the busiest CPU over those of the least busy; none if the latter did none.
    pub max_min: Option<f64>,
    /// How often a lock went from one CPU to another.
    pub hand_overs: u64,
    /// How often between sockets.
    pub remote_hand_overs: u64,
    /// Processor time that waiters spent watching or pausing, all CPUs together.
    pub spun_ns: f64,
    /// From wanting a lock to having acquired it, on average.
    pub mean_wait_ns: f64,
    /// The longest of these waits.
    pub longest_wait_ns: f64,
    /// Halts.
    pub halts: u64,
    /// Kicks.
    pub kicks: u64,
    /// From a kick to the return of the halt that it ended, on average.
    pub mean_wake_ns: Option<f64>,
    /// Yields.
    pub yields: u64,
    /// Pause-loop exits.
    pub pause_loop_exits: u64,
    /// How often a task was taken off a processor.
    pub preemptions: u64,
    /// Time that CPUs were ready and not running.
    pub stolen_ns: f64,
    /// The locks' own counts, where they are not zero.
    pub events: BTreeMap<&'static str, u64>,
    /// Simulated operations on words.
    pub operations: u64,
    /// Events of the engine.
    pub engine_events: u64,
    /// Switches to a coroutine.
    pub switches: u64,
}

impl Outcome {
    pub(crate) fn new(scenario: &Scenario, seed: u64, state: &State, events: &SimEvents) -> Self {
        let figures: Vec<_> = state.strands.iter().map(|strand| strand.figures).collect();
        let done: Vec<u64> = figures.iter().map(|it| it.done).collect();
        let sections: Vec<u64> = figures.iter().map(|it| it.sections).collect();
        let entered = sections.iter().sum::<u64>();
        let sections = if done.iter().any(|&it| it > 0) { done } else { sections };
        let finished_ns: Vec<f64> = figures.iter().map(|it| to_ns(it.finished_at)).collect();
        let sum = |of: fn(&crate::engine::Figures) -> u64| figures.iter().map(of).sum::<u64>();
        let least = sections.iter().copied().min().unwrap_or(0);
        let most = sections.iter().copied().max().unwrap_or(0);
        let wakes = sum(|it| it.wakes);
        let counts = Event::ALL.into_iter().map(|event| (event.name(), events.count_of(event)));
        Self {
            seed,
            hash: state.digest.value(),
            elapsed_ns: finished_ns.iter().copied().fold(0.0, f64::max),
            throughput: scenario.workload.throughput(&sections, &finished_ns),
            fairness_factor: fairness_factor(&sections),
            max_min: (least > 0).then(|| most as f64 / least as f64),
            sections,
            finished_ns,
            hand_overs: state.progress.hand_overs,
            remote_hand_overs: state.progress.remote_hand_overs,
            spun_ns: to_ns(sum(|it| it.spun)),
            mean_wait_ns: match entered {
                0 => 0.0,
                _ => to_ns(sum(|it| it.waited)) / entered as f64,
            },
            longest_wait_ns: to_ns(figures.iter().map(|it| it.longest_wait).max().unwrap_or(0)),
            halts: sum(|it| it.halts),
            kicks: sum(|it| it.kicks),
            mean_wake_ns: (wakes > 0).then(|| to_ns(sum(|it| it.wake_time)) / wakes as f64),
            yields: sum(|it| it.yields),
            pause_loop_exits: sum(|it| it.pause_loop_exits),
            preemptions: state.schedule.preemptions(),
            stolen_ns: to_ns((0..figures.len()).map(|cpu| state.schedule.stolen(cpu)).sum()),
            events: counts.filter(|&(_, count)| count > 0).collect(),
            operations: sum(|it| it.operations),
            engine_events: state.queue.made(),
            switches: state.switches,
        }
    }
}

/// How a lock was shared, in sections. Where each CPU does the same number of sections, that says nothing: then
/// it is what each would have done until the last was done, at its own pace.
fn shares(sections: &[u64], finished_ns: &[f64]) -> Vec<u64> {
    if sections.windows(2).any(|pair| pair[0] != pair[1]) {
        return sections.to_vec();
    }
    let last = finished_ns.iter().copied().fold(0.0, f64::max);
    let share = |(&done, &finished): (&u64, &f64)| match finished > 0.0 {
        true => (done as f64 * (last / finished)).round() as u64,
        false => done,
    };
    sections.iter().zip(finished_ns).map(share).collect()
}

impl Outcome {
    /// How the lock was shared, in sections; by the CPUs' pace, if each did the same number.
    #[must_use]
    pub fn shares(&self) -> Vec<u64> {
        shares(&self.sections, &self.finished_ns)
    }
}

/// Dice's fairness factor: the share of the busier half, where the middle one of an odd number counts half to
/// each side; 1 where no CPU did anything.
#[must_use]
pub fn fairness_factor(sections: &[u64]) -> f64 {
    let all: u64 = sections.iter().sum();
    if all == 0 {
        return 1.0;
    }
    let mut sorted = sections.to_vec();
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    let half = sorted.len() / 2;
    let mut busier = sorted[..half].iter().sum::<u64>() as f64;
    if !sorted.len().is_multiple_of(2) {
        busier += sorted[half] as f64 / 2.0;
    }
    busier / all as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fairness_factor_is_that_of_the_laboratory() {
        assert_eq!(fairness_factor(&[10, 10, 10]), 0.5);
        assert_eq!(fairness_factor(&[10, 10, 0, 0]), 1.0);
        assert_eq!(fairness_factor(&[0, 30, 10, 20]), 50.0 / 60.0);
        assert_eq!(fairness_factor(&[0, 0]), 1.0);
    }

    #[test]
    fn of_two_that_did_the_same_the_one_that_was_done_sooner_had_the_larger_share() {
        assert_eq!(shares(&[10, 10], &[50.0, 100.0]), [20, 10]);
        assert_eq!(shares(&[30, 10], &[100.0, 200.0]), [30, 10]);
        assert_eq!(shares(&[3, 3], &[100.0, 0.0]), [3, 3]);
    }
}
