//! The paravirt ticket lock: the ticket lock of [`crate::locks::ticket`], whose waiters halt.
//!
//! # Problem
//! A ticket lock has one next owner and no other. If that one is not running, all waiters spin for nothing, and
//! take from it the CPU time that it needs. So a waiter that has watched for long enough halts, and a release
//! kicks the waiter whose ticket it serves.
//!
//! # Source
//! What document 001 became: Jeremy Fitzhardinge and Raghavendra K T, "Paravirtualized ticket spinlocks", Linux
//! 3.12 to 4.1. There each CPU has a slot that says which lock and which ticket it halts for, and the CPU that
//! releases searches the slots of all halted CPUs. Here the slots are the [table of halted
//! waiters](crate::waiting::Bucket), hashed by lock and ticket.
//!
//! # States of a waiter
//! ```text
//!            watched long enough          ASLEEP set, not yet served
//!  WATCHING ─────────────────────► ENTERED ─────────────────────────► HALTED
//!     ▲                               │ served by now                   │ kicked, or spurious
//!     └─────── entry removed ─────────┴─────────────────────────────────┘
//! ```
//!
//! # Invariants
//! * **PVTICKET-1** A waiter makes its entry, then sets ASLEEP, by a read-modify-write even where it is set
//!   already, and checks the word which that returns. A release serves by a read-modify-write of the same word
//!   and checks what that returns. One of the two comes first: either the waiter sees its turn, or the release
//!   sees ASLEEP, and the entry. (Linux before 4.0 had the bit in one half of the word and served by adding to
//!   the other; that needs full fences.)
//! * **PVTICKET-2** A release knows lock and ticket before it serves, and after that reads only the table
//!   (TICKET-5). Linux before 4.0 read the bit once more then, in a lock that might have been freed.
//! * **PVTICKET-3** ASLEEP stays set while any waiter is left, since it stands for all that are halted. It goes
//!   with the last ticket (TICKET-4): a thread that acquires a lock without waiters clears it in the same step.
//! * **PVTICKET-4** A waiter removes its entry itself, before it leaves the acquisition. So the table names only
//!   locks that live, and a node has one entry at most: there are enough of them (HASH-2).
//! * **PVTICKET-5** A release kicks every waiter in the bucket whose entry matches. The waiter that is meant is
//!   among them, or awake; another wakes spuriously and halts again (PLATFORM-4).
//!
//! # Limits
//! Strict order: every hand-over to a halted waiter costs a wake-up, and no other thread may acquire the lock
//! meanwhile. A waiter without a node, and one that finds its bucket full of other locks' waiters, yields instead
//! of halting.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::counting;
use crate::events::Event;
use crate::kick::{halt, kick};
use crate::locks::ticket::{ASLEEP, TicketLock, TicketWaiting, after, next, serving, turn_of};
use crate::node::NodeId;
use crate::platform::{AtomicWord, Budget, Platform, Until};
use crate::site::Site;
use crate::waiting::{Halt, hash};

/// The ticket lock whose waiters halt.
pub type ParavirtTicketLock<W> = TicketLock<W, Halt>;

impl TicketWaiting for Halt {
    fn await_ticket<P: Platform>(p: &P, word: &P::Word, me: NodeId, ticket: u32) {
        let turn = turn_of(ticket);
        // ORDERING: Acquire pairs with the Release of `release`.
        let order = p.ordering(Site::TicketTurn, Acquire);
        loop {
            let polls = Budget::Polls(p.tuning().queue_polls);
            if turn.met_by(p.wait_until(word, turn, polls, order)) {
                return;
            }
            let Some(entry) = hash::insert_ticket(p, p.address(word), ticket, me) else {
                p.yield_cpu();
                continue;
            };
            // PVTICKET-1. ORDERING: Release pairs with the Acquire of `TicketHaltKick`: the entry
            // is there.
            let seen = word.fetch_or(ASLEEP, p.ordering(Site::TicketHaltAsleep, Release));
            let halts = !turn.met_by(seen);
            if halts {
                counting::count(p, Event::WaitNodeCount);
                halt(p, me);
            }
            // PVTICKET-4.
            hash::free(p, entry);
            if turn.met_by(word.load(order)) {
                return;
            }
            if halts {
                counting::count(p, Event::SpuriousWakeup);
            }
        }
    }

    #[inline]
    fn served<P: Platform>(p: &P, lock: usize, before: u32) {
        let ticket = after(serving(before));
        // A ticket that is yet to be drawn has no waiter.
        if before & ASLEEP != 0 && next(before) != ticket {
            kick_owner_of(p, lock, ticket);
        }
    }

    fn await_change<P: Platform>(p: &P, word: &P::Word, seen: u32) {
        let polls = Budget::Polls(p.tuning().queue_polls);
        if p.wait_until(word, Until::is_not(seen), polls, Relaxed) == seen {
            p.yield_cpu();
        }
    }
}

/// Kicks the waiter that halts until `ticket` of the lock known as `lock` is served (PVTICKET-2, PVTICKET-5).
#[cold]
#[inline(never)]
fn kick_owner_of<P: Platform>(p: &P, lock: usize, ticket: u32) {
    // PVTICKET-1. ORDERING: Acquire pairs with the Release of `TicketHaltAsleep`.
    p.fence(p.ordering(Site::TicketHaltKick, Acquire));
    for node in hash::halted_for(p, lock, ticket) {
        kick(p, node, Event::UnlockKickCount);
    }
}
