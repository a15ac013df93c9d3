//! The memory in which threads wait, as static tables: a lock has no room for it.

use core::sync::atomic::{AtomicU32, AtomicUsize};

use qspin_core::node::Node;
use qspin_core::waiting::Bucket;

/// Every node a tail can name: 4 MiB of address space, of which only the pages of threads
/// that have queued are ever touched.
pub(super) static NODES: [Node<AtomicU32>; 1 << 16] =
    [const { Node::<AtomicU32>::UNUSED }; 1 << 16];

/// The table of halted waiters: an entry a node, so that it is never full. 1 MiB of address space,
/// of which only the pages that locks with a halted waiter hash to are ever touched.
pub(super) static HALTED: [Bucket<AtomicU32, AtomicUsize>;
    NODES.len() / Bucket::<(), ()>::ENTRIES] =
    [const { Bucket::EMPTY }; NODES.len() / Bucket::<(), ()>::ENTRIES];
