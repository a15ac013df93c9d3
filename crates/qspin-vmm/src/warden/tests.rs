use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::channel;

use super::*;

/// Hands that write down what they do.
#[derive(Clone, Default)]
struct Scribe(Rc<RefCell<Vec<(char, u32)>>>);

impl CpuControl for Scribe {
    fn stop(&mut self, apic_id: u32) -> bool {
        self.0.borrow_mut().push(('-', apic_id));
        apic_id != 13
    }
    fn go_on(&mut self, apic_id: u32) {
        self.0.borrow_mut().push(('+', apic_id));
    }
}

struct Stage {
    shared: SharedPage,
    warden: Warden<Scribe>,
    scribe: Scribe,
    start: Instant,
    ms: Cell<u64>,
}

impl Stage {
    fn new(victim: Victim, honours_hints: bool) -> Self {
        let order = Order { victim, time: Duration::from_millis(5), honours_hints };
        let scribe = Scribe::default();
        let shared = SharedPage::EMPTY;
        for (seat, at) in shared.seats.iter().enumerate() {
            // Names that are not the numbers.
            at.apic_id.store(seat as u32 + 10 + 1, Relaxed);
        }
        Self {
            shared,
            warden: Warden::new(order, scribe.clone()),
            scribe,
            start: Instant::now(),
            ms: Cell::new(0),
        }
    }

    /// A moment later, everything that is due; milliseconds until the next time.
    fn at(&mut self, ms: u64) -> Option<u64> {
        self.ms.set(ms);
        let (start, ms) = (self.start, &self.ms);
        let next = self.warden.due(&self.shared, &|| start + Duration::from_millis(ms.get()));
        next.map(|next| (next - self.start).as_millis() as u64 - ms.get())
    }

    /// The guest asks; whether it is answered.
    fn ask(&mut self) -> bool {
        self.shared.request.fetch_add(1, Relaxed);
        self.look();
        self.shared.answer.load(Relaxed) == self.shared.request.load(Relaxed)
    }

    fn look(&mut self) -> bool {
        let (start, ms) = (self.start, &self.ms);
        self.warden.look(&self.shared, &|| start + Duration::from_millis(ms.get()))
    }

    fn did(&self) -> String {
        let done = self.scribe.0.take().into_iter().map(|(what, who)| format!("{what}{who}"));
        done.collect::<Vec<_>>().join(" ")
    }
}

#[test]
fn the_holder_is_stopped_for_its_time() {
    let mut stage = Stage::new(Victim::Holder, false);
    assert_eq!(stage.at(0), None);
    stage.shared.holds(1);
    stage.shared.keep(1);
    assert!(stage.ask());
    assert_eq!(stage.did(), "-11");
    assert_eq!(stage.shared.seats[1].stopped.load(Relaxed), 1);
    assert_eq!(stage.at(2), Some(3));
    assert_eq!(stage.did(), "");
    assert_eq!(stage.at(6), None);
    assert_eq!(stage.did(), "+11");
    assert_eq!(stage.shared.seats[1].stopped.load(Relaxed), 0);
    let tally = stage.warden.tally();
    assert_eq!((tally.asked, tally.stopped, tally.hit, tally.put_off), (1, 1, 1, 0));
    assert_eq!((tally.ns, tally.least_ns, tally.most_ns), (6_000_000, 6_000_000, 6_000_000));
}

#[test]
fn the_longest_waiter_is_stopped_and_none_twice() {
    let mut stage = Stage::new(Victim::Next, true);
    assert!(stage.ask(), "no CPU waits, and the guest is answered all the same");
    assert_eq!((stage.did(), stage.warden.tally().missed), (String::new(), 1));
    stage.shared.waits(7, 100);
    stage.shared.waits(8, 90);
    assert!(stage.ask());
    assert_eq!(stage.did(), "-18");
    assert!(stage.ask());
    assert_eq!((stage.did(), stage.warden.tally().missed), (String::new(), 2));
    stage.shared.holds(8);
    assert_eq!(stage.at(3), Some(2));
    assert!(stage.ask());
    assert_eq!(stage.did(), "-17");
    assert_eq!(stage.at(5), Some(3));
    assert_eq!(stage.at(8), None);
    assert_eq!(stage.did(), "+18 +17");
}

#[test]
fn a_hint_puts_it_off_until_the_release() {
    let mut stage = Stage::new(Victim::Holder, true);
    stage.shared.holds(2);
    stage.shared.keep(2);
    assert!(stage.ask());
    assert_eq!((stage.did(), stage.shared.seats[2].owed.load(Relaxed)), (String::new(), OWED));
    assert_eq!(stage.at(1), Some(9));
    stage.shared.seats[2].owed.store(PAYS, Relaxed);
    assert!(stage.look());
    assert_eq!((stage.did(), stage.shared.seats[2].owed.load(Relaxed)), ("-12".into(), NOTHING));
    assert_eq!(stage.at(1), Some(5), "the same time is taken, and the timeout is forgotten");
    assert_eq!(stage.at(6), None);
    let tally = stage.warden.tally();
    assert_eq!((tally.put_off, tally.impatient, tally.stopped, tally.hit), (1, 0, 1, 0));
}

#[test]
fn a_holder_without_a_hint_is_stopped_at_once_and_a_hint_has_its_time() {
    let mut stage = Stage::new(Victim::Holder, true);
    stage.shared.holds(2);
    assert!(stage.ask());
    assert_eq!(stage.did(), "-12");
    assert_eq!(stage.at(5), None);
    stage.did();
    stage.shared.keep(2);
    assert!(stage.ask());
    assert_eq!(stage.at(14), Some(1));
    assert_eq!(stage.did(), "");
    assert_eq!(stage.at(15), Some(5));
    assert_eq!((stage.did(), stage.shared.seats[2].owed.load(Relaxed)), ("-12".into(), NOTHING));
    assert_eq!(stage.warden.tally().impatient, 1);
}

#[test]
fn a_thread_that_cannot_be_stopped_is_not_let_go_on() {
    let mut stage = Stage::new(Victim::Holder, false);
    stage.shared.holds(3);
    assert!(stage.ask());
    assert_eq!((stage.did(), stage.at(50)), ("-13".into(), None));
    assert_eq!((stage.did(), stage.warden.tally().missed), (String::new(), 1));
    stage.shared.seats[4].apic_id.store(0, Relaxed);
    stage.shared.holds(4);
    assert!(stage.ask(), "one that never came");
    assert_eq!((stage.did(), stage.warden.tally().missed), (String::new(), 2));
}

#[test]
fn at_the_end_everybody_goes_on() {
    let shared = SharedPage::EMPTY;
    shared.seats[0].apic_id.store(1, Relaxed);
    shared.holds(0);
    let order =
        Order { victim: Victim::Holder, time: Duration::from_secs(3600), honours_hints: false };
    let scribe = Scribe::default();
    let warden = Warden::new(order, scribe.clone());
    let (bell, bells) = channel();
    let tally = Arc::new(Mutex::new(Tally::default()));
    bell.send(()).unwrap();
    shared.request.store(1, Relaxed);
    drop(bell);
    warden.serve(&shared, &bells, &tally);
    assert_eq!(*scribe.0.borrow(), [('-', 0), ('+', 0)]);
    assert_eq!(shared.answer.load(Relaxed), 1);
    let tally = *tally.lock().unwrap();
    assert_eq!((tally.asked, tally.stopped, tally.hit), (1, 1, 1));
}
