//! The locks under check, behind one interface.

pub mod beside;
pub mod catalogue;
pub mod rules;
pub(crate) mod tunings;

pub use catalogue::{Mcs, NoPending, locks, lookup, variants};
pub use tunings::ONE_LOOK;

use std::marker::PhantomData;
use std::sync::Arc;

use qspin_core::lock::{RawLock, RawSharedLock};
use qspin_core::platform::Platform;
use qspin_core::tuning::Tuning;

use crate::explore::{self, LoomLimits, Outcome, ShuttlePlan};
use crate::ledger::Rules;
use crate::machine::Machine;
use crate::platform::Context;
use crate::scenario::{Mode, Scenario};
use crate::weakening::Weakening;

/// What the harness does to a lock, of either kind.
pub trait Contend<P: Platform>: Send + Sync + 'static {
    /// A free lock.
    fn new() -> Self;
    /// Acquires.
    fn enter(&self, p: &P, mode: Mode);
    /// Acquires without waiting.
    fn try_enter(&self, p: &P, mode: Mode) -> bool;
    /// Releases.
    ///
    /// # Safety
    /// This context has acquired the lock in this mode.
    unsafe fn leave(&self, p: &P, mode: Mode);
    /// Whether anybody holds it.
    fn is_locked(&self, p: &P) -> bool;
}

/// A lock that excludes.
pub struct Exclusive<L>(L);

impl<P: Platform, L: RawLock<P> + Send + Sync + 'static> Contend<P> for Exclusive<L> {
    fn new() -> Self {
        Self(L::new())
    }
    fn enter(&self, p: &P, _: Mode) {
        self.0.acquire(p);
    }
    fn try_enter(&self, p: &P, _: Mode) -> bool {
        self.0.try_acquire(p)
    }
    unsafe fn leave(&self, p: &P, _: Mode) {
        // SAFETY: the caller has acquired it.
        unsafe { self.0.release(p) }
    }
    fn is_locked(&self, p: &P) -> bool {
        self.0.is_locked(p)
    }
}

/// A lock that admits readers.
pub struct Shared<L>(L);

impl<P: Platform, L: RawSharedLock<P> + Send + Sync + 'static> Contend<P> for Shared<L> {
    fn new() -> Self {
        Self(L::new())
    }
    fn enter(&self, p: &P, mode: Mode) {
        match mode {
            Mode::Write => self.0.acquire_exclusive(p),
            Mode::Read => self.0.acquire_shared(p),
        }
    }
    fn try_enter(&self, p: &P, mode: Mode) -> bool {
        match mode {
            Mode::Write => self.0.try_acquire_exclusive(p),
            Mode::Read => self.0.try_acquire_shared(p),
        }
    }
    unsafe fn leave(&self, p: &P, mode: Mode) {
        match mode {
            // SAFETY: the caller has acquired it for writing.
            Mode::Write => unsafe { self.0.release_exclusive(p) },
            // SAFETY: the caller has acquired it for reading.
            Mode::Read => unsafe { self.0.release_shared(p) },
        }
    }
    fn is_locked(&self, p: &P) -> bool {
        self.0.is_locked(p)
    }
}

/// What kinds of scenario a lock is run through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traits {
    /// It admits readers.
    pub shared: bool,
    /// A reader that interrupts another reader passes a writer that waits, though they sleep.
    pub interrupted: bool,
    /// Waiters queue with nodes, which have lives, levels and an end.
    pub nodes: bool,
    /// Every waiter watches the lock itself: each step of it concerns all of them, so that four of
    /// them are too many to explore.
    pub one_word: bool,
    /// Its release may wait for a successor, and so for whatever interrupts that one.
    pub release_waits: bool,
    /// Waiters halt until they are kicked.
    pub halts: bool,
    /// They sleep in a queue beside the lock.
    pub sleeps: bool,
    /// Releases may be plain stores, since there is a heavy barrier.
    pub asymmetric: bool,
    /// Waiters that are near come first.
    pub near_first: bool,
    /// To acquire it takes so many steps that schedules with more than one preemption are too many.
    pub long: bool,
    /// It differs from another lock in a step that is switched on or off, and is run through what
    /// concerns that.
    pub step: bool,
}

const NOTHING: Traits = Traits {
    shared: false,
    interrupted: false,
    nodes: false,
    one_word: false,
    release_waits: false,
    halts: false,
    sleeps: false,
    asymmetric: false,
    near_first: false,
    long: false,
    step: false,
};

/// A lock that only excludes, and whose waiters watch it.
pub const PLAIN: Traits = NOTHING;
/// A lock whose waiters queue with nodes.
pub const WITH_NODES: Traits = Traits { nodes: true, ..NOTHING };
/// A lock that admits readers, and whose waiters queue with nodes.
pub const READERS: Traits = Traits { shared: true, ..WITH_NODES };
/// A lock whose waiters queue with nodes, and halt.
pub const HALTING: Traits = Traits { halts: true, ..WITH_NODES };
/// The same with another tuning.
pub const STEP: Traits = Traits { step: true, ..HALTING };

/// A lock whose waiters queue with nodes, those that are near first.
pub const NEAR: Traits = Traits { near_first: true, ..WITH_NODES };
/// The same with another tuning.
pub const NEAR_STEP: Traits = Traits { step: true, ..NEAR };
/// A lock whose waiters halt, and those that are near come first.
pub const NEAR_HALTING: Traits = Traits { near_first: true, ..HALTING };
/// The same with another tuning.
pub const NEAR_HALTING_STEP: Traits = Traits { step: true, ..NEAR_HALTING };

/// A lock whose waiters sleep beside it, released by a plain store where nobody does.
pub const SLEEPING: Traits = Traits { sleeps: true, asymmetric: true, ..HALTING };
/// The same with another tuning, or with a flaw.
pub const SLEEPING_STEP: Traits = Traits { step: true, ..SLEEPING };
/// The same without a heavy barrier.
pub const SLEEPING_FENCED: Traits = Traits { asymmetric: false, ..SLEEPING_STEP };

/// What sleeps beside the default mutex, and shares its pieces.
/// Of those that are more than one word, four CPUs are more than loom can do in a minute.
pub const BESIDE: Traits = Traits { one_word: true, ..SLEEPING_STEP };
/// The same that admits readers.
pub const BESIDE_READERS: Traits = Traits { shared: true, ..BESIDE };
/// The same where readers may interrupt each other.
pub const BESIDE_READERS_INTERRUPTED: Traits = Traits { interrupted: true, ..BESIDE_READERS };

/// The same where writers read upgradably before.
pub const BESIDE_UPGRADED: Traits = Traits { long: true, ..BESIDE_READERS };

/// A lock, whatever the platform.
pub trait Family: Send + Sync + 'static {
    /// The name under which it is reported.
    const NAME: &'static str;
    /// What it is run through.
    const TRAITS: Traits;
    /// What its words may do.
    const RULES: Rules;
    /// The tunables in force.
    const TUNING: Tuning;
    /// The lock itself.
    type On<M: Machine>: Contend<Context<M>>;
}

/// Declares a [`Family`].
macro_rules! family {
    ($(#[$doc:meta])* $family:ident = $name:literal, $traits:expr, $rules:expr, $lock:ty $(, $tuning:expr)?) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $family;

        impl Family for $family {
            const NAME: &'static str = $name;
            const TRAITS: Traits = $traits;
            const RULES: Rules = $rules;
            const TUNING: qspin_core::tuning::Tuning = [$($tuning,)? $crate::subject::ONE_LOOK][0];
            type On<M: Machine> = $lock;
        }
    };
}

pub(crate) use family;

/// A [`Family`] as a value.
pub trait Subject: Sync {
    /// The name under which it is reported.
    fn name(&self) -> &'static str;
    /// What it is run through.
    fn traits(&self) -> Traits;
    /// Runs a scenario under loom.
    fn loom(
        &self,
        scenario: &Arc<Scenario>,
        weak: Option<Weakening>,
        limits: LoomLimits,
    ) -> Outcome;
    /// Runs a scenario under shuttle.
    fn shuttle(&self, scenario: &Arc<Scenario>, plan: ShuttlePlan) -> Outcome;
}

/// The value of the family `F`.
pub struct Of<F>(PhantomData<fn() -> F>);

impl<F: Family> Of<F> {
    /// The value.
    pub const VALUE: &'static dyn Subject = &Self(PhantomData);
}

impl<F: Family> Subject for Of<F> {
    fn name(&self) -> &'static str {
        F::NAME
    }
    fn traits(&self) -> Traits {
        F::TRAITS
    }
    fn loom(
        &self,
        scenario: &Arc<Scenario>,
        weak: Option<Weakening>,
        limits: LoomLimits,
    ) -> Outcome {
        explore::loom::<F>(scenario, weak, limits)
    }
    fn shuttle(&self, scenario: &Arc<Scenario>, plan: ShuttlePlan) -> Outcome {
        explore::shuttle::<F>(scenario, plan)
    }
}
