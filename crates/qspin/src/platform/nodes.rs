//! The memory in which threads wait: a lock has no room for it.
//!
//! # Problem
//! There may be tens of thousands of threads, but most programs have a few. If the memory for all of them were
//! static, it would be resident in every program that locks its memory (`mlockall`).
//!
//! # How
//! What the first threads need is static, each kind of it in a table of its own: a program gets the tables that
//! its locks refer to. What further threads need is mapped, one [`Part`] for a thousand of them, when one of
//! them gets its number. Mapping is a system call, since it may happen in a signal handler. Without memory such
//! a thread gets no number.
//!
//! # Invariants
//! * **NODES-1** A part is published once, and never goes away. It is published before any of its threads gets
//!   its number, which other threads learn later: so a thread that knows a number finds its part.
//! * **NODES-2** Zeroed memory is an unused part.

use core::sync::atomic::Ordering::{AcqRel, Acquire};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize};

use qspin_core::node::{LEVELS, Node, NodeId};
use qspin_core::platform::CpuId;
use qspin_core::sleepers::Sleeper;
use qspin_core::waiting::Bucket;

use super::system::{Slot, memory};

/// Threads whose memory is static, plus one, since numbers of nodes begin at [`NodeId::FIRST`].
pub(super) const FIRST_THREADS: usize = 256;
/// The nodes of those threads.
pub(super) const FIRST_NODES: usize = FIRST_THREADS * LEVELS as usize;

/// 64 KiB.
static NODES: [Node<AtomicU32>; FIRST_NODES] = [const { Node::<AtomicU32>::UNUSED }; FIRST_NODES];

const PART_THREADS: usize = 1024;
const PART_NODES: usize = PART_THREADS * LEVELS as usize;

/// What so many threads need: 400 KiB, of which only the pages of threads that wait are ever touched.
pub(super) struct Part {
    nodes: [Node<AtomicU32>; PART_NODES],
    pub(super) sleepers: [Sleeper<AtomicU32, AtomicUsize>; PART_NODES],
    slots: [Slot; PART_THREADS],
}

static PARTS: [AtomicPtr<Part>; NodeId::END as usize / PART_NODES] =
    [const { AtomicPtr::new(core::ptr::null_mut()) }; _];

/// The part that holds a node of this number.
#[inline]
pub(super) fn part(node: usize) -> Option<&'static Part> {
    // ORDERING: Acquire pairs with the AcqRel of `make`.
    let part = PARTS.get(node / PART_NODES)?.load(Acquire);
    // SAFETY: NODES-1, NODES-2.
    unsafe { part.as_ref() }
}

/// Where in its part a node is.
#[inline]
pub(super) const fn within(node: usize) -> usize {
    node % PART_NODES
}

/// The node of this number.
#[inline]
pub(super) fn node(id: NodeId) -> &'static Node<AtomicU32> {
    let number = id.number() as usize;
    if let Some(node) = NODES.get(number) {
        return node;
    }
    // NODES-1: the part exists. The first node of the table belongs to no thread.
    part(number).map_or(&NODES[0], |part| &part.nodes[within(number)])
}

/// The run status slot of a thread that is not among the first.
pub(super) fn slot(thread: usize) -> Option<&'static Slot> {
    let thread = thread + 1;
    Some(&part(thread * LEVELS as usize)?.slots[thread % PART_THREADS])
}

/// Whether the thread of this number has memory to wait in. Maps it if need be.
pub(super) fn prepare(cpu: CpuId) -> bool {
    let number = (cpu.number() as usize + 1) * LEVELS as usize;
    number < FIRST_NODES || part(number).is_some() || make(number)
}

#[cold]
fn make(number: usize) -> bool {
    let Some(place) = PARTS.get(number / PART_NODES) else { return false };
    publish(place).is_some()
}

/// Maps what `place` is to point to, unless another thread does so at the same time.
fn publish<T>(place: &AtomicPtr<T>) -> Option<&'static T> {
    let made = memory::map::<T>()?;
    // ORDERING: Release publishes it; the loads of `place` are Acquire, as a failure here is.
    let before = match place.compare_exchange(core::ptr::null_mut(), made, AcqRel, Acquire) {
        Ok(_) => made,
        Err(other) => {
            // SAFETY: mapped above, and no other thread knows of it.
            unsafe { memory::unmap(made) };
            other
        }
    };
    // SAFETY: NODES-1, NODES-2.
    unsafe { before.as_ref() }
}

pub(super) type Heads =
    [Bucket<AtomicU32, AtomicUsize>; NodeId::END as usize / Bucket::<(), ()>::ENTRIES];

/// The table of halted waiters: one entry per node, so that it is never full. It takes 4 MiB of address space
/// from the first halt on, of which only the pages that locks with a halted waiter hash to are ever touched.
pub(super) static HALTED: AtomicPtr<Heads> = AtomicPtr::new(core::ptr::null_mut());

/// That table. Without memory it is empty, and no waiter halts.
#[inline]
pub(super) fn halted() -> &'static [Bucket<AtomicU32, AtomicUsize>] {
    // SAFETY: NODES-1, NODES-2. ORDERING: Acquire pairs with the AcqRel of `publish`.
    match unsafe { HALTED.load(Acquire).as_ref() } {
        Some(heads) => heads,
        None => first_halted(),
    }
}

#[cold]
fn first_halted() -> &'static [Bucket<AtomicU32, AtomicUsize>] {
    publish(&HALTED).map_or(&[], |heads| heads)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(cpu: u32, level: u32) -> usize {
        core::ptr::from_ref(node(NodeId::new(CpuId::new(cpu).unwrap(), level).unwrap())).addr()
    }

    #[test]
    fn every_node_has_a_place_of_its_own_once_its_part_is_there() {
        let cpus = [0, 1, 254, 255, 256, 1022, 1023, 1024, 2047, 40_000, CpuId::LIMIT - 1];
        let mut places = Vec::new();
        for cpu in cpus {
            assert!(prepare(CpuId::new(cpu).unwrap()));
            places.extend((0..LEVELS).map(|level| place(cpu, level)));
            assert!(cpu < 255 || slot(cpu as usize).is_some());
        }
        assert!(places.iter().all(|place| place % 64 == 0), "N3");
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), cpus.len() * LEVELS as usize);
    }

    #[test]
    fn a_part_that_is_not_there_has_no_node() {
        let id = NodeId::new(CpuId::new(50_000).unwrap(), 3).unwrap();
        assert!(part(id.number() as usize).is_none());
        assert!(core::ptr::eq(node(id), &raw const NODES[0]));
    }
}
