//! Moves sleepers from one address to another: a condition variable's waiters then wait for its mutex.

use core::sync::atomic::Ordering::Relaxed;

use super::bucket::Held;
use super::{Choice, EPOCH, End, QUEUED, QUIET, SETTLED, SleepPlatform, Taken, hint, place};
use crate::counting;
use crate::events::Event;
use crate::node::NodeId;
use crate::platform::{AtomicAddress, AtomicWord};

/// Moves up to `most` sleepers on `from` to the end of the queue on `to`, with the tag `tag`. Returns how many;
/// `None` if a bucket could not be locked (SLEEP-6), or if `still` returns false, which is called when no waiter
/// can join those on `from` any more.
///
/// SLEEP-2 asks for no barrier here, though no waiter polls the lock at `to` for those that are moved: the caller makes
/// sure that a thread which knows of them, since this call happened before it acquires that lock, will release it.
#[must_use]
pub fn requeue<P: SleepPlatform>(
    p: &P,
    from: usize,
    to: usize,
    tag: u32,
    most: u32,
    still: impl FnOnce() -> bool,
) -> Option<u32> {
    let (low, high) = (place(from, p.buckets().len()), place(to, p.buckets().len()));
    let (first, second) = if low <= high { (from, to) } else { (to, from) };
    let lower = Held::lock(p, first)?;
    let upper = if low == high { None } else { Some(Held::lock(p, second)?) };
    if !still() {
        return None;
    }
    let (source, target) = match &upper {
        None => (&lower, &lower),
        Some(upper) if low <= high => (&lower, upper),
        Some(upper) => (upper, &lower),
    };
    let mut moved = Taken::NONE;
    source.each(|source, before, id| {
        if moved.count >= most {
            return (Choice::Stop, false);
        }
        if p.sleeper(id).on.load(Relaxed) != from {
            return (Choice::Leave, false);
        }
        source.unlink(before, id);
        moved.add(p, id);
        (Choice::Take, true)
    });
    let count = moved.count;
    let mut next = moved.first;
    while let Some(id) = next {
        let record = p.sleeper(id);
        next = NodeId::from_number(record.next.load(Relaxed));
        record.on.store(to, Relaxed);
        record.tag.store(tag, Relaxed);
        record.state.store(QUEUED, Relaxed);
        target.insert(id, End::Last);
    }
    let hint = hint(p, to);
    let now = hint.load(Relaxed);
    if count > 0 && now & QUIET != 0 {
        hint.store((now & !(QUIET | SETTLED)).wrapping_add(EPOCH), Relaxed);
    }
    drop(upper);
    drop(lower);
    if count > 0 {
        counting::add(p, Event::SleepRequeue, count.into());
    }
    Some(count)
}
