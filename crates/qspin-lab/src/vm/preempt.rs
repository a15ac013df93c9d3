//! `--preempt holder:5ms:p=0.01`: virtual CPUs that are stopped on purpose.

use std::fmt;
use std::io::Read;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::anyhow;
use qspin_guest::preempt::{CERTAIN, Victim};
use qspin_vmm::memory::Memory;
use qspin_vmm::traced::Traced;
use qspin_vmm::warden::{CpuControl, Order, Tally, Warden, sleep_exactly};

use super::machine::Runs;
use super::reply::Ready;
use crate::failure::Failure;
use crate::quantity::{parse_duration, show_duration};

/// Whom to stop, for how long and how often, as it was written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spec {
    victim: Victim,
    time: Duration,
    chance: f64,
}

/// The longest that one CPU is stopped: the guest waits a minute for the last of 64 to get the lock.
const LONGEST: Duration = Duration::from_millis(500);

/// Reads `holder:5ms:p=0.01`.
///
/// # Errors
///
/// What is wrong with `text`, and what would be right.
pub fn parse_spec(text: &str) -> Result<Spec, String> {
    const RIGHT: &str = "write whom, how long, and with which chance at each acquisition, as \
                         holder:5ms:p=0.01 or next:1ms:p=0.1";
    let parts: Vec<&str> = text.split(':').collect();
    let [victim, time, chance] = parts[..] else {
        return Err(format!("`{text}` is no preemption: {RIGHT}"));
    };
    let named = Victim::NAMES.iter().find(|(name, _)| *name == victim);
    let Some((_, victim)) = named else {
        return Err(format!("no CPU to stop is called `{victim}`: {RIGHT}"));
    };
    let time = parse_duration(time)?;
    if time.is_zero() || time > LONGEST {
        let longest = show_duration(LONGEST);
        return Err(format!(
            "`{text}` stops a CPU for no time, or too long: give 1ns to {longest}"
        ));
    }
    let number = chance.strip_prefix("p=").and_then(|chance| chance.parse::<f64>().ok());
    match number {
        Some(chance) if chance > 0.0 && chance <= 1.0 => Ok(Spec { victim: *victim, time, chance }),
        Some(_) => Err(format!("`{chance}` is no chance: give more than 0 and at most 1")),
        None => Err(format!("`{chance}` is no chance: {RIGHT}")),
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:p={}", self.victim.name(), show_duration(self.time), self.chance)
    }
}

/// What is done to a guest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Preemption {
    /// What was asked for.
    pub spec: Spec,
    /// Another seed strikes other acquisitions.
    pub seed: u64,
    /// The holder's hint is honoured.
    pub honours_hints: bool,
}

impl Preemption {
    /// What the guest is told.
    #[must_use]
    pub fn word(&self) -> String {
        // The least chance that there is strikes one of a thousand million.
        let chance = ((self.spec.chance * f64::from(CERTAIN)).round() as u32).max(1);
        format!("preempt={}:{}:{chance}", self.spec.victim.name(), self.seed)
    }
}

/// What was done, for the eye.
#[must_use]
pub fn words(spec: &Spec, tally: &Tally) -> String {
    let ms = |ns: u64| ns as f64 / 1e6;
    let mean = ms(tally.ns) / tally.stopped.max(1) as f64;
    let mut text = format!("preempted {} of {} times", tally.stopped, tally.asked);
    if tally.stopped > 0 {
        let (least, most) = (ms(tally.least_ns), ms(tally.most_ns));
        text += &format!(", for {mean:.2} ms each ({least:.2} to {most:.2})");
        text += &match spec.victim {
            Victim::Holder => format!("; {} of them while it held the lock", tally.hit),
            Victim::Next => format!("; {} of them while it waited", tally.hit),
        };
    }
    if tally.put_off > 0 {
        text += &format!(
            "; a hint put off {}, {} of them for too long",
            tally.put_off, tally.impatient
        );
    }
    if tally.missed > 0 {
        text += &format!("; {} times there was no CPU to stop", tally.missed);
    }
    text
}

/// A thread that stops the CPUs of one machine; it ends when the machine can ring no more.
#[derive(Debug)]
pub(super) struct Guard {
    thread: Option<JoinHandle<()>>,
    tally: Arc<Mutex<Tally>>,
}

impl Guard {
    /// Posts one.
    pub(super) fn post(
        preemption: &Preemption,
        runs: &mut Runs,
        ready: &Ready,
    ) -> Result<Self, Failure> {
        let order = Order {
            victim: preemption.spec.victim,
            time: preemption.spec.time,
            honours_hints: preemption.honours_hints,
        };
        let (bell, bells) = channel();
        let tally = Arc::new(Mutex::new(Tally::default()));
        let shown = tally.clone();
        let shared = ready.shared_page;
        let serve = move |hands: Box<dyn CpuControl + Send>, memory: Arc<Memory>| {
            sleep_exactly();
            // Whether it is there was asked before.
            if let Some(shared) = memory.shared(shared) {
                Warden::new(order, hands).serve(shared, &bells, &shown);
            }
        };
        let no_page = || Failure::from(anyhow!("the guest has no shared page where it says"));
        let thread = match runs {
            Runs::Emulator(emulator) => {
                let nothing = || anyhow!("the machine was started without a bell");
                let (memory, stream) = emulator.take_shared().ok_or_else(nothing)?;
                memory.shared(shared).ok_or_else(no_page)?;
                let traced = threads(emulator.id(), ready.vcpus)?;
                thread::spawn(move || listen(stream, &bell));
                thread::spawn(move || serve(Box::new(traced), memory))
            }
            #[cfg(target_arch = "x86_64")]
            Runs::Own(machine) => {
                let (memory, hands) = (machine.memory(), machine.hands());
                memory.shared(shared).ok_or_else(no_page)?;
                machine.ring(bell);
                thread::spawn(move || serve(Box::new(hands), memory))
            }
        };
        Ok(Self { thread: Some(thread), tally })
    }

    /// When the machine has ended: what was done.
    pub(super) fn relieve(mut self) -> Tally {
        self.join();
        *self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            // One that has panicked has said so.
            let _ = thread.join();
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.join();
    }
}

/// The threads of an emulator's CPUs, and whether they may be stopped.
fn threads(process: u32, vcpus: u32) -> Result<Traced, Failure> {
    let wrong = |why: std::io::Error| {
        Failure::usage(format!(
            "the threads of QEMU's CPUs cannot be stopped one by one ({why}): --preempt needs ptrace, \
             which this system or container forbids, or --accel vmm"
        ))
    };
    let mut traced = Traced::find(process, vcpus as usize).map_err(wrong)?;
    traced.try_out().map_err(wrong)?;
    Ok(traced)
}

/// A byte a ring.
fn listen(mut stream: impl Read, bell: &Sender<()>) {
    let mut bytes = [0; 64];
    while let Ok(count @ 1..) = stream.read(&mut bytes) {
        for _ in 0..count {
            if bell.send(()).is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_what_is_read() {
        for text in ["holder:5ms:p=0.01", "next:100us:p=1"] {
            assert_eq!(parse_spec(text).unwrap().to_string(), text);
        }
        let spec = parse_spec("holder:5ms:p=0.01").unwrap();
        let preemption = Preemption { spec, seed: 7, honours_hints: false };
        assert_eq!(preemption.word(), "preempt=holder:7:10000000");
        let options = qspin_guest::options::parse("preempt=holder:7:10000000").unwrap();
        assert_eq!(options.preempt.unwrap().victim, spec.victim);
        let least = parse_spec("next:1ns:p=1e-30").unwrap();
        assert_eq!(Preemption { spec: least, ..preemption }.word(), "preempt=next:7:1");
    }

    #[test]
    fn what_is_wrong_is_said_with_what_would_be_right() {
        for (wrong, right) in [
            ("holder", "holder:5ms:p=0.01"),
            ("", "holder:5ms:p=0.01"),
            ("holder:5ms", "holder:5ms:p=0.01"),
            ("owner:5ms:p=0.01", "holder:5ms:p=0.01"),
            ("holder:5:p=0.01", "no unit"),
            ("holder:0:p=0.01", "500ms"),
            ("holder:1s:p=0.01", "500ms"),
            ("holder:5ms:0.01", "p=0.01"),
            ("holder:5ms:p=x", "p=0.01"),
            ("holder:5ms:p=0", "at most 1"),
            ("holder:5ms:p=1.5", "at most 1"),
            ("holder:5ms:p=nan", "at most 1"),
            ("holder:5ms:p=0.01:x", "holder:5ms:p=0.01"),
        ] {
            let said = parse_spec(wrong).unwrap_err();
            assert!(said.contains(right), "{wrong}: {said}");
        }
    }

    #[test]
    fn a_tally_is_told_in_words() {
        let spec = parse_spec("holder:5ms:p=0.01").unwrap();
        let tally = Tally {
            asked: 12,
            stopped: 10,
            missed: 2,
            hit: 10,
            put_off: 0,
            impatient: 0,
            ns: 51_000_000,
            least_ns: 5_000_000,
            most_ns: 6_000_000,
        };
        assert_eq!(
            words(&spec, &tally),
            "preempted 10 of 12 times, for 5.10 ms each (5.00 to 6.00); 10 of them while it held \
             the lock; 2 times there was no CPU to stop"
        );
        assert_eq!(words(&spec, &Tally::default()), "preempted 0 of 0 times");
    }
}
