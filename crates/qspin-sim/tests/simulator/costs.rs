//! What one operation takes is what the machine says.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use crate::fixtures;
use qspin_core::lock::RawLock;
use qspin_core::platform::{AtomicWord, Budget, Platform, Until};
use qspin_sim::machine::Costs;
use qspin_sim::platform::{SimPlatform, SimWord};
use qspin_sim::workload::{Lengths, Sections, Spread, Workload};
use qspin_sim::{Lock, Placement, Scenario, simulate_lock};
use std::cell::RefCell;
use std::collections::BTreeMap;

std::thread_local! {
    static TIMES: RefCell<BTreeMap<&'static str, f64>> = const { RefCell::new(BTreeMap::new()) };
}

/// Times `operation` on this CPU.
fn time<R>(p: &SimPlatform, name: &'static str, operation: impl FnOnce() -> R) -> R {
    let start = p.time_ns();
    let result = operation();
    let took = p.time_ns() - start;
    TIMES.with_borrow_mut(|times| times.insert(name, took));
    result
}

/// Two words in one line and one in another, on which two CPUs take turns; "acquire" is the script.
#[repr(C, align(64))]
struct Script {
    word: SimWord,
    neighbour: SimWord,
    other_line: Far,
}

#[repr(C, align(64))]
struct Far(SimWord);

// SAFETY: one section a CPU, and nothing but simulated words is in it.
unsafe impl RawLock<SimPlatform> for Script {
    fn new() -> Self {
        let far = Far(SimWord::new(0));
        Self { word: SimWord::new(0), neighbour: SimWord::new(0), other_line: far }
    }
    fn acquire(&self, p: &SimPlatform) {
        if p.number() == 0 {
            self.first(p);
        } else {
            self.second(p);
        }
    }
    fixtures::refuses_who_tries!();
    unsafe fn release(&self, _: &SimPlatform) {}
    fn is_locked(&self, _: &SimPlatform) -> bool {
        false
    }
}

impl Script {
    fn first(&self, p: &SimPlatform) {
        time(p, "load from memory", || self.word.load(Relaxed));
        time(p, "load hit", || self.word.load(Relaxed));
        time(p, "upgrade of the only copy", || self.word.swap(1, Relaxed));
        time(p, "rmw hit", || self.word.swap(2, Relaxed));
        time(p, "failing compare-exchange", || self.word.compare_exchange(7, 8, Relaxed))
            .unwrap_err();
        time(p, "store hit", || self.word.store(3, Relaxed));
        time(p, "fence", || p.fence(SeqCst));
        time(p, "pause", || p.relax(3));
        time(p, "clock", || p.now_ns());
        time(p, "store miss", || self.other_line.0.store(1, Relaxed));
        time(p, "own store", || assert_eq!(self.other_line.0.load(Relaxed), 1));
        p.work(1000.0);
        // The other CPU goes on, whose time is 10 µs.
        p.work(20_000.0 - p.time_ns());
        time(p, "upgrade with a sharer", || self.word.swap(9, Relaxed));
        time(p, "load of a line written elsewhere", || self.other_line.0.load(Relaxed));
    }

    fn second(&self, p: &SimPlatform) {
        p.work(10_000.0);
        time(p, "load from the owner", || self.word.load(Relaxed));
        time(p, "load hit of a copy", || self.neighbour.load(Relaxed));
        time(p, "rmw of another's line", || self.other_line.0.swap(5, Relaxed));
        // The first CPU changes the word at 20 µs.
        let until = Until::is(9);
        assert_eq!(p.wait_until(&self.word, until, Budget::Unbounded, Relaxed), 9);
        time(p, "the change was seen at", || p.work(0.0));
        let seen = p.time_ns();
        TIMES.with_borrow_mut(|times| times.insert("the change was seen at", seen));
        let budget = Budget::Polls(11);
        time(p, "eleven looks", || p.wait_until(&self.word, Until::is(0), budget, Relaxed));
    }
}

fn times(second: u32) -> (BTreeMap<&'static str, f64>, Costs) {
    let machine = fixtures::exact();
    let costs = machine.costs.clone();
    let (inside_ns, outside_ns) = (0.0, 0.0);
    let sections = Sections { count: 1, inside_ns, outside_ns, locks: 1, beside: false };
    let scenario = Scenario {
        machine,
        placement: Placement::On(vec![0, second]),
        workload: Workload::Sections(sections),
        ..fixtures::counting(Lock::Native, 2, 0)
    };
    TIMES.take();
    // The script is longer than the line of a lock; both sections count, one after the other.
    let _ = simulate_lock::<Script>(&scenario, 1);
    (TIMES.take(), costs)
}

#[test]
fn an_uncontended_operation_takes_what_the_machine_says() {
    // The second CPU is on another core of the socket, on the other socket, on the same core.
    let costs = fixtures::exact().costs;
    for (second, distance) in [(1, costs.same_cache), (2, costs.other_socket), (4, costs.load_hit)]
    {
        let (times, costs) = times(second);
        let same_core = second == 4;
        let expected = [
            ("load from memory", costs.memory),
            ("load hit", costs.load_hit),
            ("upgrade of the only copy", costs.rmw_hit),
            ("rmw hit", costs.rmw_hit),
            ("failing compare-exchange", costs.rmw_hit),
            ("store hit", costs.store),
            ("fence", costs.fence),
            ("pause", 3.0 * costs.pause),
            ("clock", costs.clock),
            ("store miss", costs.store),
            ("own store", costs.load_hit),
            ("load from the owner", distance),
            ("load hit of a copy", costs.load_hit),
            (
                "rmw of another's line",
                if same_core { costs.rmw_hit } else { distance + costs.rmw_hit },
            ),
            (
                "upgrade with a sharer",
                if same_core { costs.rmw_hit } else { distance + costs.invalidate + costs.rmw_hit },
            ),
            ("load of a line written elsewhere", distance),
            (
                "eleven looks",
                costs.load_hit + 10.0 * (costs.pause + costs.load_hit) + costs.load_hit,
            ),
        ];
        for (name, expected) in expected {
            let took = times[name];
            assert!((took - expected).abs() < 0.002, "{second}: {name}: {took}, not {expected}");
        }
        // The change is seen once the line has come back, and within a period of the loop.
        let changed = 20_000.0 + if same_core { 0.0 } else { distance + costs.invalidate };
        let late = times["the change was seen at"] - changed - distance;
        assert!((0.0..=2.0 * (costs.pause + costs.load_hit)).contains(&late), "{second}: {late}");
    }
}

#[test]
fn no_core_is_preferred_for_its_number_where_the_last_owner_is_what_counts() {
    // The first core's part of all sections, of a lock at whose line all cores meet.
    let part = |near_to_last_owner| {
        let mut scenario = fixtures::counting(Lock::Tas, 4, 0);
        scenario.duration_ns = 4e5;
        scenario.start_ns = 1e3;
        scenario.machine.costs.near_bias = 1.0;
        scenario.machine.costs.near_to_last_owner = near_to_last_owner;
        scenario.workload = Workload::Lengths(Lengths {
            inside_ns: 100.0,
            outside_ns: 100.0,
            spread: Spread::Exponential,
            locks: 1,
            writes: 1,
        });
        let sections = qspin_sim::simulate(&scenario, 1).unwrap().sections;
        sections[0] as f64 / sections.iter().sum::<u64>() as f64
    };
    let (by_last, by_number) = (part(true), part(false));
    assert!((by_last - 0.25).abs() < (by_number - 0.25).abs(), "{by_last} {by_number}");
}
