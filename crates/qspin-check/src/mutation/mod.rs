//! Every named ordering, weakened alone, must yield a counterexample.
//!
//! An ordering whose weakening nothing notices is either too strong, or not checked; both are
//! worth knowing. The sites are not listed here: they are recorded while the locks run, and a
//! site that no lock consults is a failure, so that a new one cannot be forgotten.

pub mod expected;
pub mod known;

use std::time::{Duration, Instant};

use qspin_core::site::Site;

pub use expected::{Expectation, expectation};

use crate::battery::{Check, for_loom};
use crate::checks::{loom_check, under_loom};
use crate::failure::{Failure, Kind};
use crate::model::{Buckets, Traits};
use crate::subject::{Subject, lookup, variants};
use crate::trace::Coverage;
use crate::weakening::Weakening;
use crate::workers;

/// What came of one weakening.
#[derive(Debug, Clone)]
pub struct Mutant {
    /// The weakening.
    pub weakening: Weakening,
    /// The counterexample, and where it was found.
    pub killed: Option<(Failure, Place)>,
    /// Executions explored, over all locks and scenarios.
    pub executions: u64,
    /// How long it took.
    pub took: Duration,
}

/// Where a mutant dies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The lock.
    pub lock: String,
    /// The scenario.
    pub scenario: String,
    /// With how many preemptions at most, where that is less than the check's own bound.
    pub preemptions: Option<usize>,
}

/// How far is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// First where the mutant died last time; not far for one that is listed to live.
    Usual,
    /// Everywhere.
    Full,
}

/// A verdict on a mutant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Killed, as expected.
    Killed,
    /// It survived, as the list of exceptions says it does.
    Excepted(&'static str),
    /// Anything else, in words.
    Wrong(String),
}

impl Mutant {
    /// Holds the mutant against the expectation for it.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let found = self.killed.as_ref().map(|(failure, ..)| failure.kind);
        match (found, expectation(self.weakening)) {
            (Some(Kind::Undecided), _) => Verdict::Wrong("undecided: out of time".into()),
            (Some(kind), Some(Expectation::Dies(expected))) if kind == expected => Verdict::Killed,
            (Some(kind), Some(Expectation::Dies(expected))) => {
                let message = self.killed.as_ref().map_or("", |(failure, ..)| &failure.message);
                Verdict::Wrong(format!(
                    "killed by {kind}, where {expected} was expected: {message}"
                ))
            }
            (Some(kind), Some(Expectation::Survives(_))) => {
                Verdict::Wrong(format!("killed by {kind}, but listed as an exception"))
            }
            (None, Some(Expectation::Survives(reason))) => Verdict::Excepted(reason),
            (None, Some(Expectation::Dies(_))) => Verdict::Wrong("survived".into()),
            (Some(kind), None) => {
                Verdict::Wrong(format!("killed by {kind}, but nothing is expected of it"))
            }
            (None, None) => Verdict::Wrong("survived, and nothing is expected of it".into()),
        }
    }
}

/// The sites that each lock consults, and those that none does.
pub struct Survey {
    sites: Vec<(Subject, Coverage)>,
}

/// Preemptions while the sites are looked for: what a schedule must have to get anywhere.
const SURVEY: usize = 1;

impl Survey {
    /// Runs every lock, or one, to see which sites it consults.
    ///
    /// # Errors
    /// A lock fails as it is.
    pub fn take(only: Option<&str>, time: Duration) -> Result<Self, String> {
        let mut subjects = variants();
        subjects.retain(|subject| only.is_none_or(|only| subject.name == only));
        let sites = workers::each(subjects.len(), |number| {
            let subject = subjects[number];
            let mut coverage = Coverage::default();
            for check in for_loom(subject.traits()) {
                let far = is_dear(subject) || is_special(subject);
                let preemptions = if far { 0 } else { SURVEY };
                let outcome = under_loom(&subject, &check, None, Some(preemptions), time);
                if let Some(failure) = outcome.failure {
                    return Err(format!("{} fails as it is: {failure}", subject.name));
                }
                coverage.merge(&outcome.coverage);
            }
            Ok((subject, coverage))
        });
        let sites = sites.into_iter().collect::<Result<_, _>>()?;
        Ok(Self { sites })
    }

    /// Sites that no lock consults.
    #[must_use]
    pub fn forgotten(&self) -> Vec<Site> {
        let consulted = |site| {
            self.sites.iter().any(|(_, coverage)| coverage.sites.iter().any(|&(at, _)| at == site))
        };
        Site::ALL.iter().copied().filter(|&site| !consulted(site)).collect()
    }

    /// Every weakening, with the locks that it concerns.
    #[must_use]
    pub fn weakenings(&self) -> Vec<(Weakening, Vec<Subject>)> {
        let mut all: Vec<(Weakening, Vec<Subject>)> = Vec::new();
        for (subject, coverage) in &self.sites {
            for &(site, order) in &coverage.sites {
                for &to in Weakening::steps_below(order) {
                    let weakening = Weakening { site, to };
                    match all.iter_mut().find(|(known, _)| *known == weakening) {
                        Some((_, subjects)) => subjects.push(*subject),
                        None => all.push((weakening, vec![*subject])),
                    }
                }
            }
        }
        all.sort_by_key(|(weakening, _)| weakening.site);
        for (_, subjects) in &mut all {
            // Short batteries first: those of the steps of a halting lock before its own.
            subjects.sort_by_key(|&subject| {
                (is_dear(subject), subject.traits().halts && !subject.traits().step)
            });
        }
        all
    }
}

/// Whether this is a variant of a NUMA-aware lock: in its scenarios four CPUs are all on their way in
/// the queue from the beginning, so that no preemption goes far, and one is a thousand times as much.
fn is_dear(subject: Subject) -> bool {
    subject.traits().near_first && subject.traits().step
}

/// Whether its scenarios are about what happens beside the lock, or take long: an ordering shows sooner elsewhere, and
/// these have their turn last.
fn is_special(subject: Subject) -> bool {
    let Traits { timed, latch, inherited, late, long, buckets, .. } = subject.traits();
    timed || latch || inherited || late || long || buckets != Buckets::One
}

/// Whose turn it is in a pass over the locks.
#[derive(Clone, Copy, PartialEq)]
enum Turn {
    All,
    /// Locks of one word with a place for every waiter: what is wrong with an ordering that others share with
    /// them shows there in a thousandth of the time.
    Short,
    /// The others.
    Long,
}

/// Preemptions, and the checks explored with so many: few first, since most mutants die of few, and every check's own
/// bound last. None at all for the dear ones, after what the others find at once.
const PASSES: &[(Option<usize>, Turn)] = &[
    (Some(1), Turn::All),
    (Some(0), Turn::All),
    (Some(2), Turn::Short),
    (Some(3), Turn::Short),
    (Some(2), Turn::Long),
    (Some(3), Turn::Long),
    (None, Turn::All),
];
/// The same for one that is listed to live: there is nothing to find at the end of a long search, which is that of
/// [`Depth::Full`].
const PASSES_OF_SURVIVORS: &[(Option<usize>, Turn)] = &[(Some(1), Turn::All), (Some(0), Turn::All)];

/// Runs one mutant.
fn run(weakening: Weakening, subjects: &[Subject], depth: Depth, time: Duration) -> Mutant {
    let begun = Instant::now();
    let mut executions = 0;
    let left = || time.saturating_sub(begun.elapsed());
    let mut attempt = |subject: &Subject, check: &Check, preemptions| {
        let outcome = under_loom(subject, check, Some(weakening), preemptions, left());
        executions += outcome.executions;
        let (lock, scenario) = (subject.name.to_owned(), check.name());
        outcome.failure.map(|failure| (failure, Place { lock, scenario, preemptions }))
    };
    let mut killed = None;
    if depth == Depth::Usual
        && let Some(place) = known::place(weakening)
        && let Some(subject) = lookup(&place.lock)
        && let Some(check) = loom_check(&subject, &place.scenario)
    {
        killed = attempt(&subject, &check, place.preemptions);
    }
    if killed.is_none() {
        killed = search(weakening, subjects, depth, attempt);
    }
    Mutant { weakening, killed, executions, took: begun.elapsed() }
}

type Killed = Option<(Failure, Place)>;

/// Looks for a mutant everywhere.
fn search(
    weakening: Weakening,
    subjects: &[Subject],
    depth: Depth,
    mut attempt: impl FnMut(&Subject, &Check, Option<usize>) -> Killed,
) -> Killed {
    let lives = matches!(expectation(weakening), Some(Expectation::Survives(_)));
    let survives = lives && depth == Depth::Usual;
    for &(preemptions, turn) in if survives { PASSES_OF_SURVIVORS } else { PASSES } {
        for subject in subjects {
            let own = if subject.traits().crowded { Turn::Long } else { Turn::Short };
            if turn != Turn::All && turn != own {
                continue;
            }
            let has_its_turn = match preemptions {
                // What halting does wrong the others show in fewer contexts.
                Some(0) => is_dear(*subject) && (survives || !subject.traits().halts),
                Some(1) if survives => !is_dear(*subject) && !is_special(*subject),
                Some(_) => !is_dear(*subject) && !is_special(*subject),
                None => true,
            };
            if !has_its_turn {
                continue;
            }
            for check in for_loom(subject.traits()) {
                let killed = attempt(subject, &check, preemptions);
                if killed.is_some() {
                    return killed;
                }
            }
        }
    }
    None
}

/// Runs all mutants, or those of one site, two at a time or as many as there are CPUs; `report` is called for each as
/// it ends.
pub fn run_all(
    survey: &Survey,
    only: Option<Site>,
    depth: Depth,
    time: Duration,
    report: impl Fn(&Mutant) + Sync,
) -> Vec<Mutant> {
    let mut weakenings = survey.weakenings();
    weakenings.retain(|(weakening, _)| only.is_none_or(|site| site == weakening.site));
    workers::each(weakenings.len(), |number| {
        let (weakening, subjects) = &weakenings[number];
        let mutant = run(*weakening, subjects, depth, time);
        report(&mutant);
        mutant
    })
}
