//! A named change of a scenario: what an experiment varies beside locks and CPUs.
//!
//! ```toml
//! [[variants]]
//! name = "the holder is spared"
//! locks = ["ticket"]                       # the plan's others do not have this variant
//! tuning = { kick_ahead = 2 }
//! hypervisor = { holder_grace = 1e6 }
//! workload = { inside_ns = 300 }           # figures of the plan's workload
//! [[loads]]
//! name = "2x, pinned"
//! hogs = 4
//! pinning = "own"
//! ```

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Value;

use crate::hypervisor::{Hypervisor, Pinning};
use crate::lock::Lock;
use crate::scenario::{Placement, Scenario};
use crate::workload::Workload;

/// What differs from the plan; whatever is not named stays as it is.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Its name.
    pub name: String,
    /// The locks that it applies to; all of the plan's if not given.
    pub locks: Option<Vec<Lock>>,
    /// Tunables, by name.
    #[serde(default)]
    pub tuning: BTreeMap<String, u32>,
    /// Tasks that only compute.
    pub hogs: Option<u32>,
    /// Where those may run.
    pub hog_pinning: Option<Pinning>,
    /// Where the CPUs may run.
    pub pinning: Option<Pinning>,
    /// Where they begin.
    pub placement: Option<Placement>,
    /// What differs in the hypervisor.
    pub hypervisor: Option<HypervisorChange>,
    /// Figures of the workload, by name.
    #[serde(default)]
    pub workload: BTreeMap<String, f64>,
}

macro_rules! hypervisor_change {
    ($($field:ident: $type:ty,)*) => {
        /// Fields of a [`Hypervisor`] that a change may set.
        #[derive(Debug, Clone, PartialEq, Default, Deserialize)]
        #[serde(deny_unknown_fields)]
        #[allow(missing_docs, reason = "they are the fields of a Hypervisor, documented there")]
        pub struct HypervisorChange {
            $(pub $field: Option<$type>,)*
        }

        impl HypervisorChange {
            fn apply(&self, hypervisor: &mut Hypervisor) {
                $(if let Some(value) = self.$field {
                    hypervisor.$field = value;
                })*
            }
        }
    };
}

hypervisor_change! {
    kick: f64,
    wake: f64,
    latency: f64,
    least_slice: f64,
    pulls: bool,
    balance: f64,
    pause_loop_window: f64,
    pause_loop_exit: f64,
    directed_yield: bool,
    holder_grace: f64,
    run_status: bool,
    run_status_look: f64,
    quota: f64,
    period: f64,
}

impl Change {
    /// Whether `lock` has this change.
    #[must_use]
    pub fn concerns(&self, lock: Lock) -> bool {
        self.locks.as_ref().is_none_or(|locks| locks.contains(&lock))
    }

    /// Applies the change to `scenario`.
    pub fn apply(&self, scenario: &mut Scenario) {
        scenario.tuning.extend(self.tuning.iter().map(|(name, &value)| (name.clone(), value)));
        if let Some(hogs) = self.hogs {
            scenario.hogs = hogs;
        }
        let places = [
            (&self.hog_pinning, &mut scenario.hog_pinning),
            (&self.pinning, &mut scenario.pinning),
        ];
        for (new, place) in places {
            if let Some(new) = new {
                place.clone_from(new);
            }
        }
        if let Some(placement) = &self.placement {
            scenario.placement.clone_from(placement);
        }
        if let (Some(change), Some(hypervisor)) = (&self.hypervisor, &mut scenario.hypervisor) {
            change.apply(hypervisor);
        }
        // What is impossible was refused by `check`.
        if let Ok(workload) = self.changed(&scenario.workload) {
            scenario.workload = workload;
        }
    }

    /// The workload with this change's figures in it.
    fn changed(&self, workload: &Workload) -> Result<Workload, String> {
        if self.workload.is_empty() {
            return Ok(workload.clone());
        }
        let mut described = Value::try_from(workload).map_err(|error| error.to_string())?;
        let fields = described.as_table_mut().and_then(|it| it.iter_mut().next()?.1.as_table_mut());
        let fields = fields.ok_or("the workload has no figures")?;
        for (name, &figure) in &self.workload {
            match fields.get_mut(name) {
                Some(Value::Integer(it)) if figure.fract() == 0.0 => *it = figure as i64,
                Some(Value::Float(it)) => *it = figure,
                Some(Value::Integer(_)) => {
                    return Err(format!("workload.{name} is {figure}: it must be a whole number"));
                }
                _ => return Err(format!("the workload has no figure {name}")),
            }
        }
        described.try_into().map_err(|error| error.to_string())
    }

    /// What is impossible about it, whatever it is applied to.
    pub(crate) fn check(&self, base: &Scenario) -> Result<(), String> {
        if self.name.trim().is_empty() || self.name.contains(char::is_control) {
            return Err("a name must be a line of text".to_owned());
        }
        if self.locks.as_ref().is_some_and(Vec::is_empty) {
            return Err("locks must name at least one, or be left out".to_owned());
        }
        if self.hypervisor.is_some() && base.hypervisor.is_none() {
            return Err("it changes the hypervisor, and there is no [hypervisor]".to_owned());
        }
        self.changed(&base.workload).map(drop)
    }
}
