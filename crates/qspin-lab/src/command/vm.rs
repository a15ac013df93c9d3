//! `qspin vm`: measures or tests the locks in a guest, on virtual CPUs that the host takes away.

mod entrants;
mod guest;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, anyhow};
use qspin_core::locks::Id;
use qspin_guest::options::{self, MAX_CPUS, TESTS};

use self::guest::{Found, Host};
use crate::bench::affinity::{Pin, Placement, allowed_cpus};
use crate::bench::hogs::Hogs;
use crate::bench::interrupt::Interrupt;
use crate::bench::plan::HogsBeside;
use crate::bench::steps::Series;
use crate::failure::Failure;
use crate::output::Output;
use crate::quantity::{parse_count, parse_duration, parse_overcommit, parse_seconds, parse_seed};
use crate::remedy::Remedy;
use crate::row;
use crate::this_machine as this;
use crate::tune::{self, Tune};
use crate::vm::accelerator::{self, Accel};
use crate::vm::emulator::QEMU;
use crate::vm::machine::Maker;
use crate::vm::preempt::{Spec, parse_spec};
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
    /// Tunables of our locks, as `awake_polls=64`; `qspin locks --tunables` lists them.
    #[arg(long, value_name = "NAME=VALUE,…", allow_hyphen_values = true, value_delimiter = ',',
          value_parser = tune::parse)]
    tune: Vec<Tune>,
    /// The steps of the paravirt lock, each on top of those before it, one row a step, each round of each in a guest
    /// of its own; as in `bench`.
    #[arg(long, value_enum, value_name = "ORDER", num_args = 0..=1, require_equals = true,
          default_missing_value = "series", conflicts_with_all = ["suite", "locks", "remedy"])]
    steps: Option<Series>,
    /// The remedies of document 001 against an owner that does not run, a row each, each round of each in a guest of
    /// its own: none; a, waiters yield; b, the host spares an owner that asks for it (with --preempt); c, its run
    /// status is visible. Of ticket, simple, yield and paravirt, if no `--locks` are named.
    #[arg(long, value_name = "REMEDY,…", value_delimiter = ',', value_parser = str::parse::<Remedy>,
          conflicts_with_all = ["suite", "honour_hints"])]
    remedy: Vec<Remedy>,
    /// Where virtual CPUs run: each on a CPU (A), anywhere (B), all on half of the CPUs (C).
    #[arg(long, value_enum, default_value = "B")]
    pin: Pin,
    /// Spinning processes of the host beside the guest.
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value = "0",
          value_parser = clap::value_parser!(u32).range(0..=1024), conflicts_with = "overcommit")]
    hogs: u32,
    /// So many hogs that hogs and virtual CPUs are this many times the CPUs (1x: no hogs).
    #[arg(long, value_name = "1x..4x", allow_hyphen_values = true, value_parser = parse_overcommit)]
    overcommit: Option<u32>,
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
    parse_count(text, "virtual CPUs", MAX_CPUS, ", several as 2,4,8")
}

fn parse_lock(text: &str) -> Result<String, String> {
    options::lock(text).map(|lock| lock.name.to_owned()).map_err(|why| {
        let names: Vec<_> = options::locks().map(|lock| lock.name).collect();
        format!("`{text}` {why}: choose from {}", names.join(", "))
    })
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

/// Boots guests, and reports what they say.
///
/// # Errors
///
/// Wrong input, or a guest that hangs or fails.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let locks: Vec<&'static str> = match (args.locks.is_empty(), args.suite) {
        (false, _) => args.locks.iter().filter_map(|name| Some(Id::named(name)?.name())).collect(),
        (true, true) => options::locks().map(|lock| lock.name).collect(),
        (true, false) => vec!["native", "paravirt", "ticket", "paravirt-ticket"],
    };
    let vcpus: &[u32] = match (args.vcpus.as_slice(), args.suite) {
        ([], true) => &[4],
        ([], false) => &[2, 4, 8, 16],
        (given, _) => given,
    };
    // Wrong input is told before a guest is tried.
    for &vcpus in vcpus {
        entrants::of(args, &locks, vcpus)?;
    }
    let out = args.out.as_deref().map(Output::prepare).transpose()?;
    let maker = maker(args)?;
    let interrupt = Interrupt::on_signals()?;
    let choice = accelerator::choose(args.accel, &maker, &interrupt)?;
    let phase = args.seconds.unwrap_or(Duration::from_millis(if args.suite { 100 } else { 1000 }));
    let mut machine = this::describe(0);
    if let Some(why) = &choice.why {
        super::tell(&format!("warning: {why}"));
        machine.warnings.push(format!("{why}."));
    }
    let beside = match args.overcommit {
        None => HogsBeside::Hogs(args.hogs as usize),
        Some(times) => HogsBeside::Overcommit(times),
    };
    let placement = Placement::new(args.pin, allowed_cpus());
    let hogs_for = |vcpus: u32| beside.hogs(vcpus as usize, placement.cpus());
    let most_hogs = vcpus.iter().map(|&vcpus| hogs_for(vcpus)).max().unwrap_or(0);
    let mut hogs = Hogs::start(most_hogs).context("cannot start the hogs")?;
    let host = Host {
        args,
        maker: &maker,
        choice: &choice,
        placement: &placement,
        interrupt: &interrupt,
        phase,
    };
    let mut found = Found::default();
    for &vcpus in vcpus {
        let entrants = entrants::of(args, &locks, vcpus)?;
        hogs.run(hogs_for(vcpus));
        let end = host.measure(vcpus, &entrants, &mut found);
        hogs.run(0);
        if matches!(end, Ok(true)) {
            continue;
        }
        found.partial = true;
        if let Err(why) = end {
            conclude(args, machine, &found, out)?;
            return Err(why);
        }
        break;
    }
    for row in &mut found.rows {
        row.hogs = hogs_for(row.threads) as u32;
        row.pin = args.pin.to_string();
    }
    if found.partial {
        machine.warnings.push("Interrupted: what was finished is reported.".to_owned());
    }
    conclude(args, machine, &found, out)?;
    let failed = found.failed;
    match () {
        () if found.partial => Ok(ExitCode::from(super::INTERRUPTED)),
        () if failed > 0 => {
            Err(anyhow!("{failed} results of the suite are wrong: see the lines above").into())
        }
        () => Ok(ExitCode::SUCCESS),
    }
}

/// Writes and shows what was found.
fn conclude(
    args: &Args,
    machine: row::Machine,
    found: &Found,
    out: Option<Output>,
) -> Result<(), Failure> {
    let rows = &found.rows[..];
    // A file that cannot be written takes nothing from what is shown, nor a reader that has gone from the file.
    let written = match out {
        Some(out) if !rows.is_empty() => out.finish(&row::to_json_lines(&machine, rows)?),
        _ => Ok(()),
    };
    match () {
        () if args.suite => {}
        () if found.lines.is_empty() => {
            super::say(&format!("\n{}", table::tables(rows, allowed_cpus().len() as u32)))?;
        }
        () => super::say(&format!("\n{}", entrants::table(args, found)))?,
    }
    Ok(written?)
}
