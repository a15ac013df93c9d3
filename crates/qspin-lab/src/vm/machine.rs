//! A virtual machine: a process of QEMU with the guest in it, and the lines that come out.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use qspin_guest::IMAGE;
use qspin_guest::options::EXIT_PORT;
use tempfile::TempDir;

use super::accelerator::Accelerator;
use super::reply::{self, Reply};
use crate::bench::interrupt::Interrupt;
use crate::failure::Failure;

/// The program, where no other was named.
pub const QEMU: &str = "qemu-system-x86_64";

/// What is said where there is none.
const GET_IT: &str =
    "install it (Debian and Ubuntu: apt-get install qemu-system-x86), or name it with --qemu";

/// Megabytes that the guest has; it needs 8.
const MEMORY: u32 = 64;

/// The first bytes of every ELF file.
const ELF: &[u8] = b"\x7fELF";
/// A name that only our guest has, in what it tells of itself.
const OURS: &[u8] = b"first_lock_us";

/// Where machines come from.
#[derive(Debug)]
pub struct Maker {
    qemu: PathBuf,
    board: String,
    /// Holds the image and the monitors, and vanishes with this.
    directory: TempDir,
}

impl Maker {
    /// Looks for the emulator, and lays out the guest.
    ///
    /// # Errors
    ///
    /// Wrong input: there is no such emulator, or the image is none of ours.
    pub fn new(qemu: Option<&Path>, board: &str, image: Option<&Path>) -> Result<Self, Failure> {
        let qemu = find(qemu.unwrap_or(Path::new(QEMU)))?;
        let bytes = match image {
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
        fs::write(directory.path().join("guest"), bytes).context("the guest cannot be laid out")?;
        Ok(Self { qemu, board: board.to_owned(), directory })
    }

    /// Starts a machine, whose guest is told `line`.
    ///
    /// # Errors
    ///
    /// When the process cannot be started.
    pub fn start(
        &self,
        vcpus: u32,
        accelerator: Accelerator,
        line: &str,
    ) -> anyhow::Result<Machine> {
        let at = |name: &str| self.directory.path().join(name);
        let monitor = at("monitor");
        // Of the last machine.
        let _ = fs::remove_file(&monitor);
        let mut listening = OsString::from("unix:");
        listening.push(&monitor);
        listening.push(",server=on,wait=off");
        let mut command = Command::new(&self.qemu);
        command
            .args(["-machine", &self.board, "-accel", accelerator.argument()])
            .args(["-cpu", accelerator.cpu(), "-smp", &vcpus.to_string()])
            .args(["-m", &MEMORY.to_string(), "-display", "none", "-nodefaults"])
            .args(["-no-user-config", "-no-reboot", "-serial", "stdio"])
            .args(["-device", &format!("isa-debug-exit,iobase={EXIT_PORT:#x},iosize=4")])
            .arg("-monitor")
            .arg(listening)
            .arg("-kernel")
            .arg(at("guest"))
            .args(["-append", &format!("vcpus={vcpus} {line}")])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C is for us, and we end the machine.
            .process_group(0);
        // SAFETY: between fork and exec nothing is done but one system call, which asks that the
        // machine dies with this process, however that ends.
        unsafe {
            command.pre_exec(|| {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                Ok(())
            });
        }
        let start = Instant::now();
        let mut process =
            command.spawn().with_context(|| format!("cannot start {}", self.qemu.display()))?;
        let (sender, lines) = channel();
        if let Some(out) = process.stdout.take() {
            thread::spawn(move || {
                // A line that is no text is none of the guest's.
                for line in BufReader::new(out).lines().map_while(Result::ok) {
                    if sender.send(line).is_err() {
                        break;
                    }
                }
            });
        }
        let complaints = process.stderr.take().map(|mut err| {
            thread::spawn(move || {
                let mut text = String::new();
                let _ = err.read_to_string(&mut text);
                text
            })
        });
        Ok(Machine { process, lines, complaints, monitor, start })
    }
}

/// The emulator's path.
fn find(qemu: &Path) -> Result<PathBuf, Failure> {
    let is_program = |path: &Path| {
        use std::os::unix::fs::PermissionsExt;
        fs::metadata(path)
            .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    let found = if qemu.components().count() > 1 {
        Some(qemu.to_owned()).filter(|path| is_program(path))
    } else {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).map(|directory| directory.join(qemu)).find(|at| is_program(at))
    };
    found.ok_or_else(|| Failure::usage(format!("there is no {}: {GET_IT}", qemu.display())))
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

/// A machine that runs.
#[derive(Debug)]
pub struct Machine {
    process: Child,
    lines: Receiver<String>,
    complaints: Option<JoinHandle<String>>,
    monitor: PathBuf,
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
    /// Somebody asked to stop.
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

    /// Asks the guest who hangs, by the button of the machine: an NMI.
    pub fn ask(&mut self) {
        // A machine that does not listen is asked no further. It believes the second time only.
        if let Ok(mut monitor) = UnixStream::connect(&self.monitor) {
            for _ in 0..2 {
                let _ = monitor.write_all(b"nmi\n");
                thread::sleep(Duration::from_millis(1500));
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
        // One that has ended already is as good as killed.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let text = self.complaints.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        text.lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .take(2)
            .collect::<Vec<_>>()
            .join("; ")
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
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
