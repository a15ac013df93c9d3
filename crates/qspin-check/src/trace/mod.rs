//! The record of one execution: what every word holds, what each context waits for, and when it came.
//!
//! Both checkers run all threads of an execution on one thread of the operating system and
//! change between them only within their own operations. So the record is a thread-local, it is
//! exact, and it costs the explored program nothing: the checkers do not know of it. What it
//! knows:
//!
//! * **the latest value of each word.** Both checkers append stores to a word's modification
//!   order when they execute them. A waiter that has seen the latest value, and still waits,
//!   need not look again until the word changes: looking would only multiply equal executions.
//! * **the waits.** When every context that has not ended waits for a word that none has
//!   changed since, that is a deadlock, found at once instead of at some limit.
//! * **every step of a lock word**, to be held against its state diagram ([`Rules`]).
//! * **the order of arrival and of acquisition**, and the present owners.

mod coverage;
mod deadlines;
mod entries;
mod notified;
mod outcomes;
mod paths;
mod rest;
mod rules;
mod secondary;
mod sections;
mod steps;
mod waits;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use qspin_core::site::Site;

pub use coverage::{Coverage, Reached, add_events, begin_check, coverage, interrupted};
pub use deadlines::{
    forget_deadline, fork, generation, is_gone, is_late, oversleeps, set_deadline, set_gone,
};
pub use entries::must_be_gone;
pub use notified::{must_agree, notified, wait_ended};
pub use outcomes::{came_to_an_end, prunes, set_pruning, take_outcomes};
pub use paths::woke_in_vain;
pub use rest::must_rest;
pub use rules::Rules;
pub use secondary::{NodeWords, know_node, refused};
pub use sections::{clock, entered, freed, is_freed, left, starts, writes, wrote_again};
pub use steps::stepped;
pub use waits::{
    Turn, VainHalt, Wait, backs_off_in_vain, finished, halts_in_vain, looked_in_vain, may_look,
    saw_latest, set_trying, signal, waits_for, waits_for_any, waits_for_arrivals, waits_for_kick,
    waits_for_moved, waits_for_others, waits_for_signals,
};

use crate::failure::{Failure, Kind};
use crate::scenario::{Scenario, When};
use crate::weakening::Weakening;

/// What a word is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Word `index` of lock `lock`.
    Lock {
        /// The number of the lock.
        lock: usize,
        /// Which of its words.
        index: usize,
    },
    /// A word of a node.
    Node,
    /// The address in an entry of the table of halted waiters.
    Entry,
    /// A word of a sleeper's record, or of a bucket of sleepers.
    Sleeper,
    /// A hint that says whether a waiter sleeps in a bucket.
    Hint,
    /// A word of the harness.
    Harness,
}

/// The number of a word in its execution.
pub type WordId = usize;

#[derive(Debug)]
struct Word {
    role: Role,
    value: u32,
    /// How often it was written.
    version: u64,
    /// Whether its context alone reads it: what it writes there is no change that others could wait for.
    private: bool,
    part: Option<(usize, secondary::Part)>,
}

/// What an armed interrupt does when it comes.
pub type Handler = Box<dyn FnOnce()>;

#[derive(Default)]
struct Slot {
    done: bool,
    trying: bool,
    wait: Option<Wait>,
    /// Whether the last value that it loaded was the latest.
    saw_latest: bool,
    /// How often in a row it went on waiting after it had seen an older one.
    old_polls: u32,
    /// Whether it waits for a kick.
    halted: bool,
    /// How many of its halts are still to return at once.
    vain_halts: u32,
    /// They return once every other context has ended or waits.
    late: bool,
    /// The word and its version of its last bounded waits that failed, and how many they were.
    vain: Option<(WordId, u64, u32)>,
    /// The trace's clock at its last operation.
    clock: u64,
    /// How many changes are its own.
    own_changes: u64,
    /// How many changes of others there had been when it dozed last, and how often it has dozed since.
    dozed: (u64, u32),
    steps: u32,
    history: outcomes::History,
    interrupt: Option<(When, Handler)>,
    /// What it does before its next heavy barrier, and after it.
    at_barrier: [Option<Handler>; 2],
    /// Whether its next operation may come before its last one.
    out_of_order: bool,
    /// Looks at the clock that it has before its deadline, and whether it has had an odd number when it set out.
    deadline: Option<(u32, bool)>,
}

/// A context waits for a lock.
#[derive(Debug, Clone, Copy)]
struct Arrival {
    slot: usize,
    /// How many that came later have been served since.
    passed: u32,
}

#[derive(Debug, Default)]
struct Lock {
    arrivals: VecDeque<Arrival>,
    writers: u32,
    readers: u32,
    /// Of the readers, those that may become the writer.
    upgradable: u32,
    writes: u32,
    freed: bool,
    /// Whether it admits a reader now.
    admits: bool,
    /// The last stamp at which it did before.
    admitted: u64,
    /// The stamp at which a writer began to wait.
    announced: Option<u64>,
}

/// Steps of one context after which an execution has lost its way.
const MAX_STEPS: u32 = 4000;

#[derive(Default)]
struct Trace {
    rules: Option<Rules>,
    weakening: Option<Weakening>,
    check_fifo: bool,
    everybody_has_a_place: bool,
    /// How often a waiter may be passed, where the order promises that.
    bypass: Option<u32>,
    words: Vec<Word>,
    slots: Vec<Slot>,
    /// The CPU of each context.
    cpus: Vec<Option<u32>>,
    /// The words that name the owners of buckets in which no interrupt comes.
    uninterrupted: Vec<WordId>,
    locks: Vec<Lock>,
    secondary: secondary::Secondary,
    /// Counts sections.
    sections: u64,
    /// Counts changes of any word.
    clock: u64,
    /// Counts beginnings of acquisitions and announcements of writers.
    stamps: u64,
    place: paths::Place,
    /// Whether every execution is explored, so that equal ones are worth finding.
    exhaustive: bool,
    /// How often the process has forked.
    forks: u32,
    /// A context that is gone after a fork unwinds: what it does then is not done.
    gone: bool,
    /// How many signals there were.
    signals: u32,
    /// How many waiters were moved from one queue to another.
    moved: u64,
    notified: notified::Notified,
    touched: Option<Touched>,
    failure: Option<Failure>,
}

/// What the last access that a checker may object to was made to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Touched {
    /// The protected data.
    Data,
    /// A word, within or at the beginning of a life.
    Word(Role),
}

thread_local! {
    static TRACE: RefCell<Trace> = RefCell::default();
    static CURRENT: Cell<usize> = const { Cell::new(0) };
    static MAKING: Cell<Role> = const { Cell::new(Role::Harness) };
}

fn with<R>(f: impl FnOnce(&mut Trace) -> R) -> R {
    TRACE.with(|trace| f(&mut trace.borrow_mut()))
}

/// Begins the record of an execution of `scenario`, in which a waiter may be passed by at most
/// `bypass` others.
pub fn begin(
    rules: Rules,
    weakening: Option<Weakening>,
    scenario: &Scenario,
    exhaustive: bool,
    bypass: Option<u32>,
) {
    let halts_in_vain = |slot| scenario.vain_context.is_none_or(|one| one == slot);
    let slot = |slot| Slot {
        vain_halts: if halts_in_vain(slot) { scenario.vain_halts } else { 0 },
        late: scenario.vain_context.is_some(),
        ..Slot::default()
    };
    let fresh = Trace {
        rules: Some(rules),
        weakening,
        exhaustive,
        check_fifo: scenario.fifo && rules.fifo,
        everybody_has_a_place: scenario.fifo,
        bypass: bypass.filter(|_| scenario.fifo),
        cpus: scenario.threads.iter().map(|thread| thread.cpu).collect(),
        slots: (0..scenario.threads.len()).map(slot).collect(),
        locks: (0..scenario.locks).map(|_| Lock { admits: true, ..Lock::default() }).collect(),
        ..Trace::default()
    };
    let old = with(|trace| std::mem::replace(trace, fresh));
    // Outside the borrow: what it holds may look into the trace when dropped.
    drop(old);
    CURRENT.set(0);
}

/// Ends the record, and with it what it keeps alive.
pub fn end() {
    let old = with(std::mem::take);
    drop(old);
}

/// The context that runs.
#[must_use]
pub fn current() -> usize {
    CURRENT.get()
}

/// States that `slot` is the context that runs: the first thing that a thread does.
pub fn run_as(slot: usize) {
    CURRENT.set(slot);
}

/// Runs something that may switch to another context and come back.
pub fn keep<R>(f: impl FnOnce() -> R) -> R {
    let slot = CURRENT.get();
    let result = f();
    CURRENT.set(slot);
    result
}

/// Runs `make`, whose words have this role; a lock's words are counted from 0.
pub fn making<R>(role: Role, make: impl FnOnce() -> R) -> R {
    let before = MAKING.replace(role);
    let result = make();
    MAKING.set(before);
    result
}

/// The role of the words that are being made.
#[must_use]
pub fn role() -> Role {
    MAKING.get()
}

/// Registers a word.
pub fn register(value: u32) -> WordId {
    let role = MAKING.get();
    if let Role::Lock { lock, index } = role {
        MAKING.set(Role::Lock { lock, index: index + 1 });
    }
    with(|trace| {
        trace.words.push(Word { role, value, version: 0, private: false, part: None });
        trace.words.len() - 1
    })
}

/// Which of the words of its lock this one is; 0 for a word that is no part of a lock.
pub fn index_in_lock(id: WordId) -> usize {
    match with(|trace| trace.words[id].role) {
        Role::Lock { index, .. } => index,
        _ => 0,
    }
}

/// States that no interrupt comes while this word has the token of the running context's CPU: its number and 1.
pub fn is_uninterrupted(id: WordId) {
    with(|trace| trace.uninterrupted.push(id));
}

/// States that no other context reads this word.
pub fn is_private(id: WordId) {
    with(|trace| trace.words[id].private = true);
}

/// The ordering at a site in this execution.
pub fn ordering(site: Site, order: Ordering) -> Ordering {
    coverage::consulted(site, order);
    match with(|trace| trace.weakening) {
        Some(weakening) if weakening.site == site => weakening.to,
        _ => order,
    }
}

/// Takes the interrupt that is due before the next operation of this context, if one is.
/// Also counts the operation.
///
/// # Errors
/// The context has taken too many steps.
pub fn before_operation() -> Result<Option<Handler>, Failure> {
    let slot = current();
    with(|trace| {
        let token = trace.cpus[slot].map(|cpu| cpu + 1);
        let defers = trace.uninterrupted.iter().any(|&id| Some(trace.words[id].value) == token);
        let slot = &mut trace.slots[slot];
        slot.steps += 1;
        if slot.steps > MAX_STEPS {
            return Err(Failure::new(Kind::Livelock, "a context does not come to an end"));
        }
        match &mut slot.interrupt {
            Some((When::Operation(0), _)) if defers => Ok(None),
            Some((When::Operation(0), _)) => Ok(slot.interrupt.take().map(|(_, handler)| handler)),
            Some((When::Operation(left), _)) => {
                *left -= 1;
                Ok(None)
            }
            _ => Ok(None),
        }
    })
}

/// Lets `handler` interrupt this context.
pub fn arm(at: When, handler: Handler) {
    let slot = current();
    with(|trace| trace.slots[slot].interrupt = Some((at, handler)));
}

/// Lets the running context do the first before its next heavy barrier, and the second after that.
pub fn arm_barrier(before: Handler, after: Handler) {
    let slot = current();
    with(|trace| trace.slots[slot].at_barrier = [Some(before), Some(after)]);
}

/// Takes what the running context does before a heavy barrier, or `after` it.
#[must_use]
pub fn at_barrier(after: bool) -> Option<Handler> {
    let slot = current();
    with(|trace| trace.slots[slot].at_barrier[usize::from(after)].take())
}

/// Takes the handler that is armed for a halt, as the running context is about to.
#[must_use]
pub fn at_halt() -> Option<Handler> {
    let slot = current();
    with(|trace| {
        let interrupt = &mut trace.slots[slot].interrupt;
        let due = interrupt.as_ref().is_some_and(|(when, _)| *when == When::Halts);
        due.then(|| interrupt.take()).flatten().map(|(_, handler)| handler)
    })
}

/// Whether the armed interrupt did not come; disarms it.
pub fn disarm() -> bool {
    let slot = current();
    let left = with(|trace| trace.slots[slot].interrupt.take());
    left.is_some()
}

/// Notes an access that the checker may object to.
pub fn touching(what: Touched) {
    with(|trace| trace.touched = Some(what));
}

/// The same for a word.
///
/// # Errors
/// It is that of a lock that was freed.
pub fn touching_word(id: WordId) -> Result<(), Failure> {
    let slot = current();
    with(|trace| {
        let role = trace.words[id].role;
        trace.touched = Some(Touched::Word(role));
        match role {
            Role::Lock { lock, index } if trace.locks[lock].freed => {
                let message = format!("context {slot} uses word {index} of lock {lock}");
                Err(Failure::new(Kind::Freed, message))
            }
            _ => Ok(()),
        }
    })
}

/// What was last noted by [`touching`].
#[must_use]
pub fn touched() -> Option<Touched> {
    with(|trace| trace.touched)
}

/// Notes that a load of the running context returned `value`. Returns whether what follows is
/// explored in other executions.
pub fn loaded(id: WordId, value: u32) -> bool {
    let slot = current();
    with(|trace| {
        let latest = trace.words[id].value == value;
        let clock = trace.clock;
        let slot = &mut trace.slots[slot];
        slot.saw_latest = latest;
        slot.clock = clock;
        outcomes::did(slot, id, value);
        paths::went_on(trace, id, value)
    })
}

/// Nothing keeps the next operation of the running context from coming before its last one.
pub fn lacks_light_barrier() {
    let slot = current();
    with(|trace| trace.slots[slot].out_of_order = true);
}

/// The running context has done its next operation.
pub fn has_acted() {
    let slot = current();
    with(|trace| {
        if let Some(slot) = trace.slots.get_mut(slot) {
            slot.out_of_order = false;
        }
    });
}

/// Whether an interrupt finds a context between two operations that are not in their order.
#[must_use]
pub fn is_out_of_order(slot: usize) -> bool {
    with(|trace| trace.slots[slot].out_of_order)
}

/// Whether a context has ended.
#[must_use]
pub fn has_ended(slot: usize) -> bool {
    with(|trace| trace.slots[slot].done)
}

/// The latest value of a word.
#[must_use]
pub fn latest(id: WordId) -> u32 {
    with(|trace| trace.words[id].value)
}

/// Notes the counterexample; the first one counts.
pub fn failed(failure: Failure) {
    with(|trace| {
        trace.failure.get_or_insert(failure);
    });
}

/// Whether this execution has a counterexample.
#[must_use]
pub fn has_failed() -> bool {
    with(|trace| trace.failure.is_some())
}

/// Takes the counterexample.
pub fn take_failure() -> Option<Failure> {
    with(|trace| trace.failure.take())
}
