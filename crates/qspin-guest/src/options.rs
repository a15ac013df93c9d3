//! What the guest is asked to do: words of its command line, `name=value`.

use core::fmt;

use qspin_core::locks::{Family, Id, LOCKS, Lock};
use qspin_core::tuning::Tuning;

use crate::preempt::{CERTAIN, Plan, Victim};

/// Whether the guest runs a lock: for those that sleep beside their word it is no platform yet.
#[must_use]
pub const fn runs(lock: &Lock) -> bool {
    !matches!(lock.family, Family::Sleeping)
}

/// The locks of the register that the guest runs, in its order, which is that in which they are run.
pub fn locks() -> impl Iterator<Item = &'static Lock> + Clone {
    LOCKS.iter().filter(|lock| runs(lock))
}

/// The lock of this name.
///
/// # Errors
///
/// There is none, or the guest does not run it: says which.
pub fn lock(name: &str) -> Result<&'static Lock, &'static str> {
    match Id::named(name).map(Id::lock) {
        Some(lock) if runs(lock) => Ok(lock),
        Some(_) => Err("sleeps beside its word, and the guest has no way to sleep yet"),
        None => Err("is no lock of the guest"),
    }
}

const ALL_LOCKS: u32 = {
    let (mut bits, mut number) = (0, 0);
    while number < LOCKS.len() {
        bits |= (runs(&LOCKS[number]) as u32) << number;
        number += 1;
    }
    bits
};

/// The tests of the suite, in the order in which they are run.
pub const TESTS: [&str; 6] = ["exclusion", "nesting", "halts", "storm", "rwlock", "hotplug"];

/// Where the guest expects the device `isa-debug-exit`, by which it ends.
pub const EXIT_PORT: u16 = 0xf4;

/// Where the guest rings for the host: any byte, see [`crate::shared_page`]. QEMU's `isa-debugcon` listens there.
pub const BELL_PORT: u16 = 0xe9;

/// Most CPUs that the guest uses.
pub const MAX_CPUS: u32 = 64;

/// What to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Boot, one acquisition, and the end: does this machine run at all?
    Probe,
    /// The tests.
    Suite,
    /// The measurement.
    Bench,
}

/// Which interface of the APIC is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Apic {
    /// x2APIC where the CPU has it.
    Auto,
    /// By memory.
    X,
    /// By registers.
    X2,
}

/// How halts are kicked. But for [`Kick::Auto`], there are no hypercalls at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kick {
    /// By the hypercall where KVM offers it.
    Auto,
    /// By interrupts and NMIs.
    Vector,
    /// By NMIs only.
    Nmi,
}

/// What the guest is asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// What to run.
    pub mode: Mode,
    /// CPUs to wait for.
    pub vcpus: u32,
    /// Locks, a bit each by its number in the register.
    pub locks: u32,
    /// Tests, a bit each by its place in [`TESTS`].
    pub tests: u32,
    /// Length of a phase, in milliseconds.
    pub phase_ms: u32,
    /// Rounds of a measurement.
    pub rounds: u32,
    /// Length of a critical section.
    pub critical_ns: u32,
    /// Length of the work between two.
    pub outside_ns: u32,
    /// Places for the NUMA-aware locks, to which CPUs are dealt in turn: made up.
    pub places: u32,
    /// Which interface of the APIC is used.
    pub apic: Apic,
    /// How halts are kicked.
    pub kick: Kick,
    /// A test hangs on purpose, since what is said then is tested, too: 1 with the interrupts of the
    /// first CPU on, 2 with them off.
    pub hang: u32,
    /// At which acquisitions of a measurement the host is asked to stop a CPU.
    pub preempt: Option<Plan>,
    /// The tunables.
    pub tuning: Tuning,
}

impl Options {
    /// What is not said.
    pub const DEFAULT: Self = Self {
        mode: Mode::Suite,
        vcpus: 1,
        locks: ALL_LOCKS,
        tests: (1 << TESTS.len()) - 1,
        phase_ms: 100,
        rounds: 1,
        critical_ns: 1000,
        outside_ns: 1000,
        places: 2,
        apic: Apic::Auto,
        kick: Kick::Auto,
        hang: 0,
        preempt: None,
        tuning: Tuning::DEFAULT,
    };

    /// The numbers of the locks.
    pub fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        (0..LOCKS.len() as u32).filter(|number| self.locks & 1 << number != 0)
    }
}

/// A word that is not understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unknown<'a>(pub &'a str);

impl fmt::Display for Unknown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not understood: {}", self.0)
    }
}

fn number(text: &str, least: u32, most: u32) -> Option<u32> {
    text.parse().ok().filter(|number| (least..=most).contains(number))
}

fn set(text: &str, number: impl Fn(&str) -> Option<usize>) -> Option<u32> {
    text.split(',').try_fold(0, |bits, name| Some(bits | 1 << number(name)?))
}

fn choice<T: Copy>(text: &str, choices: &[(&str, T)]) -> Option<T> {
    choices.iter().find(|(name, _)| *name == text).map(|(_, value)| *value)
}

fn tune(text: &str, tuning: &mut Tuning) -> Option<()> {
    for setting in text.split(',') {
        let (name, value) = setting.split_once(':')?;
        let tunable = Tuning::named(name)?;
        (tunable.set)(tuning, number(value, tunable.min, tunable.max)?);
    }
    Some(())
}

/// `holder:SEED:CHANCE`.
fn plan(text: &str) -> Option<Plan> {
    let mut parts = text.split(':');
    let victim = choice(parts.next()?, &Victim::NAMES)?;
    let seed = parts.next()?.parse().ok()?;
    let chance = number(parts.next()?, 0, CERTAIN)?;
    parts.next().is_none().then_some(Plan { victim, seed, chance })
}

/// Reads a command line. Words without a `=` are the loader's (the name of a kernel).
///
/// # Errors
///
/// The first word that is not understood.
pub fn parse(line: &str) -> Result<Options, Unknown<'_>> {
    let mut options = Options::DEFAULT;
    for word in line.split_ascii_whitespace() {
        let Some((name, value)) = word.split_once('=') else { continue };
        apply(&mut options, name, value).ok_or(Unknown(word))?;
    }
    Ok(options)
}

fn apply(options: &mut Options, name: &str, value: &str) -> Option<()> {
    match name {
        "mode" => {
            let modes = [("probe", Mode::Probe), ("suite", Mode::Suite), ("bench", Mode::Bench)];
            options.mode = choice(value, &modes)?;
        }
        "vcpus" => options.vcpus = number(value, 1, MAX_CPUS)?,
        "locks" => options.locks = set(value, |name| Some(lock(name).ok()?.id as usize))?,
        "tests" => options.tests = set(value, |name| TESTS.iter().position(|test| *test == name))?,
        "ms" => options.phase_ms = number(value, 1, 3_600_000)?,
        "rounds" => options.rounds = number(value, 1, 10_000)?,
        "critical" => options.critical_ns = number(value, 0, 1_000_000_000)?,
        "outside" => options.outside_ns = number(value, 0, 1_000_000_000)?,
        "places" => options.places = number(value, 1, 64)?,
        "apic" => {
            let choices = [("auto", Apic::Auto), ("x", Apic::X), ("x2", Apic::X2)];
            options.apic = choice(value, &choices)?;
        }
        "kick" => {
            let choices = [("auto", Kick::Auto), ("vector", Kick::Vector), ("nmi", Kick::Nmi)];
            options.kick = choice(value, &choices)?;
        }
        "hang" => options.hang = number(value, 0, 2)?,
        "preempt" => options.preempt = Some(plan(value)?),
        "tune" => tune(value, &mut options.tuning)?,
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_understood_and_the_rest_stays() {
        let line = "/guest mode=bench vcpus=16 locks=native,paravirt ms=5000 critical=0 apic=x2 \
                    tune=awake_polls:64,head_polls:128 preempt=next:18446744073709551615:5";
        let options = parse(line).unwrap();
        assert_eq!((options.mode, options.vcpus, options.phase_ms), (Mode::Bench, 16, 5000));
        assert_eq!(options.locks, 1 << Id::Native as u32 | 1 << Id::Paravirt as u32);
        assert_eq!(parse("locks=yielding,yield").unwrap().locks, 1 << Id::Yield as u32);
        assert_eq!((options.critical_ns, options.outside_ns), (0, 1000));
        assert_eq!((options.apic, options.kick), (Apic::X2, Kick::Auto));
        assert_eq!((options.tuning.awake_polls, options.tuning.head_polls), (64, 128));
        let plan = Plan { victim: Victim::Next, seed: u64::MAX, chance: 5 };
        assert_eq!(options.preempt, Some(plan));
        assert_eq!(parse(""), Ok(Options::DEFAULT));
    }

    #[test]
    fn what_is_not_understood_is_named() {
        for word in [
            "vcpus=0",
            "vcpus=65",
            "vcpus=x",
            "locks=nativ",
            "locks=",
            "locks=native,mutex",
            "mode=all",
            "colour=red",
            "tune=awake_polls",
            "tune=awake_polls:0",
            "tests=none",
            "preempt=holder:1",
            "preempt=nobody:1:5",
            "preempt=holder:1:1000000001",
            "preempt=holder:1:5:5",
        ] {
            assert_eq!(parse(word), Err(Unknown(word)));
        }
    }
}
