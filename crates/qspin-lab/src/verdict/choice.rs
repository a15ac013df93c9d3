//! One lock to take, from the rows of several loads: what `bench --quick` ends with.
//!
//! Our locks stand against those that the reader has today ([`is_own`] tells them apart):
//! - A lock's score is the geometric mean of its throughput over all loads, round by round, so that
//!   [`compare()`] decides here as everywhere.
//! - A lock that starves a thread under some load, or falls `FALL` times below the best of a load,
//!   is unfit: it is never recommended, and one that people have is no measure of ours.
//! - Ours is the default mutex, unless it is unfit or another of our locks is clearly better.
//! - Ours is recommended where no fit lock of theirs is clearly better and at least one of theirs
//!   is clearly worse or unfit. Otherwise the reader keeps what there is.
//! - A difference smaller than the noise is none: where an interval is wide and reaches near 1, the
//!   machine cannot tell now.
//!
//! The same rows give the same words.

use qspin_core::locks::Id;
use qspin_table::number::{list, plural, rate, times};

use super::collapse::FALL;
use super::starvation::{Starving, starves};
use super::{by_round, geometric_mean};
use crate::bench::random::TWIN;
use crate::bench::random::regret::{Cell, cells};
use crate::bench::random::show;
use crate::compare::{Comparison, FEWEST_ROUNDS, Outcome as Against, Sample, compare, is_too_few};
use crate::report::family::{is_own, is_reference};
use crate::report::group::{Group, groups};
use crate::row::{Machine, Row};

/// The lock of ours that is taken unless another is clearly better, here and wherever a lock is recommended.
pub const DEFAULT: &str = "mutex";
/// An interval whose ends are further apart than this, as a ratio, is wide.
const WIDE: f64 = 1.25;
/// So many loads that a lock loses are named.
const NAMED: usize = 3;

/// Why a lock is never recommended.
#[derive(Debug, Clone, PartialEq)]
enum Unfit {
    /// Under the load of this name.
    Starves(String, Starving),
    /// Under the load of this name the best lock does so many times its operations a second.
    Collapses(String, f64, f64),
}

/// One contender over all loads.
#[derive(Debug, Clone, PartialEq)]
struct Standing<'a> {
    name: &'a str,
    by_round: Vec<f64>,
    unfit: Option<Unfit>,
}

/// What follows.
#[derive(Debug, Clone, PartialEq)]
enum Outcome<'a> {
    /// None of ours, or none of theirs, was measured under every load.
    Nothing,
    /// So many rounds have no interval.
    TooFew(usize),
    /// The noise is larger than the difference to this lock of theirs.
    Noise(&'a str),
    /// None of ours is fit.
    NoneOfOurs,
    /// Ours, and those of theirs in whose place it is worth taking.
    Take(&'a str, Vec<&'a str>),
    /// Ours is no better than any of theirs; the one that is clearly better, where there is one.
    Keep(&'a str, Option<&'a str>),
}

/// The choice among the locks of a run over several loads.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice<'a> {
    loads: usize,
    standings: Vec<Standing<'a>>,
    outcome: Outcome<'a>,
    /// Ours against each of theirs, in the order of the rows.
    against: Vec<(&'a str, Comparison)>,
    /// The loads that ours clearly loses, to which lock, and what it does of that one's, worst first.
    lost: Vec<(String, &'a str, f64)>,
}

/// Chooses from the rows of drawn loads; `None` where there are none.
pub fn choose<'a>(machine: &Machine, rows: &'a [Row]) -> Option<Choice<'a>> {
    let loads = cells(rows);
    if loads.is_empty() {
        return None;
    }
    let groups = groups(machine, rows);
    let standings = standings(&loads, &groups);
    let (ours, theirs): (Vec<_>, Vec<_>) =
        standings.iter().partition(|standing| is_own(standing.name));
    let preferred = preferred(&ours);
    let against: Vec<(&str, Comparison)> = preferred.map_or_else(Vec::new, |ours| {
        let to = |other: &&Standing<'a>| (other.name, of(ours, other));
        theirs.iter().map(to).collect()
    });
    let outcome = decide(&ours, &theirs, preferred, &against);
    let lost = preferred.map_or_else(Vec::new, |ours| lost(&loads, ours.name, &theirs));
    Some(Choice { loads: loads.len(), outcome, against, lost, standings })
}

/// The contenders that were measured under every load.
fn standings<'a>(loads: &[Cell<'a>], groups: &[Group<'a>]) -> Vec<Standing<'a>> {
    let names = loads[0].rows.iter().map(|row| row.lock.as_str());
    names
        .filter(|name| !is_reference(name) && !name.ends_with(TWIN))
        .filter_map(|name| {
            let rows: Option<Vec<&Row>> = loads.iter().map(|load| load.row(name)).collect();
            let rows = rows?;
            let unfit = loads
                .iter()
                .find_map(|load| collapses(load, name))
                .or_else(|| loads.iter().find_map(|load| starves_under(load, name, groups)));
            Some(Standing { name, by_round: by_round(&rows), unfit })
        })
        .collect()
}

fn collapses(load: &Cell<'_>, lock: &str) -> Option<Unfit> {
    let row = load.row(lock)?;
    let best = load.rows.iter().max_by(|a, b| a.ops_per_s.median.total_cmp(&b.ops_per_s.median))?;
    let fallen = compare(*best, row).ratio;
    let is_sure = fallen.median >= FALL && fallen.lo >= FALL;
    is_sure.then(|| Unfit::Collapses(show::name(load), row.ops_per_s.median, fallen.median))
}

fn starves_under(load: &Cell<'_>, lock: &str, groups: &[Group<'_>]) -> Option<Unfit> {
    let row = load.row(lock)?;
    let of_row = |group: &&Group<'_>| group.rows().any(|other| std::ptr::eq(other, row));
    let group = groups.iter().find(of_row)?;
    let contender = group.contenders.iter().find(|contender| contender.lock == lock)?;
    starves(group, contender, row).map(|starving| Unfit::Starves(show::name(load), starving))
}

/// Ours that is compared with theirs.
fn preferred<'s, 'a>(ours: &[&'s Standing<'a>]) -> Option<&'s Standing<'a>> {
    let fit = || ours.iter().copied().filter(|standing| standing.unfit.is_none());
    let score = |standing: &Standing<'_>| geometric_mean(standing.by_round.iter().copied());
    let best = fit().max_by(|one, other| score(one).total_cmp(&score(other)))?;
    let default = fit().find(|standing| standing.name == DEFAULT);
    default.filter(|default| of(best, default).outcome != Against::Better).or(Some(best))
}

fn of(one: &Standing<'_>, other: &Standing<'_>) -> Comparison {
    compare(Sample::Rounds(&one.by_round), Sample::Rounds(&other.by_round))
}

fn decide<'a>(
    ours: &[&Standing<'a>],
    theirs: &[&Standing<'a>],
    preferred: Option<&Standing<'a>>,
    against: &[(&'a str, Comparison)],
) -> Outcome<'a> {
    if ours.is_empty() || theirs.is_empty() {
        return Outcome::Nothing;
    }
    let rounds = ours.iter().chain(theirs).map(|standing| standing.by_round.len()).min();
    match rounds {
        Some(rounds) if !is_too_few(rounds) => {}
        few => return Outcome::TooFew(few.unwrap_or(0)),
    }
    let Some(preferred) = preferred else { return Outcome::NoneOfOurs };
    let is_fit = |name: &str| theirs.iter().any(|it| it.name == name && it.unfit.is_none());
    let (mut worth, mut better) = (Vec::new(), None::<(&str, f64)>);
    for (name, comparison) in against {
        if !is_fit(name) {
            worth.push(*name);
            continue;
        }
        if hides(comparison) {
            return Outcome::Noise(name);
        }
        match comparison.outcome {
            Against::Better => worth.push(*name),
            Against::Worse if better.is_none_or(|(_, ratio)| comparison.ratio.median < ratio) => {
                better = Some((*name, comparison.ratio.median));
            }
            _ => {}
        }
    }
    match better {
        None if !worth.is_empty() => Outcome::Take(preferred.name, worth),
        better => Outcome::Keep(preferred.name, better.map(|(name, _)| name)),
    }
}

/// Whether noise may hide which of the two is better.
fn hides(comparison: &Comparison) -> bool {
    let ratio = comparison.ratio;
    let is_apart = ratio.lo > WIDE || ratio.hi < 1.0 / WIDE;
    !is_apart && ratio.hi > WIDE * ratio.lo
}

fn lost<'a>(
    loads: &[Cell<'a>],
    ours: &str,
    theirs: &[&Standing<'a>],
) -> Vec<(String, &'a str, f64)> {
    let mut lost: Vec<(String, &str, f64)> = loads
        .iter()
        .filter_map(|load| {
            let own = load.row(ours)?;
            let better = theirs.iter().filter_map(|other| {
                let compared = compare(own, load.row(other.name)?);
                (compared.outcome == Against::Worse).then_some((other.name, compared.ratio.median))
            });
            let (other, share) = better.min_by(|one, other| one.1.total_cmp(&other.1))?;
            Some((show::name(load), other, share))
        })
        .collect();
    lost.sort_by(|one, other| one.2.total_cmp(&other.2));
    lost
}

impl Choice<'_> {
    /// The sentences, one a line; the first says what to do.
    pub fn sentences(&self) -> Vec<String> {
        let mut lines = vec![self.advice()];
        if let Outcome::Take(lock, _) | Outcome::Keep(lock, _) = &self.outcome {
            lines.extend(self.against.iter().map(|(other, it)| against_in_words(lock, other, it)));
            lines.push(self.losses(lock));
        }
        lines.extend(self.standings.iter().filter_map(unfit_in_words));
        lines.extend(self.taken().map(how_to_take));
        lines
    }

    /// Whether the rows have what it takes to tell.
    pub fn tells(&self) -> bool {
        !matches!(self.outcome, Outcome::Nothing | Outcome::TooFew(_))
    }

    /// The lock to take, where one of ours is worth taking.
    pub fn taken(&self) -> Option<&str> {
        match &self.outcome {
            Outcome::Take(lock, _) => Some(lock),
            _ => None,
        }
    }

    fn advice(&self) -> String {
        let over = format!("over these {}", plural(self.loads as f64, "load"));
        match &self.outcome {
            Outcome::Nothing => "Nothing to choose: it takes a lock of ours and one that you have, both \
                                 under every load."
                .to_owned(),
            Outcome::TooFew(rounds) => format!(
                "Cannot tell on this machine now: {} a load, and it takes at least {FEWEST_ROUNDS}.",
                plural(*rounds as f64, "round")
            ),
            Outcome::Noise(other) => format!(
                "Cannot tell on this machine now: the noise is larger than the difference to `{other}`. \
                 Run it again when the machine is quiet."
            ),
            Outcome::NoneOfOurs => {
                "Keep what you have: none of our locks that were measured is fit for all of these loads."
                    .to_owned()
            }
            Outcome::Take(lock, worth) => {
                let worth: Vec<String> = worth.iter().map(|name| format!("`{name}`")).collect();
                format!("Take `{lock}` in place of {}, {over}.", list(&worth, "or"))
            }
            Outcome::Keep(lock, Some(better)) => format!(
                "Keep what you have: {over} `{better}` is clearly better than the best of ours, `{lock}`."
            ),
            Outcome::Keep(lock, None) => format!(
                "Keep what you have: {over} the best of ours, `{lock}`, is not clearly better."
            ),
        }
    }

    fn losses(&self, lock: &str) -> String {
        if self.lost.is_empty() {
            return format!("`{lock}` clearly loses none of the loads.");
        }
        let named = self.lost.iter().take(NAMED);
        let named = named
            .map(|(load, other, share)| format!("\n  {load}: {share:.2} times `{other}`"))
            .collect::<String>();
        let more = self.lost.len().saturating_sub(NAMED);
        let more = if more > 0 { format!("\n  and {more} more") } else { String::new() };
        format!("`{lock}` clearly loses {} of the loads:{named}{more}", self.lost.len())
    }
}

fn against_in_words(lock: &str, other: &str, compared: &Comparison) -> String {
    let ratio = compared.ratio;
    let unclear = if compared.outcome.is_clear() { "" } else { ": no clear difference" };
    format!(
        "  `{lock}` does {:.2} times `{other}` [{:.2}, {:.2}]{unclear}",
        ratio.median, ratio.lo, ratio.hi
    )
}

/// What to type.
fn how_to_take(lock: &str) -> String {
    let Some(module) = Id::named(lock).map(|id| id.lock().module) else { return String::new() };
    let rust =
        if lock == DEFAULT { "qspin::Mutex".to_owned() } else { format!("qspin::{module}::Mutex") };
    format!(
        "In Rust `{rust}` (README: \"Use it\"), in C `qspin_{module}_t` (docs/c.md), and for a program as it \
         is `qspin run --lock {lock} -- PROGRAM` (docs/run.md)."
    )
}

fn unfit_in_words(standing: &Standing<'_>) -> Option<String> {
    let name = standing.name;
    Some(match standing.unfit.as_ref()? {
        Unfit::Collapses(load, ops, fall) => format!(
            "`{name}` collapses under {load}: {} operations a second, {} times fewer than the best.",
            rate(*ops),
            times(*fall)
        ),
        Unfit::Starves(load, starving) => {
            format!("`{name}` starves threads under {load}: it {}.", starving.how)
        }
    })
}
