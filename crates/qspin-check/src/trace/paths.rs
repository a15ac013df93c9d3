//! Which executions are the same as one that is explored anyway.
//!
//! Loom takes a waiter that yields for one that does something. Where it may run next, it is
//! tried there: it finds that nothing has changed, yields again, and everything that could
//! happen without it is explored once more. Two such waiters even make room for each other for
//! ever. Executions that differ only in such vain turns are equal, and one of them is explored:
//! the first that goes on from a point, since loom goes depth first and takes first what it
//! takes by default.
//!
//! A *point* is what has been done so far, in its order; a *spot* is a point and the vain turns
//! since. What is remembered, over all executions of a check:
//!
//! * which context left a spot first. Another one's vain turn there begins nothing new.
//! * the spot from which a point was first left by doing something. A context that does something at
//!   the same point, but at another spot, begins nothing new.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::{Trace, WordId, current, with};

/// The context that left a spot first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum First {
    DidSomething,
    InVain(usize),
}

/// Points and spots are mixed already. To hash them once more took a twentieth of a check's time.
#[derive(Default)]
struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {
        unreachable!("a key is a u64");
    }
    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

type ByMixed<V> = HashMap<u64, V, BuildHasherDefault<Mixed>>;

#[derive(Default)]
struct Known {
    left: ByMixed<First>,
    spot_of: ByMixed<u64>,
}

thread_local! {
    static KNOWN: RefCell<Known> = RefCell::default();
}

/// Forgets everything.
pub(super) fn reset() {
    KNOWN.take();
}

/// Where an execution is.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Place {
    point: u64,
    spot: u64,
}

pub(super) fn mix(path: u64, what: u64) -> u64 {
    let mixed = (path ^ what).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ (mixed >> 32)
}

/// The running context did something. Returns whether that begins nothing new.
pub(super) fn went_on(trace: &mut Trace, id: WordId, value: u32) -> bool {
    if !trace.exhaustive {
        return false;
    }
    let Place { point, spot } = trace.place;
    let who = (current() as u64) << 56 | (id as u64) << 32;
    let next = mix(point, who | u64::from(value));
    trace.place = Place { point: next, spot: next };
    KNOWN.with(|known| {
        let mut known = known.borrow_mut();
        known.left.entry(spot).or_insert(First::DidSomething);
        *known.spot_of.entry(point).or_insert(spot) != spot
    })
}

/// The running context woke and found that nothing has changed. Returns whether that begins
/// nothing new.
pub fn woke_in_vain() -> bool {
    let slot = current();
    with(|trace| {
        if !trace.exhaustive {
            return false;
        }
        let spot = trace.place.spot;
        trace.place.spot = mix(spot, !(slot as u64));
        let me = First::InVain(slot);
        KNOWN.with(|known| *known.borrow_mut().left.entry(spot).or_insert(me) != me)
    })
}
