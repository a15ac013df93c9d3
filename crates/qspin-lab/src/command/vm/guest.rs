//! Boots guests one after the other, listens to them, and makes rows of what they say.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::anyhow;
use indicatif::ProgressBar;
use serde_json::Value;

use super::entrants::{Entrant, Place};
use super::{Args, board};
use crate::bench::affinity::Placement;
use crate::bench::interrupt::Interrupt;
use crate::failure::Failure;
use crate::row::Row;
use crate::vm::accelerator::Choice;
use crate::vm::machine::{Machine, Maker, Silence, trouble};
use crate::vm::preempt::{self, Preemption};
use crate::vm::reply::{Events, Outcome, Phase, Ready, Reply};
use crate::vm::rows::{Setting, row};

/// The longest that a guest takes to boot.
const BOOT: Duration = Duration::from_secs(60);
/// How long a guest may take longer than it was told to, at the least: it has a limit of its own, of a
/// minute, and says which CPU waits for what.
const GRACE: Duration = Duration::from_secs(90);

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) rows: Vec<Row>,
    /// The lines of a series, if one was asked for.
    pub(super) lines: Vec<Place>,
    /// Results of the suite that are wrong.
    pub(super) failed: u64,
    /// The user has interrupted it.
    pub(super) partial: bool,
}

/// What all guests of a run have in common.
#[derive(Debug)]
pub(super) struct Host<'a> {
    pub(super) args: &'a Args,
    pub(super) maker: &'a Maker,
    pub(super) choice: &'a Choice,
    pub(super) placement: &'a Placement,
    pub(super) interrupt: &'a Interrupt,
    pub(super) phase: Duration,
}

/// What a guest has said.
#[derive(Debug, Default)]
struct Heard {
    ready: Option<Ready>,
    phases: Vec<Phase>,
    events: Vec<Events>,
    failed: u64,
}

impl Host<'_> {
    /// Measures with so many virtual CPUs; `false` if the user asked to stop. A series boots a guest a line and round, in
    /// turns, since tunables are a guest's.
    ///
    /// # Errors
    ///
    /// A guest cannot be started, hangs or fails.
    pub(super) fn measure(
        &self,
        vcpus: u32,
        entrants: &[Entrant],
        found: &mut Found,
    ) -> Result<bool, Failure> {
        let series = entrants.iter().any(|entrant| entrant.place.is_some());
        let (visits, rounds) = if series { (self.args.rounds, 1) } else { (1, self.args.rounds) };
        found.lines = entrants.iter().filter_map(|entrant| entrant.place.clone()).collect();
        let phases = |entrant: &Entrant| u64::from(visits * rounds) * entrant.locks.len() as u64;
        let total = entrants.iter().map(phases).sum();
        let bar = if self.args.suite {
            ProgressBar::hidden()
        } else {
            crate::command::bar(total, "{msg} ")
        };
        let mut heard: Vec<Heard> = entrants.iter().map(|_| Heard::default()).collect();
        let mut end = Ok(true);
        let mut quiet = false;
        'visits: for _ in 0..visits {
            for (entrant, heard) in entrants.iter().zip(&mut heard) {
                let line = self.line(entrant, rounds);
                let watched = self.args.preempt.is_some();
                end = self
                    .maker
                    .start(vcpus, self.choice.accelerator, &line, watched)
                    .map_err(Failure::from)
                    .and_then(|mut guest| self.listen(entrant, &mut guest, heard, &bar, quiet));
                // Of a series one guest is enough to be told of.
                quiet = series;
                if !matches!(end, Ok(true)) {
                    break 'visits;
                }
            }
        }
        bar.finish_and_clear();
        for (entrant, heard) in entrants.iter().zip(&heard) {
            found.failed += heard.failed;
            if let Some(ready) = heard.ready.as_ref().filter(|_| !self.args.suite) {
                found.rows.extend(self.rows(entrant, ready, heard, !matches!(end, Ok(true))));
            }
        }
        end
    }

    fn preemption(&self, entrant: &Entrant) -> Option<Preemption> {
        let honours_hints = entrant.honours_hints;
        let (spec, seed) = (self.args.preempt?, self.args.seed);
        Some(Preemption { spec, seed, honours_hints })
    }

    /// What a guest is told, beside its number of CPUs.
    fn line(&self, entrant: &Entrant, rounds: u32) -> String {
        let (args, choice) = (self.args, self.choice);
        let kick = if choice.no_hypercall && args.kick == "auto" { "vector" } else { &args.kick };
        let mut line = format!(
            "mode={} locks={} ms={} rounds={rounds} critical={} outside={} places={} apic={} kick={kick}",
            if args.suite { "suite" } else { "bench" },
            entrant.locks.join(","),
            self.phase.as_millis().max(1),
            args.critical.as_nanos(),
            args.outside.as_nanos(),
            args.places,
            args.apic,
        );
        if !entrant.tunes.is_empty() {
            let tunes =
                entrant.tunes.iter().map(|tune| format!("{}:{}", tune.name(), tune.value()));
            line += &format!(" tune={}", tunes.collect::<Vec<_>>().join(","));
        }
        if !args.tests.is_empty() {
            line += &format!(" tests={}", args.tests.join(","));
        }
        if args.hang {
            line += " hang=1";
        }
        if let Some(preemption) = self.preemption(entrant) {
            line += &format!(" {}", preemption.word());
        }
        line
    }

    /// Listens until the guest ends; `false` if the user asked to stop.
    fn listen(
        &self,
        entrant: &Entrant,
        guest: &mut Machine,
        heard: &mut Heard,
        bar: &ProgressBar,
        quiet: bool,
    ) -> Result<bool, Failure> {
        let mut asked = false;
        let mut booted = false;
        loop {
            let limit = match (booted, asked) {
                (_, true) => Duration::from_secs(10),
                (false, false) => BOOT,
                (true, false) => self.phase * 4 + GRACE,
            };
            match guest.reply(limit, self.interrupt) {
                Ok(Reply::Ready(ready)) => {
                    booted = true;
                    if !quiet {
                        crate::command::say(&greeting(&ready, guest.age()))?;
                    }
                    guest.settle(self.placement, ready.vcpus)?;
                    if let Some(preemption) = self.preemption(entrant) {
                        guest.preempt(&preemption, &ready)?;
                    }
                    heard.ready = Some(ready);
                }
                Ok(Reply::Phase(phase)) => {
                    bar.set_message(phase.lock.clone());
                    bar.inc(1);
                    heard.phases.push(phase);
                }
                Ok(Reply::Events(events)) => heard.events.push(events),
                Ok(Reply::Result(outcome)) => {
                    heard.failed += u64::from(!outcome.ok);
                    crate::command::say(&result(&outcome))?;
                }
                Ok(Reply::End { .. }) if heard.ready.is_none() => {
                    return Err(anyhow!(
                        "the guest ended without a word about itself that this command \
                         understands: its image is of another version"
                    )
                    .into());
                }
                Ok(Reply::End { ms, .. }) => {
                    if let (Some(spec), Some(tally)) = (&self.args.preempt, guest.finish())
                        && !quiet
                    {
                        crate::command::say(&format!("{}\n", preempt::words(spec, &tally)))?;
                    }
                    if self.args.suite {
                        crate::command::say(&format!(
                            "end       after {:.1} s\n",
                            ms as f64 / 1e3
                        ))?;
                    }
                    return Ok(true);
                }
                Ok(Reply::Pace { .. }) => {}
                Ok(other) => {
                    return match trouble(&other) {
                        Some(why) => Err(why.into()),
                        None => Err(anyhow!("the guest says something unexpected").into()),
                    };
                }
                Err(Silence::Interrupted) => return Ok(false),
                Err(Silence::Late) if !asked => {
                    asked = true;
                    guest.ask();
                }
                Err(Silence::Late) => {
                    return Err(
                        anyhow!("the guest hangs, and does not answer its NMI button").into()
                    );
                }
                Err(Silence::Ended(said)) => {
                    let said = if said.is_empty() { "it said nothing".to_owned() } else { said };
                    return Err(anyhow!("the machine ended before its guest did: {said}").into());
                }
            }
        }
    }

    fn rows(&self, entrant: &Entrant, ready: &Ready, heard: &Heard, partial: bool) -> Vec<Row> {
        let args = self.args;
        let mut params: BTreeMap<String, Value> = BTreeMap::from([
            ("accel".to_owned(), self.choice.accelerator.name().into()),
            ("machine".to_owned(), board(args).into()),
            ("kick".to_owned(), ready.kick.clone().into()),
            ("apic".to_owned(), ready.apic.clone().into()),
            ("places".to_owned(), args.places.into()),
        ]);
        if let Some(preemption) = self.preemption(entrant) {
            let hints = if preemption.honours_hints { "honoured" } else { "ignored" };
            params.insert("preempt".to_owned(), preemption.spec.to_string().into());
            params.insert("seed".to_owned(), preemption.seed.into());
            params.insert("hints".to_owned(), hints.into());
        }
        if let Some(times) = args.overcommit {
            params.insert("overcommit".to_owned(), times.into());
        }
        if let Some((name, value)) = &entrant.param {
            params.insert((*name).to_owned(), value.clone().into());
        }
        let tune = entrant.tunes.iter().map(|tune| (tune.name().to_owned(), tune.value().into()));
        let setting = Setting {
            params,
            tune: tune.collect(),
            critical_ns: args.critical.as_nanos() as f64,
            outside_ns: args.outside.as_nanos() as f64,
        };
        let row = |lock: &&str| {
            let phases: Vec<&Phase> =
                heard.phases.iter().filter(|phase| phase.lock == *lock).collect();
            let events = heard.events.iter().find(|events| events.lock == *lock);
            row(&setting, lock, &phases, events, partial)
        };
        entrant.locks.iter().filter_map(row).collect()
    }
}

/// That a guest has booted, for the eye.
fn greeting(ready: &Ready, age: Duration) -> String {
    let first = Duration::from_micros(ready.first_lock_us);
    format!(
        "guest     {} vCPUs, {}, kicks by {}, first lock {:.0} ms after its first instruction, {:.0} ms after the start \
         of the process\n",
        ready.vcpus,
        ready.apic,
        ready.kick,
        first.as_secs_f64() * 1e3,
        age.as_secs_f64() * 1e3,
    )
}

/// A result of the suite, for the eye.
fn result(outcome: &Outcome) -> String {
    let Outcome { test, detail, lock, ok, counted, expected } = outcome;
    let verdict = if *ok { "ok   " } else { "WRONG" };
    format!("{verdict}     {test:<10} {lock:<18} {detail:<22} {counted} of {expected}\n")
}
