//! A simulation in progress: its state, its nodes, and the loop that lets its strands run.

use std::cell::{Cell, RefCell, RefMut};
use std::ptr;
use std::rc::Rc;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use qspin_core::node::{LEVELS, Node};
use qspin_core::tuning::Tuning;
use qspin_core::waiting::Bucket;

use super::State;
use crate::failure::Failure;
use crate::machine::{Memory, Shape};
use crate::platform::{SimAddress, SimEvents, SimWord, Sleeping};
use crate::scenario::Scenario;

/// The stack of a simulated CPU. The locks need a fraction of it; only pages that are used count.
const STACK_BYTES: usize = 32 << 10;

type Fiber = Coroutine<(), (), (), DefaultStack>;

/// A simulation.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) state: RefCell<State>,
    pub(crate) tuning: Tuning,
    pub(crate) events: SimEvents,
    /// The first node of each CPU.
    pub(crate) nodes: Box<[Node<SimWord>]>,
    pub(crate) hash: Box<[Bucket<SimWord, SimAddress>]>,
    /// The records of sleepers beside a lock, as the sleeping family keeps them.
    pub(crate) sleeping: Sleeping,
    pub(crate) memory: Memory,
    pub(crate) shape: Shape,
    /// Each strand's way back to the loop (ENGINE-2).
    yielders: Box<[Cell<*const Yielder<(), ()>>]>,
}

thread_local! {
    static CURRENT: RefCell<Option<Rc<World>>> = const { RefCell::new(None) };
}

/// The simulation that runs on this thread (ENGINE-1).
#[inline]
pub(crate) fn current() -> Rc<World> {
    CURRENT.with_borrow(|world| {
        Rc::clone(world.as_ref().expect("a simulated word is used outside of a simulation"))
    })
}

/// Makes a world the current one of this thread, until it is dropped (ENGINE-1).
struct Stage(Option<Rc<World>>);

impl Stage {
    fn set(world: &Rc<World>) -> Self {
        Self(CURRENT.replace(Some(Rc::clone(world))))
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

impl World {
    /// A world for `scenario`. `memory` already holds its locks and data, and `locks` of them are locks.
    pub(crate) fn new(
        scenario: &Scenario,
        tuning: Tuning,
        locks: usize,
        mut memory: Memory,
        seed: u64,
    ) -> Self {
        let cpus = scenario.cpus as usize;
        // Only one nesting level is used; the table is as large as a real machine's, which has all.
        let nodes: Box<[_]> = (0..cpus).map(|_| Node::new()).collect();
        let waiters = cpus * LEVELS as usize;
        let buckets = waiters.div_ceil(Bucket::<(), ()>::ENTRIES).next_power_of_two();
        let hash: Box<[_]> = (0..buckets).map(|_| Bucket::new()).collect();
        memory.add(&nodes);
        memory.add(&hash);
        let sleeping = Sleeping::new(cpus, &mut memory);
        Self {
            state: RefCell::new(State::new(scenario, locks, &memory, seed)),
            tuning,
            events: SimEvents::default(),
            nodes,
            hash,
            sleeping,
            memory,
            shape: scenario.machine.shape.clone(),
            yielders: (0..cpus).map(|_| Cell::new(ptr::null())).collect(),
        }
    }

    /// Puts the current strand to sleep until it resumes.
    ///
    /// The events of the meantime are processed here, on its stack: often this strand itself is the next to
    /// resume, and then no coroutine is switched.
    pub(crate) fn suspend<'a>(&'a self, mut state: RefMut<'a, State>) -> RefMut<'a, State> {
        let me = state.current;
        let next = state.advance();
        if matches!(next, Ok(Some(strand)) if strand == me) {
            return state;
        }
        state.next = Some(next);
        // ENGINE-3.
        drop(state);
        // SAFETY: ENGINE-2: the coroutine of the current strand runs this code, so its yielder is valid, and
        // set.
        unsafe { &*self.yielders[me].get() }.suspend(());
        let mut state = self.state.borrow_mut();
        state.switches += 1;
        state
    }

    /// Runs `body` on every simulated CPU, until all have returned.
    pub(crate) fn run(self: &Rc<Self>, body: &Rc<impl Fn(u32) + 'static>) -> Result<(), Failure> {
        let stage = Stage::set(self);
        let mut fibers = Vec::with_capacity(self.yielders.len());
        for cpu in 0..self.yielders.len() {
            let stack = DefaultStack::new(STACK_BYTES).map_err(|error| {
                Failure::Host(format!("no stack for simulated CPU {cpu}: {error}"))
            })?;
            let (world, body) = (Rc::downgrade(self), Rc::clone(body));
            fibers.push(Fiber::with_stack(stack, move |yielder, ()| {
                if let Some(world) = world.upgrade() {
                    world.yielders[cpu].set(ptr::from_ref(yielder));
                }
                body(cpu as u32);
            }));
        }
        self.state.borrow_mut().progress.unfinished = fibers.len();
        let result = self.run_to_the_end(&mut fibers);
        // Coroutines that have not returned are unwound, while this world is still the current one.
        drop(fibers);
        drop(stage);
        result
    }

    fn run_to_the_end(&self, fibers: &mut [Fiber]) -> Result<(), Failure> {
        loop {
            let next = {
                let mut state = self.state.borrow_mut();
                state.next.take().unwrap_or_else(|| state.advance())
            };
            let Some(strand) = next? else { return Ok(()) };
            let result = fibers[strand].resume(());
            let mut state = self.state.borrow_mut();
            if let CoroutineResult::Return(()) = result {
                state.finished(strand);
            }
            if let Some(failure) = state.failure.take() {
                return Err(failure);
            }
        }
    }
}
