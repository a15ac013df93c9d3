//! A hash from a lock to the node of its halted head.
//!
//! # Problem
//! An owner that finds [`SLEEPER`](crate::word::SLEEPER) in the word must learn which waiter to kick, and the
//! word has no room for it: its tail names the last waiter, not the first. A ticket lock has no room for any
//! waiter; there the key is the lock and the ticket.
//!
//! # Source
//! Linux, `kernel/locking/qspinlock_paravirt.h` (`pv_hash`, `pv_unhash`), document 000.
//!
//! # Invariants
//! * **HASH-1** A queued lock has at most one entry: its head's. It is inserted by that head, or by the owner
//!   that hands the headship over. It belongs to the CPU that inserted it until SLEEPER is set, and to the owner
//!   of the lock from then on. Only the CPU to which it belongs removes it. The owner finds it by search. A CPU
//!   that does not own the lock keeps a reference to its own entry instead, since its search might find a former
//!   entry of the same lock, long gone.
//! * **HASH-2** Occupancy: an entry stands for a node that is the head of a queue, and a node is in one queue at
//!   a time. There are at least as many entries as nodes, so the table is never full. A search may still miss an
//!   entry that is freed behind it while another is taken ahead of it; then the head spins on, or is kicked at
//!   once, as on a platform without a table.
//! * **HASH-3** An owner that has seen SLEEPER finds the entry: it was inserted before the bit was set, and no
//!   other CPU removes it (HASH-1). So the search for it ends, too.
//! * **HASH-4** A ticket's entry stands in one fixed bucket or nowhere, so that a thread that searches for it in
//!   vain has read one line. Four tickets in a row share a bucket: one lock alone never fills it, several locks
//!   at once might; a waiter that finds it full does not halt. The waiter itself removes its entry, while it
//!   still waits for the lock. A thread that reads an entry meanwhile may see its former or its later contents,
//!   and kick one waiter too many (PLATFORM-4). So the low bits of the ticket are enough for an entry.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::bucket::{ENTRIES, Entry};
use crate::counting;
use crate::events::Event;
use crate::node::NodeId;
use crate::platform::{AtomicAddress, AtomicWord, Platform};
use crate::site::Site;

/// An entry of the platform `P`.
pub(crate) type EntryOf<P> = Entry<<P as Platform>::Word, <P as Platform>::Address>;

/// The first bucket for `lock`. Fibonacci hashing; the upper half of the product is the
/// well-mixed one.
#[inline]
fn first_bucket(lock: usize) -> usize {
    ((lock as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize
}

/// The entries in the order in which a search for `lock` visits them, each once.
fn search<P: Platform>(p: &P, lock: usize) -> impl Iterator<Item = &EntryOf<P>> {
    let buckets = p.hash();
    let mask = buckets.len().wrapping_sub(1);
    let first = first_bucket(lock);
    (0..buckets.len()).flat_map(move |step| &buckets[first.wrapping_add(step) & mask].entries)
}

/// The entries in which a waiter with this ticket may be recorded (HASH-4).
fn home<P: Platform>(p: &P, lock: usize, ticket: u32) -> &[EntryOf<P>] {
    let buckets = p.hash();
    let bucket = first_bucket(lock).wrapping_add(ticket as usize / ENTRIES);
    buckets.get(bucket & buckets.len().wrapping_sub(1)).map_or(&[], |bucket| &bucket.entries)
}

/// Claims the first free one of `entries` for `lock`, if there is one, with this number in `node`.
fn claim<'a, P: Platform>(
    p: &P,
    entries: impl IntoIterator<Item = &'a EntryOf<P>>,
    lock: usize,
    number: u32,
) -> Option<&'a EntryOf<P>>
where
    P::Word: 'a,
    P::Address: 'a,
{
    let mut hops = 0;
    for entry in entries {
        hops += 1;
        // ORDERING: Acquire pairs with the Release of `free`: the last read of `node` is over.
        let order = p.ordering(Site::HashClaim, Acquire);
        if entry.lock.load(Relaxed) == 0 && entry.lock.compare_exchange(0, lock, order).is_ok() {
            // Published with the bit in the word (`HaltSleeper`, `TicketHaltAsleep`), or read by this very CPU.
            entry.node.store(number, Relaxed);
            counting::count(p, Event::HashCount);
            counting::add(p, Event::HashHopsCount, hops);
            return Some(entry);
        }
    }
    None
}

/// Frees an entry, which belongs to this CPU.
#[inline]
pub(crate) fn free<P: Platform>(p: &P, entry: &EntryOf<P>) {
    // ORDERING: Release pairs with the Acquire of `claim`.
    entry.lock.store(0, p.ordering(Site::HashFree, Release));
}

/// Records that `node` is the halted head of the lock at `word`, if possible (HASH-2). Returns the entry.
pub(super) fn insert<'a, P: Platform>(
    p: &'a P,
    word: &P::Word,
    node: NodeId,
) -> Option<&'a EntryOf<P>> {
    let lock = p.address(word);
    claim(p, search(p, lock), lock, node.number())
}

/// Removes the entry of the lock at `word`, which this CPU owns, and returns its head.
pub(super) fn remove<P: Platform>(p: &P, word: &P::Word) -> Option<NodeId> {
    let lock = p.address(word);
    // Relaxed: the entry was inserted before SLEEPER was set, and the owner that searches has acquired that.
    let entry = search(p, lock).find(|entry| entry.lock.load(Relaxed) == lock)?;
    let node = NodeId::from_number(entry.node.load(Relaxed));
    free(p, entry);
    node
}

/// The bits of a ticket's entry that hold the number of a node; above them are the low bits of the ticket.
const NODE_BITS: u32 = NodeId::END.ilog2();
const NODE_MASK: u32 = NodeId::END - 1;
const _: () = assert!(NodeId::END.is_power_of_two());

/// Records that `node` halts until `ticket` of the lock at `lock` is served, if there is room (HASH-4).
pub(crate) fn insert_ticket<P: Platform>(
    p: &P,
    lock: usize,
    ticket: u32,
    node: NodeId,
) -> Option<&EntryOf<P>> {
    claim(p, home(p, lock, ticket), lock, ticket << NODE_BITS | node.number())
}

/// The waiter that halts until `ticket` of the lock at `lock` is served: one at most, and perhaps some that do
/// not (HASH-4).
pub(crate) fn halted_for<P: Platform>(
    p: &P,
    lock: usize,
    ticket: u32,
) -> impl Iterator<Item = NodeId> {
    home(p, lock, ticket).iter().filter_map(move |entry| {
        // Relaxed: the entry of the waiter that is meant was there before its bit was set, which has been
        // acquired.
        if entry.lock.load(Relaxed) != lock {
            return None;
        }
        let number = entry.node.load(Relaxed);
        let same = (number >> NODE_BITS ^ ticket) << NODE_BITS == 0;
        if same { NodeId::from_number(number & NODE_MASK) } else { None }
    })
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
    use std::vec::Vec;

    use super::*;
    use crate::events::NoEvents;
    use crate::node::Node;
    use crate::platform::CpuId;
    use crate::waiting::Bucket;

    /// A table. The address of a lock is what its word holds.
    struct Table(Vec<Bucket<AtomicU32, AtomicUsize>>);

    impl Platform for Table {
        type Word = AtomicU32;
        type Address = AtomicUsize;
        type Events = NoEvents;
        fn events(&self) -> &NoEvents {
            &NoEvents
        }
        fn cpu(&self) -> Option<CpuId> {
            None
        }
        fn node(&self, _: NodeId) -> &Node<AtomicU32> {
            unreachable!("an entry names a node, and does not touch it")
        }
        fn fence(&self, _: Ordering) {}
        fn address(&self, word: &AtomicU32) -> usize {
            word.load(Relaxed) as usize
        }
        fn hash(&self) -> &[Bucket<AtomicU32, AtomicUsize>] {
            &self.0
        }
    }

    fn table(buckets: usize) -> Table {
        Table((0..buckets).map(|_| Bucket::new()).collect())
    }

    fn node(cpu: u32) -> NodeId {
        NodeId::new(CpuId::new(cpu).unwrap(), 0).unwrap()
    }

    #[test]
    fn heads_of_locks_with_one_home_fill_the_table_and_are_all_found() {
        let tables = [(2, 0), (2, 1), (4, 3)];
        let runs = tables.into_iter().flat_map(|table| [(table, true), (table, false)]);
        for ((buckets, home), backwards) in runs {
            let p = table(buckets);
            let all = buckets * ENTRIES;
            let is_there = |&lock: &u32| first_bucket(lock as usize) % buckets == home;
            let locks: Vec<_> = (1..).filter(is_there).take(all + 1).map(AtomicU32::new).collect();
            for (lock, cpu) in locks.iter().zip(0..all as u32) {
                assert!(insert(&p, lock, node(cpu)).is_some(), "{cpu}");
            }
            assert!(insert(&p, &locks[all], node(99)).is_none(), "it is full");
            // The last one first, as it is the farthest from home; or the first one, so that each search comes past
            // free entries. Each is found once.
            let mut heads: Vec<_> = locks.iter().zip(0..all as u32).collect();
            if backwards {
                heads.reverse();
            }
            for (lock, cpu) in heads {
                assert_eq!(remove(&p, lock), Some(node(cpu)));
                assert_eq!(remove(&p, lock), None);
            }
            assert!(insert(&p, &locks[all], node(99)).is_some(), "it is empty");
        }
    }

    #[test]
    fn a_bucket_forgets_the_entries_behind_a_free_one_too() {
        let p = table(1);
        let locks: Vec<_> = (1..=ENTRIES as u32).map(AtomicU32::new).collect();
        for (lock, cpu) in locks[..2].iter().zip(0..) {
            assert!(insert(&p, lock, node(cpu)).is_some());
        }
        assert_eq!(remove(&p, &locks[0]), Some(node(0)));
        p.0[0].forget();
        assert_eq!(remove(&p, &locks[1]), None);
        for (lock, cpu) in locks.iter().zip(0..) {
            assert!(insert(&p, lock, node(cpu)).is_some(), "it is empty: {cpu}");
        }
    }

    #[test]
    fn the_halted_waiter_of_each_ticket_is_found_however_large_the_ticket() {
        let p = table(2);
        let lock = 64;
        for ticket in [0, 1, 0x3fff, 0x4000, 0x4001, 0x7ffe, 0x7fff] {
            let me = node(NodeId::END / crate::node::LEVELS - 2);
            let entry = insert_ticket(&p, lock, ticket, me).expect("there is room");
            assert_eq!(halted_for(&p, lock, ticket).collect::<Vec<_>>(), [me], "{ticket:#x}");
            let others = [ticket ^ 1, ticket.wrapping_add(ENTRIES as u32), ticket ^ 0x100];
            for other in others {
                assert_eq!(halted_for(&p, lock, other).count(), 0, "{ticket:#x}, {other:#x}");
            }
            assert_eq!(halted_for(&p, lock + 64, ticket).count(), 0);
            free(&p, entry);
            assert_eq!(halted_for(&p, lock, ticket).count(), 0);
        }
    }
}
