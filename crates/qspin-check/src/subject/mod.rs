//! The locks under check, each a value: those of the register, variants of them, and small ones with known bugs.

pub mod beside;
pub mod catalogue;
pub mod convert;
pub mod goal;
mod no_pending;
pub mod rules;
pub mod timed;
pub(crate) mod tunings;

pub use catalogue::{locks, lookup, of, variants};
pub use goal::{Checker, Goal};
pub use no_pending::NoPending;

use std::sync::Arc;

use qspin_core::locks::Id;
use qspin_core::tuning::{Part, Tuning};

use crate::explore::{self, LoomLimits, Outcome, ShuttlePlan};
use crate::model::{Model, Traits};
use crate::scenario::Scenario;
use crate::trace::{Coverage, Rules};
use crate::weakening::Weakening;

/// Runs a scenario once, in the execution that a checker has begun.
type Run = fn(&Model, &Arc<Scenario>, Option<Weakening>);

/// A type of lock, as the checkers run it.
#[derive(Debug, Clone, Copy)]
pub struct Runs {
    pub(crate) loom: Run,
    pub(crate) shuttle: Run,
    /// The type, as the catalogue writes it: a client for GenMC is made of it.
    pub(crate) written: &'static str,
}

/// The [`Runs`] of a type that is generic over the checker `M`.
macro_rules! runs {
    ($lock:ty) => {{
        use std::sync::Arc;

        use $crate::machine::{Loom, Machine, Shuttle};

        fn on<M: Machine>(
            model: &$crate::model::Model,
            scenario: &Arc<$crate::scenario::Scenario>,
            weak: Option<$crate::weakening::Weakening>,
        ) {
            $crate::world::execute::<M, $lock>(model, scenario, weak);
        }
        $crate::subject::Runs {
            loom: on::<Loom>,
            shuttle: on::<Shuttle>,
            written: stringify!($lock),
        }
    }};
}

pub(crate) use runs;

/// Where a subject comes from.
#[derive(Debug, Clone, Copy)]
enum Source {
    /// The register, which says what parts of the tunables it reads.
    Register(&'static [Part]),
    /// It is a variant of such a lock.
    Variant,
    /// It is a lock of the harness, which counts nothing.
    Planted,
}

/// A lock under check.
#[derive(Debug, Clone, Copy)]
pub struct Subject {
    /// The name under which it is reported.
    pub name: &'static str,
    /// The lock of the register that it is, or is a variant of.
    pub id: Id,
    /// What is known of it.
    pub model: Model,
    /// From what follows what the batteries must come to with it.
    source: Source,
    /// What else they must come to: both, and each.
    goals: [&'static [Goal]; 3],
    runs: Runs,
}

impl Subject {
    /// Its type, as the catalogue writes it.
    #[must_use]
    pub const fn written(&self) -> &'static str {
        self.runs.written
    }

    /// What it is run through.
    #[must_use]
    pub const fn traits(&self) -> Traits {
        self.model.traits
    }

    /// A variant of it, which is run through what concerns the difference.
    #[must_use]
    pub const fn step(self, name: &'static str) -> Self {
        let mut step = self.variant(name);
        step.model.traits.step = true;
        step
    }

    /// A variant of it, which is run through everything.
    #[must_use]
    pub const fn variant(self, name: &'static str) -> Self {
        Self { name, source: Source::Variant, goals: [&[]; 3], ..self }
    }

    /// A lock of the harness in its manner.
    #[must_use]
    pub const fn planted(self, name: &'static str, runs: Runs) -> Self {
        Self { name, source: Source::Planted, goals: [&[]; 3], runs, ..self }
    }

    /// With another type.
    #[must_use]
    pub const fn made(self, runs: Runs) -> Self {
        Self { runs, ..self }
    }

    /// With other tunables.
    #[must_use]
    pub const fn tuned(self, tuning: Tuning) -> Self {
        Self { model: Model { tuning, ..self.model }, ..self }
    }

    /// With another state diagram.
    #[must_use]
    pub const fn ruled(self, rules: Rules) -> Self {
        Self { model: Model { rules, ..self.model }, ..self }
    }

    /// Run through what suits these.
    #[must_use]
    pub const fn with(self, traits: Traits) -> Self {
        Self { model: Model { traits, ..self.model }, ..self }
    }

    /// Both checkers must come to these.
    #[must_use]
    pub const fn must(self, goals: &'static [Goal]) -> Self {
        let [_, loom, shuttle] = self.goals;
        Self { goals: [goals, loom, shuttle], ..self }
    }

    /// Loom must come to some more, and shuttle to others.
    #[must_use]
    pub const fn must_each(self, loom: &'static [Goal], shuttle: &'static [Goal]) -> Self {
        Self { goals: [self.goals[0], loom, shuttle], ..self }
    }

    /// What the battery of this checker should have come to, and has not.
    #[must_use]
    pub fn missed(&self, checker: Checker, coverage: &Coverage) -> Vec<String> {
        let mut goals = match self.source {
            Source::Planted => vec![],
            _ => goal::of_kind(self.traits(), checker),
        };
        if let Source::Register(reads) = self.source {
            goals.extend(goal::of_parts(reads, self.traits(), checker));
        }
        let [both, loom, shuttle] = self.goals;
        goals.extend(both);
        goals.extend(if checker == Checker::Loom { loom } else { shuttle });
        goals.iter().filter_map(|goal| goal.missed(coverage)).collect()
    }

    /// Runs a scenario under loom.
    #[must_use]
    pub fn loom(
        &self,
        scenario: &Arc<Scenario>,
        weak: Option<Weakening>,
        limits: LoomLimits,
    ) -> Outcome {
        let (model, run, program) = (self.model, self.runs.loom, Arc::clone(scenario));
        explore::loom(scenario.threads.len(), limits, move || run(&model, &program, weak))
    }

    /// Runs a scenario under shuttle.
    #[must_use]
    pub fn shuttle(&self, scenario: &Arc<Scenario>, plan: ShuttlePlan) -> Outcome {
        let (model, run, program) = (self.model, self.runs.shuttle, Arc::clone(scenario));
        explore::shuttle(plan, move || run(&model, &program, None))
    }
}
