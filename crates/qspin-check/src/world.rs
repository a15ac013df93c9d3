//! One execution of a scenario.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use qspin_core::node::NodeId;
use qspin_core::platform::{AtomicWord, Budget, CpuId, Platform, Until};
use qspin_core::sleepers::{SleepBucket, SleepPlatform, forget};

use crate::contend::Contend;
use crate::failure::{Failure, Kind};
use crate::machine::{Data, Life, Machine};
use crate::model::Model;
use crate::platform::{Context, DEADLINE, Domain, TICK};
use crate::scenario::{Mode, Scenario, Step, When};
use crate::trace::{self, Handler, Role, Touched};
use crate::weakening::Weakening;
use crate::word::{Word, judge, living};

/// What unwinds a context that stops for good.
struct Gone;

struct World<M: Machine, L> {
    scenario: Arc<Scenario>,
    domain: Arc<Domain<M>>,
    locks: Vec<L>,
    lives: Vec<Arc<M::Life>>,
    /// Contexts that will not use a lock any more.
    gone: Vec<Word<M>>,
    data: Vec<M::Data>,
    /// Contexts that have arrived.
    arrived: Word<M>,
}

/// Runs `scenario` once, in the execution that the checker `M` has begun.
pub(crate) fn execute<M: Machine, L: Contend<Context<M>>>(
    model: &Model,
    scenario: &Arc<Scenario>,
    weak: Option<Weakening>,
) {
    let slots = scenario.threads.len();
    trace::begin(model.rules, weak, scenario, M::EXHAUSTIVE, bypass(model, scenario));
    M::begin(model.traits.asymmetric);
    let world = Arc::new(World::<M, L>::new(model, Arc::clone(scenario)));
    world.set_nesting();
    let first = world.context(0);
    first.settle();
    world.perform_all(&first, &scenario.before);
    let handles: Vec<_> = (1..slots)
        .map(|slot| {
            let world = Arc::clone(&world);
            trace::keep(|| M::spawn(move || world.run(slot)))
        })
        .collect();
    world.run(0);
    for handle in handles {
        trace::keep(|| M::join(handle));
    }
    trace::came_to_an_end();
    judge::<M, _>(world.audit());
    trace::end();
}

/// How often a waiter may be passed by others that came later, by invariant NUMA-3 of the order: in
/// each flush but the last by the heads until the threshold, of which each counts on the clock once
/// it has the lock, and by the one that then finds the flush due.
fn bypass(model: &Model, scenario: &Scenario) -> Option<u32> {
    let heads = model.tuning.numa_threshold_ns.div_ceil(TICK as u32) + 1;
    model.rules.near_first.then(|| (scenario.places - 1).saturating_mul(heads))
}

impl<M: Machine, L: Contend<Context<M>>> World<M, L> {
    fn new(model: &Model, scenario: Arc<Scenario>) -> Self {
        let lives: Vec<_> = (0..scenario.locks).map(|_| Arc::new(M::Life::new())).collect();
        let make = |lock| trace::making(Role::Lock { lock, index: 0 }, L::new);
        let lock = |lock: usize| living::<M, _>(&lives[lock], || make(lock));
        Self {
            domain: Arc::new(Domain::new(&scenario, model.tuning, model.traits)),
            locks: (0..scenario.locks).map(lock).collect(),
            gone: (0..scenario.locks).map(|_| Word::new(0)).collect(),
            data: (0..scenario.locks).map(|_| M::Data::new()).collect(),
            arrived: Word::new(0),
            lives,
            scenario,
        }
    }

    fn context(&self, slot: usize) -> Context<M> {
        Context::new(self.scenario.threads[slot].cpu, Arc::clone(&self.domain))
    }

    fn run(self: &Arc<Self>, slot: usize) {
        trace::run_as(slot);
        let context = self.context(slot);
        self.perform_all(&context, &self.scenario.threads[slot].steps);
        judge::<M, _>(trace::finished());
    }

    fn perform_all(self: &Arc<Self>, context: &Context<M>, steps: &[Step]) {
        for step in steps {
            self.perform(context, step);
        }
    }

    fn perform(self: &Arc<Self>, context: &Context<M>, step: &Step) {
        match *step {
            Step::Section(lock, mode) => {
                self.enter(context, lock, mode);
                self.leave(context, lock, mode);
            }
            Step::Watched(lock, mode) => {
                self.enter(context, lock, mode);
                self.must_be_locked(context, lock, mode);
                self.leave(context, lock, mode);
            }
            Step::Try(lock, mode) => {
                let start = trace::starts();
                trace::set_trying(true);
                let acquired = self.locks[lock].try_enter(context, mode);
                trace::set_trying(false);
                if acquired {
                    self.entered(context, lock, mode, start);
                    self.leave(context, lock, mode);
                }
            }
            Step::Timed(looks, lock, mode) => {
                let start = trace::starts();
                trace::set_deadline(looks);
                let acquired = self.locks[lock].enter_until(context, mode, DEADLINE);
                trace::forget_deadline();
                if acquired {
                    self.entered(context, lock, mode, start);
                    self.leave(context, lock, mode);
                }
            }
            Step::Fork => self.fork(context),
            Step::Vanished(at, ref step) => self.vanish(at, step),
            Step::Obtain => context.obtain_barrier(),
            Step::Barrier(ref before, ref after, ref step) => {
                trace::arm_barrier(self.handler(context, before), self.handler(context, after));
                self.perform(context, step);
            }
            Step::Enter(lock, mode) => self.enter(context, lock, mode),
            Step::Leave(lock, mode) => {
                self.use_again(lock, mode);
                self.leave(context, lock, mode);
            }
            Step::LeaveAfter(lock, mode, arrivals) => {
                context.await_arrivals(lock, arrivals);
                self.use_again(lock, mode);
                self.leave(context, lock, mode);
            }
            Step::Downgrade(lock, from, to) => self.downgrade(context, lock, from, to),
            Step::Upgrade(lock, looks) => self.upgrade(context, lock, looks),
            Step::Together(lock, readers) => {
                self.enter(context, lock, Mode::Read);
                self.stay(context, readers);
                self.leave(context, lock, Mode::Read);
            }
            Step::Free(lock, users) => self.free(lock, users),
            Step::Arrive => self.arrive(),
            Step::Stay(others) => self.stay(context, others),
            Step::Signal => trace::signal(),
            Step::Await(signals) => context.await_signals(signals),
            Step::Settle(turn) => context.await_rest(turn),
            Step::Moved => context.await_moved(),
            Step::Outlast(lock, mode, others) => {
                self.await_others(context, others);
                self.use_again(lock, mode);
                self.leave(context, lock, mode);
            }
            Step::Interrupted(at, ref handler, ref step) => {
                self.arm(context, at, handler);
                self.perform(context, step);
                if trace::disarm() {
                    let awaited =
                        |step: &&Step| matches!(step, Step::Leave(..) | Step::Arrive | Step::Fork);
                    let rest: Vec<_> = handler.iter().filter(awaited).cloned().collect();
                    self.perform_all(context, &rest);
                }
            }
        }
    }

    fn free(&self, lock: usize, users: u32) {
        // ORDERING: AcqRel: what the others have done with the lock happens before its end.
        if self.gone[lock].fetch_add(1, AcqRel) + 1 == users {
            trace::freed(lock);
            self.lives[lock].renew();
        }
    }

    fn arrive(&self) {
        // ORDERING: AcqRel pairs with the Acquire of `await_others` and with the other contexts' own.
        self.arrived.fetch_add(1, AcqRel);
    }

    fn stay(&self, context: &Context<M>, others: u32) {
        self.arrive();
        self.await_others(context, others);
    }

    /// Waits until so many contexts have arrived.
    fn await_others(&self, context: &Context<M>, others: u32) {
        context.wait_until(&self.arrived, Until::is(others), Budget::Unbounded, Acquire);
    }

    /// Performs `step` until then.
    fn vanish(self: &Arc<Self>, at: When, step: &Step) {
        let vanish = move || {
            if matches!(at, When::Operation(_)) {
                trace::interrupted();
            }
            trace::set_gone(true);
            resume_unwind(Box::new(Gone))
        };
        trace::arm(at, Box::new(vanish));
        let cpu = Some(self.scenario.threads.len() as u32);
        let context = Context::new(cpu, Arc::clone(&self.domain));
        let end = catch_unwind(AssertUnwindSafe(|| self.perform(&context, step)));
        trace::disarm();
        trace::set_gone(false);
        let Err(cause) = end else { return };
        if !cause.is::<Gone>() {
            resume_unwind(cause);
        }
        trace::forget_deadline();
    }

    /// Clears what a platform clears in the child of a fork: buckets, and nodes that other CPUs had in use.
    fn fork(&self, context: &Context<M>) {
        trace::fork();
        forget(context, context.cpu());
        for (cpu, &levels) in self.scenario.nesting.iter().enumerate() {
            let others = context.cpu().is_none_or(|own| own.number() as usize != cpu);
            if let Some(nesting) = self.nesting(cpu).filter(|_| others) {
                nesting.store(levels, Relaxed);
            }
        }
    }

    fn arm(self: &Arc<Self>, context: &Context<M>, at: u32, steps: &[Step]) {
        let handler = self.handler(&context.interrupting(), steps);
        let interrupt = move || {
            trace::interrupted();
            handler();
        };
        trace::arm(When::Operation(at), Box::new(interrupt));
    }

    fn handler(self: &Arc<Self>, context: &Context<M>, steps: &[Step]) -> Handler {
        let (world, context, steps) = (Arc::clone(self), context.again(), steps.to_vec());
        Box::new(move || world.perform_all(&context, &steps))
    }

    fn downgrade(&self, context: &Context<M>, lock: usize, from: Mode, to: Mode) {
        let start = trace::starts();
        trace::left(lock, from);
        // SAFETY: the scenario holds it in that mode.
        unsafe { self.locks[lock].downgrade(context, from, to) };
        self.entered(context, lock, to, start);
    }

    fn upgrade(&self, context: &Context<M>, lock: usize, looks: Option<u32>) {
        let start = trace::starts();
        if let Some(looks) = looks {
            trace::set_deadline(looks);
        }
        // SAFETY: the scenario reads upgradably.
        let upgraded = unsafe { self.locks[lock].upgrade(context, looks.map(|_| DEADLINE)) };
        trace::forget_deadline();
        if upgraded {
            trace::left(lock, Mode::Upgradable);
            self.entered(context, lock, Mode::Write, start);
            self.downgrade(context, lock, Mode::Write, Mode::Upgradable);
        }
    }

    fn enter(&self, context: &Context<M>, lock: usize, mode: Mode) {
        let start = trace::starts();
        self.locks[lock].enter(context, mode);
        self.entered(context, lock, mode, start);
    }

    fn entered(&self, context: &Context<M>, lock: usize, mode: Mode, start: u64) {
        judge::<M, _>(trace::entered(lock, mode, start, context.in_interrupt()));
        trace::touching(Touched::Data);
        trace::keep(|| match mode {
            Mode::Write => self.data[lock].add(),
            Mode::Read | Mode::Upgradable => {
                self.data[lock].read();
            }
        });
    }

    /// What the holder did before was done before the other contexts were there.
    fn use_again(&self, lock: usize, mode: Mode) {
        if mode == Mode::Write {
            trace::wrote_again(lock);
            trace::touching(Touched::Data);
            trace::keep(|| self.data[lock].add());
        }
    }

    fn leave(&self, context: &Context<M>, lock: usize, mode: Mode) {
        trace::left(lock, mode);
        // SAFETY: the scenario leaves what it has entered, in the same mode.
        unsafe { self.locks[lock].leave(context, mode) };
    }

    fn must_be_locked(&self, context: &Context<M>, lock: usize, mode: Mode) {
        let written = self.locks[lock].is_written(context).unwrap_or(mode == Mode::Write);
        let message = match mode {
            _ if !self.locks[lock].is_locked(context) => "a lock is free while its holder looks",
            Mode::Write if !written => "a lock has no writer while its writer looks",
            Mode::Read | Mode::Upgradable if written => "a lock has a writer while a reader looks",
            _ => return,
        };
        judge::<M, _>(Err(Failure::new(Kind::IsLocked, message)))
    }

    fn nesting(&self, cpu: usize) -> Option<&Word<M>> {
        let first = NodeId::new(CpuId::new(cpu as u32)?, 0)?;
        Some(&self.domain.node(first).nesting)
    }

    fn set_nesting(&self) {
        for (cpu, &levels) in self.scenario.nesting.iter().enumerate() {
            if let Some(nesting) = self.nesting(cpu).filter(|_| levels > 0) {
                nesting.store(levels, Relaxed);
            }
        }
    }

    /// What must hold when all contexts have ended.
    fn audit(&self) -> Result<(), Failure> {
        let context = self.context(0);
        for (number, lock) in self.locks.iter().enumerate() {
            let (counted, writes) = (self.data[number].read(), trace::writes(number));
            if counted != writes {
                let message = format!("{writes} sections counted {counted}");
                return Err(Failure::new(Kind::Count, message));
            }
            if !trace::is_freed(number) && lock.is_locked(&context) {
                return Err(Failure::new(Kind::IsLocked, "a lock is taken and no context is left"));
            }
        }
        if let Some(count) =
            context.buckets().iter().map(SleepBucket::counted).find(|count| *count > 0)
        {
            let message = format!("a bucket counts {count} sleepers and no context is left");
            return Err(Failure::new(Kind::Count, message));
        }
        trace::must_be_gone()?;
        trace::must_rest()?;
        trace::must_agree()?;
        for (cpu, &levels) in self.scenario.nesting.iter().enumerate() {
            let left = self.nesting(cpu).map(|word| word.load(Relaxed));
            if left != Some(levels) {
                let message = format!("CPU {cpu} began at nesting {levels} and ends at {left:?}");
                return Err(Failure::new(Kind::Nesting, message));
            }
        }
        Ok(())
    }
}
