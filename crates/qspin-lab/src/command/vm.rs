//! `qspin vm`: measures or tests the locks in a guest, on virtual CPUs that the host takes away.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::anyhow;
use indicatif::ProgressBar;
use qspin_guest::options::{self, MOST_CPUS, TESTS};
use serde_json::Value;

use crate::bench::affinity::allowed_cpus;
use crate::bench::interrupt::Interrupt;
use crate::failure::Failure;
use crate::output::Output;
use crate::quantity::{parse_count, parse_duration, parse_seconds, parse_seed};
use crate::row::{self, Row};
use crate::this_machine as host;
use crate::tune::{self, Tune};
use crate::vm::accelerator::{self, Accel, Choice};
use crate::vm::emulator::QEMU;
use crate::vm::machine::{Machine, Maker, Silence, trouble};
use crate::vm::preempt::{self, Preemption, Spec, parse_spec};
use crate::vm::reply::{Events, Outcome, Phase, Ready, Reply};
use crate::vm::rows::{Setting, row};
use crate::vm::table;

/// Measure locks in a guest, on virtual CPUs that the host takes away.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Numbers of virtual CPUs, a guest each [default: 2,4,8,16; suite: 4].
    #[arg(long, value_name = "N,…", allow_hyphen_values = true, value_delimiter = ',',
          value_parser = parse_vcpus)]
    vcpus: Vec<u32>,
    /// Locks, by name [default: native, paravirt, ticket, paravirt-ticket; suite: all].
    #[arg(long, value_name = "LOCK,…", value_delimiter = ',', value_parser = parse_lock)]
    locks: Vec<String>,
    /// Length of the critical section.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = parse_duration,
          default_value = "1us")]
    critical: Duration,
    /// Length of the work between two critical sections.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = parse_duration,
          default_value = "1us")]
    outside: Duration,
    /// How long each lock is measured in a round [default: 1; suite: 0.1, a lock and test].
    #[arg(long, value_name = "SECONDS", allow_hyphen_values = true, value_parser = parse_seconds)]
    seconds: Option<Duration>,
    /// Rounds, each of which measures every lock once.
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value = "1",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// What executes the guest: KVM where a probe shows that it really runs, else emulation.
    #[arg(long, value_enum, default_value = "auto")]
    accel: Accel,
    /// The board, of those that QEMU has [default: q35].
    #[arg(long, value_name = "NAME", value_parser = ["q35", "pc", "microvm"])]
    machine: Option<String>,
    /// Stop virtual CPUs on purpose: `holder` or `next` (the waiter that has waited longest), for how long,
    /// with which chance at each acquisition.
    #[arg(long, value_name = "WHOM:TIME:p=P", value_parser = parse_spec, conflicts_with = "suite")]
    preempt: Option<Spec>,
    /// The same acquisitions are struck for the same number.
    #[arg(long, value_name = "NUMBER", requires = "preempt", allow_hyphen_values = true,
          default_value = "1", value_parser = parse_seed)]
    seed: u64,
    /// A holder asks not to be preempted; stop it only once it has released.
    #[arg(long, requires = "preempt")]
    honour_hints: bool,
    /// How halted CPUs are kicked.
    #[arg(long, default_value = "auto", value_parser = ["auto", "vector", "nmi"])]
    kick: String,
    /// Which interface of the interrupt controllers is used.
    #[arg(long, default_value = "auto", value_parser = ["auto", "x", "x2"])]
    apic: String,
    /// Places, made up, to which CPUs are dealt in turn, for the NUMA-aware locks.
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value = "2",
          value_parser = clap::value_parser!(u32).range(1..=64))]
    places: u32,
    /// Tunables of our locks, as `awake_looks=64`; `qspin locks --tunables` lists them.
    #[arg(long, value_name = "NAME=VALUE,…", allow_hyphen_values = true, value_delimiter = ',',
          value_parser = tune::parse)]
    tune: Vec<Tune>,
    /// Test instead of measuring: exact counts in tasks, interrupts and NMIs. Exit code 1 where one
    /// is wrong.
    #[arg(long)]
    suite: bool,
    /// Tests of the suite [default: all].
    #[arg(long, value_name = "TEST,…", value_delimiter = ',', requires = "suite",
          value_parser = TESTS)]
    tests: Vec<String>,
    /// In the suite, a lock that is never released: shows what is said of a hang.
    #[arg(long, requires = "suite", hide = true)]
    hang: bool,
    /// The emulator [default: qemu-system-x86_64].
    #[arg(long, value_name = "PROGRAM")]
    qemu: Option<PathBuf>,
    /// Another guest than the one in this program.
    #[arg(long, value_name = "FILE")]
    image: Option<PathBuf>,
    /// File for the rows, as JSON Lines.
    #[arg(long, value_name = "FILE.jsonl", conflicts_with = "suite")]
    out: Option<PathBuf>,
}

fn parse_vcpus(text: &str) -> Result<u32, String> {
    parse_count(text, "virtual CPUs", MOST_CPUS, ", several as 2,4,8")
}

fn parse_lock(text: &str) -> Result<String, String> {
    options::lock(text).map(|lock| lock.name.to_owned()).map_err(|why| {
        let names: Vec<_> = options::locks().map(|lock| lock.name).collect();
        format!("`{text}` {why}: choose from {}", names.join(", "))
    })
}

/// What every guest is told, beside its number of CPUs.
fn line(args: &Args, locks: &[&str], phase: Duration, choice: &Choice) -> String {
    let kick = if choice.no_hypercall && args.kick == "auto" { "vector" } else { &args.kick };
    let mut line = format!(
        "mode={} locks={} ms={} rounds={} critical={} outside={} places={} apic={} kick={kick}",
        if args.suite { "suite" } else { "bench" },
        locks.join(","),
        phase.as_millis().max(1),
        args.rounds,
        args.critical.as_nanos(),
        args.outside.as_nanos(),
        args.places,
        args.apic,
    );
    if !args.tune.is_empty() {
        let tunes = args.tune.iter().map(|tune| format!("{}:{}", tune.name(), tune.value()));
        line += &format!(" tune={}", tunes.collect::<Vec<_>>().join(","));
    }
    if !args.tests.is_empty() {
        line += &format!(" tests={}", args.tests.join(","));
    }
    if args.hang {
        line += " hang=1";
    }
    if let Some(preemption) = preemption(args) {
        line += &format!(" {}", preemption.word());
    }
    line
}

fn preemption(args: &Args) -> Option<Preemption> {
    let honours_hints = args.honour_hints;
    args.preempt.map(|spec| Preemption { spec, seed: args.seed, honours_hints })
}

/// The board, as rows have it.
fn board(args: &Args) -> &str {
    args.machine.as_deref().unwrap_or(if args.accel == Accel::Vmm { "vmm" } else { "q35" })
}

/// Where machines come from. Our own monitor needs no emulator, and knows one board.
fn maker(args: &Args) -> Result<Maker, Failure> {
    let qemu = Some(args.qemu.as_deref().unwrap_or(Path::new(QEMU)));
    if args.accel != Accel::Vmm {
        return Maker::new(qemu, board(args), args.image.as_deref());
    }
    for (given, name) in [(args.machine.is_some(), "machine"), (args.qemu.is_some(), "qemu")] {
        if given {
            return Err(Failure::usage(format!(
                "--{name} is about QEMU: leave it out, or choose --accel kvm or tcg"
            )));
        }
    }
    Maker::new(None, board(args), args.image.as_deref())
}

/// The longest that a guest takes to boot.
const BOOT: Duration = Duration::from_secs(60);
/// How long a guest may take longer than it was told to, at the least: it has a limit of its own, of a
/// minute, and says which CPU waits for what.
const GRACE: Duration = Duration::from_secs(90);

/// Boots guests, and reports what they say.
///
/// # Errors
///
/// Wrong input, or a guest that hangs or fails.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let out = args.out.as_deref().map(Output::prepare).transpose()?;
    let maker = maker(args)?;
    let interrupt = Interrupt::on_signals()?;
    let choice = accelerator::choose(args.accel, &maker, &interrupt)?;
    let locks: Vec<&str> = match (args.locks.is_empty(), args.suite) {
        (false, _) => args.locks.iter().map(String::as_str).collect(),
        (true, true) => options::locks().map(|lock| lock.name).collect(),
        (true, false) => vec!["native", "paravirt", "ticket", "paravirt-ticket"],
    };
    let vcpus: &[u32] = match (args.vcpus.as_slice(), args.suite) {
        ([], true) => &[4],
        ([], false) => &[2, 4, 8, 16],
        (given, _) => given,
    };
    let phase = args.seconds.unwrap_or(Duration::from_millis(if args.suite { 100 } else { 1000 }));
    let mut machine = host::describe(0);
    if let Some(why) = &choice.why {
        super::tell(&format!("warning: {why}"));
        machine.warnings.push(format!("{why}."));
    }
    let line = line(args, &locks, phase, &choice);
    let mut rows = Vec::new();
    let mut failed = 0;
    let mut partial = false;
    for &vcpus in vcpus {
        let mut guest = maker.start(vcpus, choice.accelerator, &line, args.preempt.is_some())?;
        let mut heard = Heard::default();
        let end = listen(args, &mut guest, &mut heard, &locks, phase, &interrupt);
        if let Some(ready) = &heard.ready
            && !args.suite
        {
            rows.extend(rows_of(args, &choice, ready, &locks, &heard, !matches!(end, Ok(true))));
        }
        failed += heard.failed;
        match end {
            Ok(true) => {}
            Ok(false) => {
                partial = true;
                break;
            }
            Err(why) => {
                conclude(args, machine, &rows, out)?;
                return Err(why);
            }
        }
    }
    if partial {
        machine.warnings.push("Interrupted: what was finished is reported.".to_owned());
    }
    conclude(args, machine, &rows, out)?;
    match () {
        () if partial => Ok(ExitCode::from(super::INTERRUPTED)),
        () if failed > 0 => {
            Err(anyhow!("{failed} results of the suite are wrong: see the lines above").into())
        }
        () => Ok(ExitCode::SUCCESS),
    }
}

/// What a guest has said.
#[derive(Debug, Default)]
struct Heard {
    ready: Option<Ready>,
    phases: Vec<Phase>,
    events: Vec<Events>,
    failed: u64,
}

/// Listens until the guest ends; `false` if somebody asked to stop.
fn listen(
    args: &Args,
    guest: &mut Machine,
    heard: &mut Heard,
    locks: &[&str],
    phase: Duration,
    interrupt: &Interrupt,
) -> Result<bool, Failure> {
    let total = u64::from(args.rounds) * locks.len() as u64;
    let bar = if args.suite { ProgressBar::hidden() } else { super::bar(total, "{msg} ") };
    let mut asked = false;
    loop {
        let limit = match (&heard.ready, asked) {
            (_, true) => Duration::from_secs(10),
            (None, false) => BOOT,
            (Some(_), false) => phase * 4 + GRACE,
        };
        match guest.reply(limit, interrupt) {
            Ok(Reply::Ready(ready)) => {
                let first = Duration::from_micros(ready.first_lock_us);
                super::say(&format!(
                    "guest     {} vCPUs, {}, kicks by {}, first lock {:.0} ms after its first \
                     instruction, {:.0} ms after the start of the process\n",
                    ready.vcpus,
                    ready.apic,
                    ready.kick,
                    first.as_secs_f64() * 1e3,
                    guest.age().as_secs_f64() * 1e3,
                ))?;
                if let Some(preemption) = preemption(args) {
                    guest.preempt(&preemption, &ready)?;
                }
                heard.ready = Some(ready);
            }
            Ok(Reply::Phase(phase)) => {
                bar.set_message(phase.lock.clone());
                bar.inc(1);
                heard.phases.push(phase);
            }
            Ok(Reply::Events(events)) => heard.events.push(events),
            Ok(Reply::Result(outcome)) => {
                heard.failed += u64::from(!outcome.ok);
                super::say(&result(&outcome))?;
            }
            Ok(Reply::End { ms, .. }) => {
                bar.finish_and_clear();
                if let (Some(spec), Some(tally)) = (&args.preempt, guest.finish()) {
                    super::say(&format!("{}\n", preempt::words(spec, &tally)))?;
                }
                if args.suite {
                    super::say(&format!("end       after {:.1} s\n", ms as f64 / 1e3))?;
                }
                return Ok(true);
            }
            Ok(Reply::Pace { .. }) => {}
            Ok(other) => {
                bar.finish_and_clear();
                return match trouble(&other) {
                    Some(why) => Err(why.into()),
                    None => Err(anyhow!("the guest says something unexpected").into()),
                };
            }
            Err(Silence::Interrupted) => {
                bar.finish_and_clear();
                return Ok(false);
            }
            Err(Silence::Late) if !asked => {
                asked = true;
                guest.ask();
            }
            Err(Silence::Late) => {
                return Err(anyhow!("the guest hangs, and does not answer its NMI button").into());
            }
            Err(Silence::Ended(said)) => {
                let said = if said.is_empty() { "it said nothing".to_owned() } else { said };
                return Err(anyhow!("the machine ended before its guest did: {said}").into());
            }
        }
    }
}

/// A result of the suite, for the eye.
fn result(outcome: &Outcome) -> String {
    let Outcome { test, detail, lock, ok, counted, expected } = outcome;
    let verdict = if *ok { "ok   " } else { "WRONG" };
    format!("{verdict}     {test:<10} {lock:<18} {detail:<22} {counted} of {expected}\n")
}

fn rows_of(
    args: &Args,
    choice: &Choice,
    ready: &Ready,
    locks: &[&str],
    heard: &Heard,
    partial: bool,
) -> Vec<Row> {
    let mut params: BTreeMap<String, Value> = BTreeMap::from([
        ("accel".to_owned(), choice.accelerator.name().into()),
        ("machine".to_owned(), board(args).into()),
        ("kick".to_owned(), ready.kick.clone().into()),
        ("apic".to_owned(), ready.apic.clone().into()),
        ("places".to_owned(), args.places.into()),
    ]);
    if let Some(preemption) = preemption(args) {
        let hints = if preemption.honours_hints { "honoured" } else { "ignored" };
        params.insert("preempt".to_owned(), preemption.spec.to_string().into());
        params.insert("seed".to_owned(), preemption.seed.into());
        params.insert("hints".to_owned(), hints.into());
    }
    let tune = args.tune.iter().map(|tune| (tune.name().to_owned(), tune.value().into()));
    let setting = Setting {
        params,
        tune: tune.collect(),
        critical_ns: args.critical.as_nanos() as f64,
        outside_ns: args.outside.as_nanos() as f64,
    };
    let row = |lock: &&str| {
        let phases: Vec<&Phase> = heard.phases.iter().filter(|phase| phase.lock == *lock).collect();
        let events = heard.events.iter().find(|events| events.lock == *lock);
        row(&setting, lock, &phases, events, partial)
    };
    locks.iter().filter_map(row).collect()
}

/// Writes and shows what was found.
fn conclude(
    args: &Args,
    machine: row::Machine,
    rows: &[Row],
    out: Option<Output>,
) -> Result<(), Failure> {
    // A file that cannot be written takes nothing from what is shown, nor a reader that has gone from the file.
    let written = match out {
        Some(out) if !rows.is_empty() => out.finish(&row::to_json_lines(&machine, rows)?),
        _ => Ok(()),
    };
    if !args.suite {
        super::say(&format!("\n{}", table::tables(rows, allowed_cpus().len() as u32)))?;
    }
    Ok(written?)
}
