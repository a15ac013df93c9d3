//! The secondary queue of a NUMA-aware lock, as the words of the nodes tell it.
//!
//! Which waiters are in it is not written in one place: the head's node names its first and its last. So the
//! record follows the steps of those words, and knows at any time which waiters have been put aside. Against
//! that it holds what a kick ahead and a tail that is replaced must heed, and notes which of the
//! places have been reached that a check of such a lock is made for.

use qspin_core::node::{CLAIMED, HALTED, NodeId, RUNNING, WAITING};
use qspin_core::word;

use super::coverage::{Reached, reached};
use super::{Trace, WordId, with};
use crate::failure::{Failure, Kind};

/// The words of a node that tell about the order.
#[derive(Debug, Clone, Copy)]
pub struct NodeWords {
    /// The node.
    pub id: NodeId,
    /// Its words of these names.
    pub locked: WordId,
    /// The link.
    pub next: WordId,
    /// Whether its owner is halted.
    pub state: WordId,
    /// The first of the secondary queue.
    pub second_head: WordId,
    /// The last of it.
    pub second_tail: WordId,
}

/// What a word of a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    State,
    SecondHead,
    SecondTail,
}

/// What is known about the nodes.
#[derive(Debug, Default)]
pub(super) struct Secondary {
    nodes: Vec<NodeWords>,
    /// The waiters in the secondary queue of some lock.
    aside: Vec<NodeId>,
    /// Nodes whose owner became the head while it was halted.
    claimed: Vec<NodeId>,
    /// Heads that were the last of the main queue, and have made the secondary one the main one.
    rested: Vec<NodeId>,
}

/// Says which words are those of a node.
pub fn know_node(words: NodeWords) {
    with(|trace| {
        let index = trace.secondary.nodes.len();
        for (word, part) in [
            (words.state, Part::State),
            (words.second_head, Part::SecondHead),
            (words.second_tail, Part::SecondTail),
        ] {
            trace.words[word].part = Some((index, part));
        }
        trace.secondary.nodes.push(words);
    });
}

fn find(trace: &Trace, id: NodeId) -> Option<&NodeWords> {
    trace.secondary.nodes.iter().find(|node| node.id == id)
}

fn named(number: u32) -> Option<NodeId> {
    NodeId::from_number(number)
}

/// A word of a node has stepped; `begins` with a new life.
pub(super) fn stepped(
    trace: &mut Trace,
    (index, part): (usize, Part),
    from: u32,
    to: u32,
    begins: bool,
) -> Result<(), Failure> {
    let node = trace.secondary.nodes[index];
    match part {
        Part::State if begins => {
            trace.secondary.claimed.retain(|&id| id != node.id);
            trace.secondary.rested.retain(|&id| id != node.id);
        }
        Part::State if to == CLAIMED => trace.secondary.claimed.push(node.id),
        Part::State => {
            // The owner itself wakes by the same step; for it the queue is arranged no otherwise.
            let waits = trace.words[node.locked].value == WAITING;
            let marked = from == HALTED && to == RUNNING && !is_owner(trace, node.id);
            if marked && waits {
                return kicked_ahead(trace, node.id);
            }
        }
        Part::SecondHead if to == 0 && !begins => leave(trace, &node, named(from)),
        Part::SecondHead => {}
        Part::SecondTail => {
            if let Some(last) = named(to).filter(|_| !begins) {
                put_aside(trace, node.id, last);
            }
        }
    }
    Ok(())
}

fn is_owner(trace: &Trace, id: NodeId) -> bool {
    trace.cpus[super::current()] == Some(id.cpu().number())
}

/// `last` is the last of the secondary queue that `head` has, by being moved there, or because the
/// queue was handed on.
fn put_aside(trace: &mut Trace, head: NodeId, last: NodeId) {
    if find(trace, last).is_some_and(|node| trace.words[node.state].value == HALTED) {
        reached(Reached::HaltedAside);
    }
    if !trace.secondary.aside.contains(&last) {
        trace.secondary.aside.push(last);
        if trace.secondary.rested.contains(&head) {
            reached(Reached::FartherStay);
        } else if trace.secondary.claimed.contains(&head) {
            reached(Reached::ClaimedArranged);
        }
    }
}

/// The secondary queue of `head`, which begins with `first`, becomes part of the main one.
fn leave(trace: &mut Trace, head: &NodeWords, first: Option<NodeId>) {
    let last = named(trace.words[head.second_tail].value);
    if named(trace.words[head.next].value) == first {
        trace.secondary.rested.push(head.id);
    } else {
        reached(Reached::FlushedInFront);
    }
    let mut next = first;
    while let Some(id) = next {
        trace.secondary.aside.retain(|&aside| aside != id);
        next = match find(trace, id) {
            Some(node) if Some(id) != last => named(trace.words[node.next].value),
            _ => None,
        };
    }
}

/// An owner has chosen a halted waiter to be kicked ahead.
fn kicked_ahead(trace: &Trace, id: NodeId) -> Result<(), Failure> {
    if trace.secondary.aside.contains(&id) {
        let message = format!("node {} is kicked ahead, and was put aside", id.number());
        return Err(Failure::new(Kind::Kick, message));
    }
    if !trace.secondary.aside.is_empty() {
        reached(Reached::KickedAheadPast);
    }
    Ok(())
}

/// The last of the main queue has taken the lock and left the tail in `to`.
pub(super) fn replaced_tail(trace: &Trace, to: u32) -> Result<(), Failure> {
    reached(Reached::TailReplaced);
    match word::tail(to) {
        Some(tail) if trace.secondary.aside.contains(&tail) => Ok(()),
        tail => {
            let message = format!("the tail is now {tail:?}, which is in no secondary queue");
            Err(Failure::new(Kind::State, message))
        }
    }
}

/// A compare-exchange of a lock word from `current` to `new` has failed.
pub fn refused(id: WordId, current: u32, new: u32) {
    with(|trace| {
        if let Some(rules) = trace.rules
            && matches!(trace.words[id].role, super::Role::Lock { .. })
            && (rules.replaces)(current, new)
        {
            reached(Reached::TailRaceLost);
        }
    });
}
