//! The sentence at the end: which lock is best here, and how sure that is.
//!
//! What "best" means:
//! - Three cases are judged apart, since no lock must win all of them: one thread, as many
//!   threads as find a CPU, more threads than CPUs. In a case with several numbers of threads a
//!   lock scores the geometric mean of its throughputs, so that no single one dominates.
//! - Whether two locks differ is [`compare()`]'s to say, round by round; in a case with several
//!   numbers of threads, by the rounds' geometric means.
//! - From too few rounds nothing follows. A collapse is told all the same where it is no matter
//!   of intervals.
//! - A lock that starves a thread is never recommended, however fast it is
//!   (`starvation.rs` says what that means).
//! - The same rows give the same words: ties are ordered by median, then by name.

pub mod choice;
mod collapse;
mod starvation;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod words;

pub use collapse::{Collapse, Fallen};
pub use starvation::Starving;
pub(crate) use starvation::starves;

use crate::compare::{self, SMALLEST, Sample, compare, is_too_few};
use crate::report::family::is_reference;
use crate::report::group::{Contender, Group, groups};
use crate::row::{Interval, Machine, Row};

/// The verdict on the rows of one run, in words; several lines, the last without a line break.
pub fn verdict(machine: &Machine, rows: &[Row]) -> String {
    words::run(machine, &groups(machine, rows))
}

/// The rows of a run in which threads starve: throughput alone would praise such a lock.
pub fn starving<'a>(machine: &Machine, rows: &'a [Row]) -> Vec<&'a Row> {
    let mut starving = Vec::new();
    for group in groups(machine, rows) {
        for contender in group.contenders.iter().filter(|contender| !contender.is_reference()) {
            let starves = |row: &&Row| starves(&group, contender, row).is_some();
            starving.extend(contender.rows.iter().copied().filter(starves));
        }
    }
    starving
}

/// How the number of threads relates to the number of CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Case {
    /// One thread that has its CPU: what the lock itself costs.
    Alone,
    /// Several threads, and a CPU for each.
    Fits,
    /// More threads (and hogs) than CPUs: some thread is always not running.
    Over,
}

/// A contender's throughput in a case.
#[derive(Debug, Clone, PartialEq)]
pub struct Score {
    /// Name of the contender.
    pub name: String,
    /// Geometric mean over the numbers of threads of the case.
    pub ops_per_s: Interval,
    /// The same of each round; empty where the rows do not tell.
    pub by_round: Vec<f64>,
    /// The fewest rounds of a number of threads.
    pub rounds: u32,
    /// The worst thread's longest p99.9 wait in the case, ns; infinite where it was not measured.
    pub worst_wait: f64,
    /// A lock and an unlock with no other thread there, where it was measured in this case.
    pub uncontended_ns: Option<Interval>,
    /// Why it must not be recommended, where it starves threads.
    pub starving: Option<Starving>,
    /// Falls far below other locks in this case, because threads are not running.
    pub collapsed: bool,
}

impl Score {
    /// Whether it may be recommended.
    pub fn fit(&self) -> bool {
        self.starving.is_none() && !self.collapsed
    }

    /// What is known of its throughput, to be compared.
    fn sample(&self) -> Sample<'_> {
        match &self.by_round[..] {
            [] => Sample::Summary(self.ops_per_s, self.rounds),
            rounds => Sample::Rounds(rounds),
        }
    }
}

/// What follows from the scores of a case.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// One lock is clearly best.
    Best {
        /// Index into the scores.
        best: usize,
        /// Index of the runner-up, where there is one.
        runner_up: Option<usize>,
    },
    /// Several are not clearly different; the first has the highest median.
    Tie(Vec<usize>),
    /// Only one lock was measured in this case.
    Only(usize),
    /// So many rounds have no interval, so nothing follows.
    TooFew(u32),
    /// Every lock starves a thread or collapses; the index is that of the fastest.
    NoneFit(usize),
}

/// One case: which locks took part and which won.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// Which case.
    pub case: Case,
    /// The numbers of threads that were measured, ascending.
    pub threads: Vec<u32>,
    /// Descending by median, then by name.
    pub scores: Vec<Score>,
    /// What follows.
    pub outcome: Outcome,
}

impl Judged {
    /// The contenders to recommend, best first; none where all of them starve a thread,
    /// or nothing is known.
    pub fn recommended(&self) -> Vec<&Score> {
        match &self.outcome {
            Outcome::Best { best: index, .. } | Outcome::Only(index) => vec![&self.scores[*index]],
            Outcome::Tie(indices) => indices.iter().map(|index| &self.scores[*index]).collect(),
            Outcome::NoneFit(_) | Outcome::TooFew(_) => Vec::new(),
        }
    }

    /// Of the recommended contenders those whose lock and unlock alone cost least, cheapest first.
    pub fn cheapest(&self) -> Vec<(&Score, Interval)> {
        let mut cost: Vec<(&Score, Interval)> = self
            .recommended()
            .into_iter()
            .filter_map(|score| Some((score, score.uncontended_ns?)))
            .collect();
        cost.sort_by(|a, b| {
            a.1.median.total_cmp(&b.1.median).then_with(|| a.0.name.cmp(&b.0.name))
        });
        if let Some(&(least, least_ns)) = cost.first() {
            let of = |score: &Score, ns| Sample::Summary(ns, score.rounds);
            cost.retain(|&(score, ns)| {
                compare(of(score, ns), of(least, least_ns)).outcome != compare::Outcome::Better
            });
        }
        cost
    }

    /// Contenders that starve threads and would have been recommended otherwise.
    pub fn disqualified(&self) -> impl Iterator<Item = (&Score, &Starving)> {
        let bar = self.recommended().first().map_or(f64::INFINITY, |best| best.ops_per_s.lo);
        self.scores
            .iter()
            .filter(move |score| score.ops_per_s.median >= bar)
            .filter_map(|score| score.starving.as_ref().map(|starving| (score, starving)))
    }
}

/// The best choice for a program whose number of threads is unknown.
#[derive(Debug, Clone, PartialEq)]
pub struct AllRound {
    /// The locks that are not clearly worse than the best in any case; where there are none, the
    /// lock whose worst case is least bad, and others within [`SMALLEST`] of it. Best first.
    pub names: Vec<String>,
    /// Not clearly worse than the best in any case.
    pub level: bool,
    /// Its throughput over that of the best lock, in the case where that is worst.
    pub at_least: f64,
}

/// The judgement of one setting.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// One to three cases, in order.
    pub cases: Vec<Judged>,
    /// What to take when the number of threads is unknown; only with two cases or more.
    pub all_round: Option<AllRound>,
    /// Locks that fall off a cliff where threads outnumber CPUs.
    pub collapse: Option<Collapse>,
}

/// Judges one setting.
pub fn judge(group: &Group<'_>) -> Judgement {
    let all = group.threads();
    let collapse = collapse::find(group);
    let cases: Vec<Judged> = [Case::Alone, Case::Fits, Case::Over]
        .into_iter()
        .filter_map(|case| {
            let threads: Vec<u32> =
                all.iter().copied().filter(|&threads| case_of(group, threads) == case).collect();
            judge_case(group, case, threads, collapse.as_ref())
        })
        .collect();
    Judgement { all_round: all_round(&cases), collapse, cases }
}

fn case_of(group: &Group<'_>, threads: u32) -> Case {
    if group.threads_over(threads) {
        Case::Over
    } else if threads == 1 {
        Case::Alone
    } else {
        Case::Fits
    }
}

fn judge_case(
    group: &Group<'_>,
    case: Case,
    threads: Vec<u32>,
    collapse: Option<&Collapse>,
) -> Option<Judged> {
    let mut scores: Vec<Score> = group
        .contenders
        .iter()
        .filter(|contender| !contender.is_reference())
        .filter_map(|contender| score(group, contender, &threads))
        .collect();
    for score in &mut scores {
        score.collapsed = case == Case::Over && collapse.is_some_and(|c| c.rules_out(&score.name));
    }
    scores.sort_by(|a, b| {
        b.ops_per_s.median.total_cmp(&a.ops_per_s.median).then_with(|| a.name.cmp(&b.name))
    });
    if scores.is_empty() {
        return None;
    }
    let took_part = |row: &&Row| threads.contains(&row.threads) && !is_reference(&row.lock);
    let rounds = group.rows().filter(took_part).map(|row| row.rounds).min().unwrap_or(0);
    let outcome = match decide(&scores) {
        Outcome::Best { .. } | Outcome::Tie(_) if is_too_few(rounds as usize) => {
            Outcome::TooFew(rounds)
        }
        sure => sure,
    };
    Some(Judged { case, threads, scores, outcome })
}

/// `None` where the contender was not measured at every number of threads of the case: half a
/// case is not comparable with a whole one.
fn score(group: &Group<'_>, contender: &Contender<'_>, threads: &[u32]) -> Option<Score> {
    let rows: Option<Vec<&Row>> = threads.iter().map(|&t| contender.at(t)).collect();
    let rows = rows.filter(|rows| !rows.is_empty())?;
    let mean = |of: fn(&Row) -> f64| geometric_mean(rows.iter().map(|row| of(row)));
    Some(Score {
        name: contender.name.clone(),
        ops_per_s: Interval {
            median: mean(|row| row.ops_per_s.median),
            lo: mean(|row| row.ops_per_s.lo),
            hi: mean(|row| row.ops_per_s.hi),
        },
        by_round: by_round(&rows),
        rounds: rows.iter().map(|row| row.rounds).min().unwrap_or(0),
        worst_wait: rows
            .iter()
            .map(|row| row.wait_ns.map_or(f64::INFINITY, |wait| wait.worst_thread_p999))
            .fold(0.0, f64::max),
        uncontended_ns: rows.iter().find_map(|row| row.uncontended_ns),
        collapsed: false,
        starving: rows.iter().find_map(|row| starvation::starves(group, contender, row)),
    })
}

/// The geometric mean over the rows of each round; none where the rows do not tell, or have not the
/// same rounds.
fn by_round(rows: &[&Row]) -> Vec<f64> {
    let rounds: Vec<&[f64]> = rows.iter().map(|row| &row.round_ops_per_s[..]).collect();
    if rounds.iter().any(|of| of.len() != rounds[0].len()) {
        return Vec::new();
    }
    let mean = |round: usize| geometric_mean(rounds.iter().map(|of| of[round]));
    (0..rounds[0].len()).map(mean).collect()
}

fn geometric_mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    (values.map(f64::ln).sum::<f64>() / count).exp()
}

fn decide(scores: &[Score]) -> Outcome {
    let fit: Vec<usize> = (0..scores.len()).filter(|&index| scores[index].fit()).collect();
    let Some((&best, others)) = fit.split_first() else {
        return Outcome::NoneFit(0);
    };
    if scores.len() == 1 {
        return Outcome::Only(best);
    }
    let mut level: Vec<usize> = others
        .iter()
        .copied()
        .filter(|&other| {
            let compared = compare(scores[best].sample(), scores[other].sample());
            compared.outcome != compare::Outcome::Better
        })
        .collect();
    // On a busy machine an interval may reach from a hundred to a million. Where others are near,
    // a lock with less than half of the best median is not among those to recommend.
    let near =
        |other: &usize| scores[*other].ops_per_s.median >= scores[best].ops_per_s.median / 2.0;
    if level.iter().any(near) {
        level.retain(near);
    }
    if level.is_empty() {
        Outcome::Best { best, runner_up: others.first().copied() }
    } else {
        Outcome::Tie([vec![best], level].concat())
    }
}

/// Among the contenders that starve no thread in any case.
fn all_round(cases: &[Judged]) -> Option<AllRound> {
    if cases.len() < 2 || cases.iter().any(|case| case.scores.len() < 2) {
        return None;
    }
    let share = |case: &Judged, name: &str| -> Option<f64> {
        let best = case.recommended().first()?.ops_per_s.median;
        let own = case.scores.iter().find(|score| score.name == name && score.fit())?;
        (best > 0.0).then(|| own.ops_per_s.median / best)
    };
    let mut ranked: Vec<(&str, f64)> = cases[0]
        .scores
        .iter()
        .filter_map(|score| {
            let shares: Option<Vec<f64>> =
                cases.iter().map(|case| share(case, &score.name)).collect();
            Some((score.name.as_str(), shares?.into_iter().fold(1.0, f64::min)))
        })
        .collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    let level = |name: &str| {
        cases.iter().all(|case| case.recommended().iter().any(|score| score.name == name))
    };
    if ranked.iter().any(|(name, _)| level(name)) {
        ranked.retain(|(name, _)| level(name));
        return Some(AllRound {
            level: true,
            at_least: ranked.first()?.1,
            names: ranked.iter().map(|(name, _)| (*name).to_owned()).collect(),
        });
    }
    let at_least = ranked.first()?.1;
    Some(AllRound {
        level: false,
        names: ranked
            .iter()
            .take_while(|(_, share)| *share >= at_least - SMALLEST)
            .map(|(name, _)| (*name).to_owned())
            .collect(),
        at_least,
    })
}
