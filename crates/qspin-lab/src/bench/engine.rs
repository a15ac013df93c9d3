//! The measuring loops of one lock, compiled for it, behind plain function pointers.

use crate::contender::{Contender, RwContender};

use super::cell::{Conditions, Measured, Spoiled, measure};
use super::interrupt::Interrupt;
use super::many::ManyStation;
use super::pair;
use super::rw_station::{Mix, RwStation};
use super::station::MutexStation;
use super::torture::{Outcome, Torment, torture};
use super::workload::kernel_lock_bench::KernelLockBench;
use super::workload::lengths::Lengths;
use super::workload::locktorture::Locktorture;
use super::workload::varied::Varied;

/// A workload of mutual exclusion locks, ready to run.
#[derive(Debug, Clone, Copy)]
pub enum MutexWork {
    /// Sections of given lengths.
    Lengths(Lengths),
    /// Delays as locktorture's.
    Locktorture(Locktorture),
    /// Sections made of units.
    KernelLockBench(KernelLockBench),
    /// Lengths that vary, several locks, holders that leave their CPU, a load that changes.
    Varied(Varied),
}

/// What measures a mutual exclusion lock.
pub type MeasureMutex = fn(MutexWork, &Conditions<'_>) -> Result<Measured, Spoiled>;
type Torture = fn(&Torment, &Interrupt) -> anyhow::Result<Outcome>;
type MeasureRw = fn(Mix, &Conditions<'_>) -> Result<Measured, Spoiled>;

/// The loops of a mutual exclusion lock.
#[derive(Clone, Copy)]
pub struct MutexEngine {
    /// Measures the lock under a workload.
    pub measure: MeasureMutex,
    /// Measures the same lock counting its events, where it counts.
    pub count: Option<MeasureMutex>,
    /// Cost of an uncontended pair, ns.
    pub pair_ns: fn() -> f64,
    /// Tortures the lock.
    pub torture: Torture,
}

impl MutexEngine {
    /// The loops of `C`.
    pub fn of<C: Contender>() -> Self {
        Self {
            measure: measure_mutex::<C>,
            count: None,
            pair_ns: pair::pair_ns::<C>,
            torture: torture::<C>,
        }
    }

    /// With `C` to count events.
    pub fn counting<C: Contender>(self) -> Self {
        Self { count: Some(measure_mutex::<C>), ..self }
    }
}

/// Measures `C`.
pub(super) fn measure_mutex<C: Contender>(
    work: MutexWork,
    conditions: &Conditions<'_>,
) -> Result<Measured, Spoiled> {
    match work {
        MutexWork::Lengths(work) => measure(&MutexStation::<C, _>::new(work), conditions),
        MutexWork::Locktorture(work) => measure(&MutexStation::<C, _>::new(work), conditions),
        MutexWork::KernelLockBench(work) => measure(&MutexStation::<C, _>::new(work), conditions),
        MutexWork::Varied(work) => measure(&ManyStation::<C>::new(work), conditions),
    }
}

/// The loops of a reader-writer lock.
#[derive(Clone, Copy)]
pub struct RwEngine {
    /// Measures the lock under a mix of reads and writes.
    pub measure: MeasureRw,
    /// Measures the same lock counting its events, where it counts.
    pub count: Option<MeasureRw>,
}

impl RwEngine {
    /// The loops of `C`.
    pub fn of<C: RwContender>() -> Self {
        Self { measure: measure_rw::<C>, count: None }
    }

    /// With `C` to count events.
    pub fn counting<C: RwContender>(self) -> Self {
        Self { count: Some(measure_rw::<C>), ..self }
    }
}

fn measure_rw<C: RwContender>(mix: Mix, conditions: &Conditions<'_>) -> Result<Measured, Spoiled> {
    measure(&RwStation::<C>::new(mix), conditions)
}
