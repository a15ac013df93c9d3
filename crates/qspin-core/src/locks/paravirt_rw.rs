//! The paravirt reader-writer lock: the one of [`crate::locks::queued_rw`], whose waiters halt.
//!
//! # Problem
//! The queued reader-writer lock collapses where threads outnumber CPUs: the next of its queue is then usually
//! not running, and no other thread may acquire the lock; and the waiters spin, and take the CPU from the thread
//! that they wait for.
//!
//! # Source
//! The lock is document 004's. Its queue is the paravirt spinlock of document 000 with lock stealing
//! (`Halt × Fifo × Stealing`), and what that spinlock's head does, the head of this queue does with the readers' and
//! writers' word: it polls for a while, then it halts, and newcomers may barge past it into a free lock until it
//! runs again. We found no such lock elsewhere: Linux has `qrwlock` without paravirtual waiting. The table entry
//! is that of [`crate::locks::paravirt_ticket`].
//!
//! # States of the head
//! ```text
//!            polled long enough           ASLEEP set, not admitted
//!  WATCHING ─────────────────────► ENTERED ───────────────────────► HALTED
//!     ▲                               │ would be admitted by now       │ kicked, or spurious
//!     └─────── entry removed ─────────┴────────────────────────────────┘
//! ```
//!
//! # Invariants
//! * **PVRW-1** A head makes its entry, then sets ASLEEP (QUEUEDRW-5). A release that admits it sees ASLEEP, and
//!   so finds the entry. It kicks, and leaves ASLEEP to the head: until the head runs, each further such release
//!   kicks again.
//! * **PVRW-2** The head removes its entry itself, before it leaves the acquisition. A lock has one head, so one
//!   entry. A release that finds an entry of a former lock at the same address kicks one waiter too many
//!   (PLATFORM-4).
//! * **PVRW-3** A sleeping head keeps no newcomer out of a free lock (OPEN). A sleeping writer keeps further
//!   readers out of a lock with readers, which would otherwise never all leave. Once the head has slept
//!   for `mutex_heir_us`, it is the heir, the starving waiter that holds a reservation: it sleeps without OPEN,
//!   as a writer that waits, or as a reader that has counted itself, and no newcomer is admitted before it. An
//!   awake head keeps all newcomers out. So a head waits for so long, and for one owner more.
//!
//! # Limits
//! Eight bytes. Not first come, first served: newcomers may barge. Readers in interrupts and readers without room
//! poll and yield in turn, and so does a head without a node, or that finds its bucket full of other locks'
//! waiters. Without a clock there is no heir.

use core::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};

use crate::admission::Stealing;
use crate::counting;
use crate::events::Event;
use crate::kick::{halt, kick};
use crate::locks::queued_rw::{QueuedRwLock, RwWaiting};
use crate::nesting::with_node;
use crate::node::NodeId;
use crate::platform::{AtomicWord, Budget, Platform, Until};
use crate::site::Site;
use crate::waiting::{Halt, hash};

/// The reader-writer lock whose waiters halt.
pub type ParavirtRwLock<W> = QueuedRwLock<W, Halt, Stealing>;

/// Stands for the ticket in the entry: a lock has one head.
const HEAD: u32 = 0;

impl RwWaiting for Halt {
    fn watch<P: Platform>(p: &P, word: &P::Word, until: Until, order: Ordering) -> bool {
        until.met_by(p.wait_until(word, until, Budget::Polls(p.tuning().head_polls), order))
    }

    fn gives_way<P: Platform>(p: &P, since: &mut u64) -> bool {
        let now = p.now_ns();
        if *since == 0 {
            *since = now;
        } else {
            counting::count(p, Event::PvWaitAgain);
        }
        // PVRW-3.
        let slept = now.saturating_sub(*since);
        now == 0 || slept < u64::from(p.tuning().mutex_heir_us) * 1000
    }

    #[cold]
    fn sleep<P: Platform>(p: &P, word: &P::Word, until: Until, bits: u32) {
        if with_node(p, |me| halt_as_head(p, word, me, until, bits)) != Some(true) {
            p.yield_cpu();
        }
    }

    #[cold]
    #[inline(never)]
    fn wake<P: Platform>(p: &P, lock: usize) {
        // The step that saw ASLEEP need not acquire.
        // ORDERING: Acquire pairs with the Release of `RwAsleep`: the entry is there (PVRW-1).
        p.fence(p.ordering(Site::RwKick, Acquire));
        for node in hash::halted_for(p, lock, HEAD) {
            kick(p, node, Event::UnlockKickCount);
        }
    }

    fn linger<P: Platform>(p: &P, word: &P::Word, until: Until, order: Ordering) {
        while !Self::watch(p, word, until, order) {
            p.yield_cpu();
        }
    }
}

/// Halts unless `until` is met; returns `false` where there is no room for the entry.
fn halt_as_head<P: Platform>(p: &P, word: &P::Word, me: NodeId, until: Until, bits: u32) -> bool {
    let Some(entry) = hash::insert_ticket(p, p.address(word), HEAD, me) else { return false };
    let mut seen = word.load(Relaxed);
    while !until.met_by(seen) {
        // ORDERING: Release pairs with the Acquire of `RwKick`: the entry is there (PVRW-1).
        let order = p.ordering(Site::RwAsleep, Release);
        match word.compare_exchange(seen, seen | bits, order) {
            Ok(_) => {
                counting::count(p, Event::WaitHeadCount);
                halt(p, me);
                if !until.met_by(word.fetch_and(!bits, Relaxed)) {
                    counting::count(p, Event::SpuriousWakeup);
                }
                break;
            }
            Err(now) => seen = now,
        }
    }
    // PVRW-2.
    hash::free(p, entry);
    true
}
