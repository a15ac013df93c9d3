//! A virtual machine: a process of QEMU or threads of our own, with the guest in it, and the lines that come
//! out.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use qspin_guest::IMAGE;
use qspin_vmm::warden::Tally;
use tempfile::TempDir;

use super::accelerator::Accelerator;
use super::emulator::{self, Emulator, Recipe};
use super::preempt::{Guard, Preemption};
use super::reply::{self, Ready, Reply};
use crate::bench::affinity::Placement;
use crate::bench::interrupt::Interrupt;
use crate::failure::Failure;

/// Megabytes that the guest has; it needs 8.
pub const MEMORY: u32 = 64;

/// The first bytes of every ELF file.
const ELF: &[u8] = b"\x7fELF";
/// A name that only our guest has, in what it tells of itself.
const OURS: &[u8] = b"first_lock_us";

/// Where machines come from.
#[derive(Debug)]
pub struct Maker {
    /// None where no emulator is needed.
    qemu: Option<PathBuf>,
    board: String,
    // What starts it without an emulator is for x86-64.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    image: Vec<u8>,
    /// Holds the image and the monitors, and vanishes with this.
    directory: TempDir,
}

impl Maker {
    /// Looks for the emulator, if one is named, and lays out the guest.
    ///
    /// # Errors
    ///
    /// Wrong input: there is no such emulator, or the image is none of ours.
    pub fn new(qemu: Option<&Path>, board: &str, image: Option<&Path>) -> Result<Self, Failure> {
        let qemu = qemu.map(emulator::find).transpose()?;
        let image = match image {
            Some(path) => read_image(path)?,
            None if IMAGE.is_empty() => {
                return Err(Failure::usage(
                    "this qspin has no guest in it, since it was not built for x86_64: \
                     name one with --image",
                ));
            }
            None => IMAGE.to_vec(),
        };
        let directory = tempfile::Builder::new().prefix("qspin-vm-").tempdir();
        let directory = directory.context("no temporary directory can be made")?;
        fs::write(directory.path().join("guest"), &image)
            .context("the guest cannot be laid out")?;
        Ok(Self { qemu, board: board.to_owned(), image, directory })
    }

    /// Starts a machine, whose guest is told `line`. `watched`: its CPUs are to be stopped.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    pub fn start(
        &self,
        vcpus: u32,
        accelerator: Accelerator,
        line: &str,
        watched: bool,
    ) -> anyhow::Result<Machine> {
        let start = Instant::now();
        let line = format!("vcpus={vcpus} {line}");
        let (sender, lines) = channel();
        let runs = match (&self.qemu, accelerator) {
            #[cfg(target_arch = "x86_64")]
            (_, Accelerator::Vmm) => {
                let plan = qspin_vmm::machine::Plan {
                    image: &self.image,
                    line: &line,
                    vcpus,
                    memory: (MEMORY as usize) << 20,
                    offer: qspin_vmm::cpuid::Offer::default(),
                };
                Runs::Own(qspin_vmm::machine::Machine::start(&plan, sender)?)
            }
            (Some(qemu), _) => {
                let directory = self.directory.path();
                let board = &self.board;
                let recipe = Recipe { qemu, board, directory, accelerator, vcpus, line: &line };
                Runs::Emulator(Emulator::start(&recipe, watched, sender)?)
            }
            (None, _) => return Err(anyhow!("there is no emulator to run the guest")),
        };
        Ok(Machine { guard: None, runs, lines, start })
    }
}

fn read_image(path: &Path) -> Result<Vec<u8>, Failure> {
    let bytes = fs::read(path).map_err(|why| {
        Failure::usage(format!(
            "cannot read {}: {why}; name the ELF file of a guest",
            path.display()
        ))
    })?;
    if !bytes.starts_with(ELF) || !bytes.windows(OURS.len()).any(|window| window == OURS) {
        return Err(Failure::usage(format!(
            "{} is not qspin's guest: leave --image out, the guest is in this program",
            path.display()
        )));
    }
    Ok(bytes)
}

/// What runs a guest.
#[derive(Debug)]
pub(super) enum Runs {
    /// A process.
    Emulator(Emulator),
    /// Threads of ours.
    #[cfg(target_arch = "x86_64")]
    Own(qspin_vmm::machine::Machine),
}

/// A machine that runs.
#[derive(Debug)]
pub struct Machine {
    /// The thread that stops its CPUs.
    guard: Option<Guard>,
    runs: Runs,
    lines: Receiver<String>,
    start: Instant,
}

/// How long is waited at once.
const SLICE: Duration = Duration::from_millis(100);

/// Why no reply comes.
#[derive(Debug)]
pub enum Silence {
    /// Nothing was said for as long as was waited.
    Late,
    /// The machine has ended; what it complained of.
    Ended(String),
    /// The user asked to stop.
    Interrupted,
}

impl Machine {
    /// The next reply, within `limit`. Time in which this process was stopped does not count: the
    /// machine was, too.
    ///
    /// # Errors
    ///
    /// Why there is none.
    pub fn reply(&mut self, limit: Duration, interrupt: &Interrupt) -> Result<Reply, Silence> {
        let mut left = limit;
        loop {
            if interrupt.is_raised() {
                return Err(Silence::Interrupted);
            }
            if left.is_zero() {
                return Err(Silence::Late);
            }
            let start = Instant::now();
            let heard = self.lines.recv_timeout(left.min(SLICE));
            left = left.saturating_sub(start.elapsed().min(2 * SLICE));
            match heard {
                Ok(line) => {
                    if let Some(reply) = reply::parse(&line) {
                        return Ok(reply);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(Silence::Ended(self.end())),
            }
        }
    }

    /// Has CPUs stopped as `preemption` says, of a guest that is `ready`.
    ///
    /// # Errors
    ///
    /// Wrong input: that cannot be done here.
    pub fn preempt(&mut self, preemption: &Preemption, ready: &Ready) -> Result<(), Failure> {
        self.guard = Some(Guard::post(preemption, &mut self.runs, ready)?);
        Ok(())
    }

    /// Moves the threads of its CPUs to where `placement` has them.
    ///
    /// # Errors
    ///
    /// They are not to be found.
    pub fn settle(&self, placement: &Placement, vcpus: u32) -> anyhow::Result<()> {
        if placement.is_free() {
            return Ok(());
        }
        let process = match &self.runs {
            Runs::Emulator(emulator) => emulator.id(),
            #[cfg(target_arch = "x86_64")]
            Runs::Own(_) => std::process::id(),
        };
        let threads = qspin_vmm::traced::threads(process, vcpus as usize);
        for (index, thread) in
            threads.context("the guest's CPUs cannot be pinned")?.into_iter().enumerate()
        {
            placement.settle_other(thread, index);
        }
        Ok(())
    }

    /// Ends the machine; how often and how long CPUs were stopped.
    pub fn finish(&mut self) -> Option<Tally> {
        self.end();
        self.guard.take().map(Guard::relieve)
    }

    /// Asks the guest where its CPUs are, by the button of the machine.
    pub fn ask(&mut self) {
        match &self.runs {
            Runs::Emulator(emulator) => emulator.press(),
            #[cfg(target_arch = "x86_64")]
            Runs::Own(machine) => {
                for _ in 0..2 {
                    machine.press();
                    std::thread::sleep(Duration::from_millis(1500));
                }
            }
        }
    }

    /// Time since the start of the process.
    #[must_use]
    pub fn age(&self) -> Duration {
        self.start.elapsed()
    }

    /// Ends the machine; what it complained of, in a line.
    fn end(&mut self) -> String {
        match &mut self.runs {
            Runs::Emulator(emulator) => emulator.end(),
            #[cfg(target_arch = "x86_64")]
            Runs::Own(machine) => machine.end(),
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // Before its guard, which ends when the bell cannot ring any more.
        self.end();
    }
}

/// What went wrong, where the guest has said so itself.
#[must_use]
pub fn trouble(reply: &Reply) -> Option<anyhow::Error> {
    match reply {
        Reply::Hang(hang) => Some(anyhow!("the guest hangs in {}: {}", hang.test, hang.words())),
        Reply::Fault { vector, at } => {
            Some(anyhow!("the guest met fault {vector} at {at:#x}, which should not be"))
        }
        Reply::Panic { file, line } => Some(anyhow!("the guest panicked at {file}:{line}")),
        Reply::Usage { why, what } => Some(anyhow!("the guest refuses {what}: {why}")),
        _ => None,
    }
}
