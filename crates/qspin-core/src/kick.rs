//! Halting a waiter, and kicking a halted one: with the counts and times of document 000.

use core::sync::atomic::Ordering::Relaxed;

use crate::counting;
use crate::events::{Event, Events};
use crate::node::NodeId;
use crate::platform::{AtomicWord, Platform};

/// Halts; the time since the kick is counted, where there are statistics.
pub(crate) fn halt<P: Platform>(p: &P, me: NodeId) {
    if !P::Events::ENABLED {
        return p.halt(me);
    }
    let time = &p.node(me).kick_time;
    time.store(0, Relaxed);
    p.halt(me);
    let kicked = time.load(Relaxed);
    if kicked != 0 {
        counting::count(p, Event::KickTimeCount);
        let latency = (p.now_ns() as u32).wrapping_sub(kicked);
        counting::add(p, Event::WakeLatencies, latency.into());
    }
}

/// Kicks `node` and counts that, and the time that it takes.
pub(crate) fn kick<P: Platform>(p: &P, node: NodeId, event: Event) {
    counting::count(p, event);
    let start = if P::Events::ENABLED { p.now_ns() } else { 0 };
    if start == 0 {
        return p.kick(node);
    }
    // The latencies are below 4 s; 0 would mean "not kicked".
    p.node(node).kick_time.store((start as u32).max(1), Relaxed);
    p.kick(node);
    counting::add(p, Event::KickLatencies, p.now_ns().saturating_sub(start));
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;
    use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
    use std::vec::Vec;

    use super::*;
    use crate::node::Node;
    use crate::platform::CpuId;

    /// A CPU with statistics, that notes what it is asked for.
    #[derive(Default)]
    struct Cpu {
        node: Node<AtomicU32>,
        clock: Cell<u64>,
        kicks: Cell<u32>,
        halts: Cell<u32>,
        counted: Counted,
    }

    #[derive(Default)]
    struct Counted(core::cell::RefCell<Vec<(Event, u64)>>);

    impl Events for Counted {
        const ENABLED: bool = true;
        fn add(&self, event: Event, amount: u64) {
            self.0.borrow_mut().push((event, amount));
        }
    }

    impl Platform for Cpu {
        type Word = AtomicU32;
        type Address = AtomicUsize;
        type Events = Counted;
        fn events(&self) -> &Counted {
            &self.counted
        }
        fn cpu(&self) -> Option<CpuId> {
            CpuId::new(0)
        }
        fn node(&self, _: NodeId) -> &Node<AtomicU32> {
            &self.node
        }
        fn fence(&self, _: Ordering) {}
        fn now_ns(&self) -> u64 {
            self.clock.replace(self.clock.get() + if self.clock.get() == 0 { 0 } else { 10 })
        }
        fn kick(&self, _: NodeId) {
            self.kicks.set(self.kicks.get() + 1);
        }
        fn halt(&self, me: NodeId) {
            self.halts.set(self.halts.get() + 1);
            // Kicked meanwhile, by a thread that has statistics, too.
            kick(self, me, Event::LockKickCount);
        }
    }

    #[test]
    fn each_kick_and_halt_happens_once_with_a_clock_and_without() {
        let me = NodeId::new(CpuId::new(0).unwrap(), 0).unwrap();
        for start in [0, 1, 1 << 32] {
            let p = Cpu::default();
            p.clock.set(start);
            kick(&p, me, Event::UnlockKickCount);
            assert_eq!((p.kicks.get(), p.halts.get()), (1, 0), "{start}");
            halt(&p, me);
            assert_eq!((p.kicks.get(), p.halts.get()), (2, 1), "{start}");
            let counted = p.counted.0.borrow();
            let times = |event| counted.iter().filter(|(one, _)| *one == event).count();
            assert_eq!([times(Event::UnlockKickCount), times(Event::LockKickCount)], [1, 1]);
            // Without a clock no time is counted.
            let latencies = if start == 0 { [0, 0] } else { [2, 1] };
            let found = [times(Event::KickLatencies), times(Event::KickTimeCount)];
            assert_eq!(found, latencies, "{start}");
            drop(counted);
        }
    }
}
