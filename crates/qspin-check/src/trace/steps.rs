//! Each step of a word, held against what its lock may do.

use super::{
    Arrival, Role, Rules, Trace, WordId, coverage, current, entries, outcomes, paths, secondary,
    with,
};
use crate::failure::{Failure, Kind};
use crate::scenario::When;

/// Notes that the running context changed a word, perhaps in the step that begins its new life,
/// and judges the step. Returns whether what follows is explored in other executions.
///
/// # Errors
/// The state diagram does not have that step.
pub fn stepped(id: WordId, from: u32, to: u32, begins: bool) -> Result<bool, Failure> {
    let slot = current();
    with(|trace| {
        let shared = u64::from(!trace.words[id].private);
        trace.clock += shared;
        let clock = trace.clock;
        let word = &mut trace.words[id];
        word.value = to;
        word.version += 1;
        let (role, part) = (word.role, word.part);
        trace.slots[slot].saw_latest = true;
        trace.slots[slot].clock = clock;
        trace.slots[slot].own_changes += shared;
        outcomes::did(&mut trace.slots[slot], id, to);
        let known = paths::went_on(trace, id, to);
        let Some(rules) = trace.rules else { return Ok(known) };
        if let Some(part) = part.filter(|_| rules.near_first) {
            secondary::stepped(trace, part, from, to, begins)?;
        }
        if role == Role::Entry && rules.one_entry && to != 0 {
            entries::must_be_alone(trace, id)?;
        }
        if let Role::Lock { lock, index } = role {
            of_lock(trace, rules, (lock, index), from, to)?;
        }
        Ok(known)
    })
}

/// The same, of word `index` of a lock.
fn of_lock(
    trace: &mut Trace,
    rules: Rules,
    (lock, index): (usize, usize),
    from: u32,
    to: u32,
) -> Result<(), Failure> {
    let slot = current();
    if let Some((when @ When::Marks, _)) = &mut trace.slots[slot].interrupt {
        *when = When::Operation(0);
    }
    let step = || format!("word {index} stepped from {from:#010x} to {to:#010x}");
    if trace.cpus[slot].is_none() && (rules.numbered)(index, from, to) {
        let message = format!("{}, and its context has no number", step());
        return Err(Failure::new(Kind::State, message));
    }
    let placeless = !trace.everybody_has_a_place && (rules.placeless)(index, from, to);
    if !placeless && !(rules.legal)(index, from, to) {
        return Err(Failure::new(Kind::State, step()));
    }
    if (rules.replaces)(from, to) {
        secondary::replaced_tail(trace, to)?;
    }
    if let Some(place) = (rules.forbids)(index, from, to) {
        coverage::reached(place);
    }
    let lock = &mut trace.locks[lock];
    if index == 0 {
        trace.stamps += 1;
        if (rules.admits)(index, from) {
            lock.admitted = trace.stamps;
        }
        lock.admits = (rules.admits)(index, to);
    }
    if (rules.arrives)(index, from, to) {
        lock.arrivals.push_back(Arrival { slot, passed: 0 });
    }
    if (rules.departs)(index, from, to) {
        lock.arrivals.retain(|arrival| arrival.slot != slot);
    }
    if (rules.announces)(index, from, to) {
        trace.stamps += 1;
        lock.announced = Some(trace.stamps);
    }
    Ok(())
}
