//! The state diagrams of the locks, as their files document them, and what counts as arriving.

mod rwlock;

use qspin_core::locks::{Family, Lock, Waits};
use qspin_core::node::NodeId;
use qspin_core::tuning::Part;
use qspin_core::word::{self, Kind, LOCKED, LOCKED_MASK, NO_STEAL, PENDING, SLEEPER, TAIL_MASK};

use crate::trace::{Reached, Rules};

/// The rules of a lock of the register: those of its kind, of which it promises no more than it says there. Of a
/// kind that has no diagram here nothing is known but that it excludes.
#[must_use]
pub fn of(lock: &Lock) -> Rules {
    let reads = |part| lock.reads.contains(&part);
    let halts = lock.waits == Waits::Halts;
    let rules = match (lock.family, lock.shared) {
        (Family::Flag, false) => FLAG,
        (Family::Ticket, false) if halts => TICKET_HALTING,
        (Family::Ticket, false) => TICKET,
        (Family::Mcs, false) if !halts => MCS,
        (Family::Sleeping, false) => MUTEX,
        (Family::Sleeping, true) => RWLOCK,
        (Family::Queued, true) if halts => RW_HALTING,
        (Family::Queued, true) => RW,
        (Family::Queued, false) => match (halts, lock.near_first) {
            (false, false) => QUEUED,
            (false, true) => CNA,
            (true, false) if reads(Part::Culled) => CULLED,
            (true, false) if reads(Part::Stealing) => STEALING,
            (true, false) => HALTING,
            (true, true) if reads(Part::Culled) => CNA_CULLED,
            (true, true) => CNA_HALTING,
        },
        _ => ANYTHING,
    };
    Rules { fifo: rules.fifo && lock.fifo, ..rules }
}

const fn never(_: usize, _: u32, _: u32) -> bool {
    false
}

const fn no_order(legal: fn(usize, u32, u32) -> bool) -> Rules {
    Rules { legal, ..NOTHING }
}

const NOTHING: Rules = Rules {
    legal: never,
    arrives: never,
    departs: never,
    placeless: never,
    announces: never,
    fifo: false,
    one_entry: false,
    numbered: |_, _, _| false,
    admits: |_, _| true,
    forbids: |_, _, _| None,
    replaces: |_, _| false,
    near_first: false,
    rests: |_, word| word == 0,
};

/// A newcomer makes its node the tail. The head that leaves the tail of a secondary queue takes the
/// lock in the same step.
const fn queues(from: u32, to: u32) -> bool {
    (from ^ to) & TAIL_MASK != 0 && to & TAIL_MASK != 0 && (from ^ to) & !TAIL_MASK == 0
}

/// The native queued lock: first come, first served among those that won the free lock, the
/// pending bit or a place in the queue.
pub const QUEUED: Rules = Rules {
    legal: |_, from, to| Kind::Native.is_legal(from, to),
    arrives: |_, from, to| {
        let took_free = from == 0 && to == LOCKED;
        let won_pending = from & !LOCKED_MASK == 0 && to == from | PENDING;
        took_free || won_pending || queues(from, to)
    },
    fifo: true,
    one_entry: true,
    ..NOTHING
};

/// The strict halting lock: the same order, but a pending waiter that gives up lines up again.
pub const HALTING: Rules = Rules {
    legal: |_, from, to| Kind::Halting.is_legal(from, to),
    departs: |_, from, to| to == from & !PENDING && from != to,
    ..QUEUED
};

/// With stealing: no order, but no newcomer passes a head that forbids it, unless it has no place in
/// any queue.
pub const STEALING: Rules = Rules {
    legal: |_, from, to| Kind::Stealing.is_legal(from, to),
    placeless: |_, from, to| word::is_placeless(from, to),
    forbids: |_, from, to| forbids(from, to).then_some(Reached::HeadForbids),
    one_entry: true,
    ..NOTHING
};

const fn forbids(from: u32, to: u32) -> bool {
    from & NO_STEAL == 0 && to & NO_STEAL != 0
}

/// With stealing and culling.
pub const CULLED: Rules = Rules {
    legal: |_, from, to| Kind::Culled.is_legal(from, to),
    forbids: |_, from, to| match (from & PENDING, from & TAIL_MASK) {
        _ if !forbids(from, to) => None,
        (0, _) => Some(Reached::HeadForbids),
        (_, 0) => Some(Reached::AwakeForbids),
        // Either of them.
        _ => None,
    },
    // A release past a head that sleeps counts a turn, of which a context without a number has none.
    numbered: |_, from, to| from & LOCKED != 0 && to & LOCKED == 0 && to & SLEEPER != 0,
    ..STEALING
};

/// The NUMA-aware lock: not first come, first served.
pub const CNA: Rules = Rules {
    legal: |_, from, to| Kind::Native.is_legal_with_secondary(from, to),
    replaces: |from, to| Kind::Native.replaces_tail(from, to),
    fifo: false,
    near_first: true,
    ..QUEUED
};

/// The same where waiters halt.
pub const CNA_HALTING: Rules = Rules {
    legal: |_, from, to| Kind::Halting.is_legal_with_secondary(from, to),
    replaces: |from, to| Kind::Halting.replaces_tail(from, to),
    departs: HALTING.departs,
    ..CNA
};

/// The same with stealing and culling. Only a waiter in the queue has a place in the order.
pub const CNA_CULLED: Rules = Rules {
    legal: |_, from, to| Kind::Culled.is_legal_with_secondary(from, to),
    replaces: |from, to| Kind::Culled.replaces_tail(from, to),
    arrives: |_, from, to| queues(from, to),
    near_first: true,
    ..CULLED
};

/// Test-and-set locks of every kind: 0, and what their holder writes.
pub const FLAG: Rules = no_order(|_, from, to| (from == 0) != (to == 0));

const ASLEEP: u32 = 1;
const SERVING: u32 = 0xfffe;
const DRAW: u32 = 1 << 17;

const fn is_free(word: u32) -> bool {
    word >> 17 == (word & SERVING) >> 1
}

/// A draw, of a free lock also one that clears the mark, or the next ticket while there is an owner.
const fn is_ticket_step(from: u32, to: u32) -> bool {
    let draws = to == from.wrapping_add(DRAW);
    let takes = is_free(from) && to == from.wrapping_add(DRAW) & !ASLEEP;
    let next_served = (from & SERVING).wrapping_add(2) & SERVING;
    let serves = !is_free(from) && to == from & !SERVING | next_served;
    draws || takes || serves
}

/// The ticket lock.
pub const TICKET: Rules = Rules {
    legal: |_, from, to| from & ASLEEP == 0 && is_ticket_step(from, to),
    arrives: |_, from, to| from >> 17 != to >> 17,
    fifo: true,
    rests: |_, word| is_free(word),
    ..NOTHING
};

/// The same, with a waiter that marks the word while it has a ticket.
pub const TICKET_HALTING: Rules = Rules {
    legal: |_, from, to| is_ticket_step(from, to) || !is_free(from) && to == from | ASLEEP,
    ..TICKET
};

const HELD: u32 = 1;

const fn is_node(tail: u32) -> bool {
    tail >= NodeId::FIRST
}

/// The MCS lock: word 0 is the tail, word 1 the holder's link.
pub const MCS: Rules = Rules {
    legal: |index, from, to| match (index, from, to) {
        (0, 0, HELD) | (0, HELD, 0) => true,
        (0, _, to) if is_node(to) => from != to,
        (0, from, HELD) => is_node(from),
        (0, ..) => false,
        (_, _, to) => to == 0 || is_node(to),
    },
    arrives: |index, from, to| index == 0 && (is_node(to) || from == 0),
    fifo: true,
    ..NOTHING
};

const WRITER: u32 = 1;
const HEAD_ASLEEP: u32 = 2;
const OPEN: u32 = 4;
const WAITING: u32 = 1 << 8;
const READER: u32 = 1 << 9;

/// Steps of a reader-writer lock's own word while its head is awake.
const fn is_rw_step(from: u32, to: u32) -> bool {
    let counts = to == from.wrapping_add(READER) || from == to.wrapping_add(READER);
    let announces = from & WAITING == 0 && to == from | WAITING;
    let takes = from & !WAITING == 0 && to == WRITER;
    let leaves = from & WRITER == WRITER && to == from & !WRITER;
    counts || announces || takes || leaves
}

/// The reader-writer lock: word 0 its own, word 1 the queue's.
pub const RW: Rules = Rules {
    legal: |index, from, to| match index {
        0 => (from | to) & (HEAD_ASLEEP | OPEN) == 0 && is_rw_step(from, to),
        _ => Kind::Native.is_legal(from, to),
    },
    announces: |index, from, to| index == 0 && from & WAITING == 0 && to & WAITING != 0,
    admits: |_, word| word & (WRITER | WAITING) == 0,
    ..NOTHING
};

/// The same where waiters halt: the head falls asleep, with or without others that may pass it; and past one that sleeps so, a
/// newcomer takes a free lock. Its queue may be stolen.
pub const RW_HALTING: Rules = Rules {
    legal: |index, from, to| {
        if index != 0 {
            return Kind::Stealing.is_legal(from, to);
        }
        let sleeps = from & (HEAD_ASLEEP | OPEN) == 0 && to & !OPEN == from | HEAD_ASLEEP;
        let wakes = from & HEAD_ASLEEP != 0 && to == from & !(HEAD_ASLEEP | OPEN);
        let passes =
            from & OPEN != 0 && from & !(WAITING | OPEN) == HEAD_ASLEEP && to == from | WRITER;
        let fits = to & OPEN == 0 || to & HEAD_ASLEEP != 0;
        fits && (sleeps || wakes || passes || is_rw_step(from, to))
    },
    // A sleeping writer lets readers into a free lock, and into none that has readers.
    admits: |_, word| word & (WRITER | WAITING) == 0 || word == WAITING | HEAD_ASLEEP | OPEN,
    placeless: |index, from, to| index != 0 && word::is_placeless(from, to),
    forbids: |index, from, to| (index != 0 && forbids(from, to)).then_some(Reached::HeadForbids),
    one_entry: true,
    ..NOTHING
};

/// The same where a head is the heir at once: it lets none pass.
pub const RW_HEIR: Rules = Rules {
    legal: |index, from, to| (RW_HALTING.legal)(index, from, to) && (index != 0 || to & OPEN == 0),
    ..RW_HALTING
};

/// No diagram at all: for planted bugs whose own fault is to be found by something else.
pub const ANYTHING: Rules = Rules { rests: |_, _| true, ..no_order(|_, _, _| true) };

/// A small queue: word 0 is the tail; a context that makes itself the tail has arrived.
pub const SMALL_QUEUE: Rules =
    Rules { arrives: |index, _, to| index == 0 && to != 0, fifo: true, ..ANYTHING };

const TAKEN: u32 = 1;
const AWAKE: u32 = 2;
const MAX_AWAKE: u32 = 3 * AWAKE;
const HEIR: u32 = 8;
const PLACE: u32 = 0xff << 4;

/// The default mutex: taken where it is free; released with or without its marks; marked while it is taken,
/// or by the release that wakes a waiter. Where it was taken comes and goes with the owner.
pub const MUTEX: Rules = no_order(|_, from, to| {
    let known = (from | to) & !(TAKEN | MAX_AWAKE | HEIR | PLACE) == 0;
    let owned = to & PLACE == 0 || to & TAKEN != 0;
    let expected = to & HEIR == 0 || to & MAX_AWAKE != 0;
    let (before, after) = (from & (MAX_AWAKE | HEIR), to & (MAX_AWAKE | HEIR));
    let one_more = (before & MAX_AWAKE) + AWAKE;
    let one_more = one_more.min(MAX_AWAKE) | before & HEIR;
    let one_less = after == (before & MAX_AWAKE).saturating_sub(AWAKE);
    // Past an heir only a waiter that is counted acquires it, which takes its count and that mark back.
    let passes = after == before && before & HEIR == 0;
    let takes = to & TAKEN & !from != 0 && (passes || one_less || after == 0);
    let wakes = after | HEIR == one_more | HEIR && after & before & HEIR == before & HEIR;
    let hands_over = after == before | HEIR;
    let releases =
        from & TAKEN & !to != 0 && (after == 0 || after == before || wakes || hands_over);
    let stays = (from ^ to) & (TAKEN | PLACE) == 0;
    let counts = before < 2 * AWAKE && after == before + AWAKE;
    let expects = before == 0 && after == AWAKE | HEIR;
    let marks = stays && to & TAKEN != 0 && (counts || hands_over || expects);
    known && owned && expected && (takes || releases || marks || stays && one_less)
});

/// What is made of a mutex, its first word, and of others that have no diagram here.
pub const WITH_MUTEX: Rules = Rules {
    legal: |index, from, to| index != 0 || (MUTEX.legal)(index, from, to),
    rests: |index, word| index != 0 || word == 0,
    ..NOTHING
};

/// The default reader-writer lock: word 0 its own, word 1 the gate.
pub const RWLOCK: Rules = Rules {
    legal: |index, from, to| match index {
        0 => rwlock::is_step(from, to),
        _ => (MUTEX.legal)(index, from, to),
    },
    forbids: |index, from, to| {
        (index == 0 && rwlock::is_heir_reading(from, to)).then_some(Reached::HeirReads)
    },
    ..NOTHING
};

/// The same where no reader is an interrupt: none passes a closed gate.
pub const RWLOCK_ALONE: Rules = Rules {
    legal: |index, from, to| {
        (RWLOCK.legal)(index, from, to) && !(index == 0 && rwlock::passes(from, to))
    },
    ..RWLOCK
};

#[cfg(test)]
mod tests {
    use qspin_core::locks::LOCKS;

    use super::*;

    #[test]
    fn what_the_register_promises_is_held_against_the_lock() {
        for lock in LOCKS {
            let rules = of(lock);
            // Where readers share it, what is checked is that none passes a writer that waits.
            assert_eq!(rules.fifo, lock.fifo && !lock.shared, "{}", lock.name);
            assert_eq!(rules.near_first, lock.near_first, "{}", lock.name);
        }
    }
}
