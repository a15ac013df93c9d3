//! What executes the guest: KVM where that really runs, else emulation; or our own monitor.
//!
//! That `/dev/kvm` is there says little. Inside another virtual machine KVM may execute its guest
//! instruction by instruction, know few of these, never get past a hypercall, or not run at all. So a
//! guest is booted, for two seconds at most, and asked how fast it is.

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::time::{Duration, Instant};

use super::machine::{Machine, Maker, Silence};
use super::reply::Reply;
use crate::bench::interrupt::Interrupt;
use crate::failure::Failure;

/// What executes the guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accelerator {
    /// The processor, by KVM.
    Kvm,
    /// QEMU's translator, a host thread a virtual CPU.
    Tcg,
    /// The processor, by KVM, whose virtual CPUs are threads of ours: no QEMU.
    Vmm,
}

/// What the user wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Accel {
    /// KVM where it really runs, else TCG.
    Auto,
    /// KVM.
    Kvm,
    /// Emulation, which runs everywhere.
    Tcg,
    /// KVM without QEMU: virtual CPUs are threads of this program.
    Vmm,
}

impl Accelerator {
    /// For `-accel`.
    #[must_use]
    pub fn argument(self) -> &'static str {
        match self {
            Self::Kvm | Self::Vmm => "kvm",
            Self::Tcg => "tcg,thread=multi",
        }
    }

    /// For `-cpu`.
    #[must_use]
    pub fn cpu(self) -> &'static str {
        match self {
            // A host that is a guest itself may offer that register and refuse to set it; our guest does not read it.
            Self::Kvm | Self::Vmm => "host,-arch-capabilities",
            Self::Tcg => "max",
        }
    }

    /// Its name in rows.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Kvm => "kvm",
            Self::Tcg => "tcg",
            Self::Vmm => "vmm",
        }
    }
}

/// What was chosen.
#[derive(Debug, Clone)]
pub struct Choice {
    /// What executes the guest.
    pub accelerator: Accelerator,
    /// The hypercall is offered, and does not return.
    pub no_hypercall: bool,
    /// Why it is not the best that there might be.
    pub why: Option<String>,
}

/// The longest probe.
const PROBE: Duration = Duration::from_secs(2);
/// The same where the user insists: a firmware that is executed instruction by instruction takes as long.
const PATIENT_PROBE: Duration = Duration::from_secs(10);
/// Steps of work in a millisecond: TCG does some 200 000 where this was written, a KVM that executes
/// instruction by instruction 400, a processor a million.
const SLOW: u64 = 20_000;

const TCG: &str = "--accel tcg runs everywhere";

/// Chooses, as the user wants.
///
/// # Errors
///
/// Wrong input: KVM was asked for, and is not to be had here.
pub fn choose(accel: Accel, maker: &Maker, interrupt: &Interrupt) -> Result<Choice, Failure> {
    let tcg = |why| Choice { accelerator: Accelerator::Tcg, no_hypercall: false, why };
    if accel == Accel::Tcg {
        return Ok(tcg(None));
    }
    let accelerator = if accel == Accel::Vmm { Accelerator::Vmm } else { Accelerator::Kvm };
    let asked = accel != Accel::Auto;
    if accel == Accel::Vmm && !cfg!(target_arch = "x86_64") {
        return Err(Failure::usage(format!("our own monitor is for x86_64 only; {TCG}")));
    }
    if let Err(why) = OpenOptions::new().read(true).write(true).open("/dev/kvm") {
        let why = match why.kind() {
            ErrorKind::NotFound => {
                "there is no /dev/kvm: load the module kvm_intel or kvm_amd, or enable \
                                    virtualization in the firmware"
                    .to_owned()
            }
            ErrorKind::PermissionDenied => {
                "no permission for /dev/kvm: become a member of the group kvm".to_owned()
            }
            _ => format!("/dev/kvm cannot be opened: {why}"),
        };
        return if asked {
            Err(Failure::usage(format!("{why}; {TCG}")))
        } else {
            Ok(tcg(Some(why)))
        };
    }
    let mut no_hypercall = false;
    loop {
        let line = if no_hypercall { "mode=probe kick=vector" } else { "mode=probe" };
        let mut machine = match maker.start(1, accelerator, line, false) {
            Err(why) if asked => return Err(Failure::usage(format!("{why:#}; {TCG}"))),
            started => started?,
        };
        let limit = if asked { PATIENT_PROBE } else { PROBE };
        let found = probe(&mut machine, limit, interrupt);
        let slow = found.pace.is_some_and(|pace| pace < SLOW);
        if !found.ended && found.pace.is_some() && !no_hypercall {
            // It has come as far as the hypercall.
            no_hypercall = true;
            continue;
        }
        let why = if !found.ended {
            let said =
                found.said.as_deref().unwrap_or("nothing came out of it in the time of a probe");
            Some(format!("KVM is there, but does not run a guest: {said}"))
        } else if slow {
            Some(
                "KVM is there, but executes instruction by instruction, slower than TCG".to_owned(),
            )
        } else if no_hypercall {
            Some(
                "KVM offers a hypercall to kick, which does not return: kicks are interrupts"
                    .to_owned(),
            )
        } else {
            None
        };
        return match (found.ended, slow, asked) {
            (true, false, _) | (true, true, true) => Ok(Choice { accelerator, no_hypercall, why }),
            (_, _, false) => Ok(tcg(why)),
            (_, _, true) => Err(Failure::usage(format!(
                "{}; {TCG}",
                why.as_deref().unwrap_or("KVM does not run")
            ))),
        };
    }
}

/// How far a probe came.
#[derive(Debug, Default)]
struct Found {
    pace: Option<u64>,
    ended: bool,
    said: Option<String>,
}

fn probe(machine: &mut Machine, limit: Duration, interrupt: &Interrupt) -> Found {
    let mut found = Found::default();
    let end = Instant::now() + limit;
    let mut booted = false;
    while let Some(left) = end.checked_duration_since(Instant::now()) {
        match machine.reply(left, interrupt) {
            Ok(Reply::Pace { steps_a_ms }) => found.pace = Some(steps_a_ms),
            Ok(Reply::End { ok, .. }) => {
                found.ended = ok;
                break;
            }
            Ok(_) => booted = true,
            Err(Silence::Ended(said)) => {
                found.said = Some(said).filter(|said| !said.is_empty());
                break;
            }
            Err(_) => break,
        }
    }
    if booted && found.said.is_none() {
        found.said = Some("it booted, and then did nothing more".to_owned());
    }
    found
}
