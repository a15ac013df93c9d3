//! QEMU: where it is, how it is started, and the process that it then is.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::Context;
use qspin_guest::options::{BELL_PORT, EXIT_PORT};
use qspin_vmm::memory::Memory;

use super::accelerator::Accelerator;
use super::machine::MEMORY;
use crate::failure::Failure;

/// The program, where no other was named.
pub const QEMU: &str = "qemu-system-x86_64";

/// What is said where there is none.
const GET_IT: &str =
    "install it (Debian and Ubuntu: apt-get install qemu-system-x86), or name it with --qemu";

/// The emulator's path.
///
/// # Errors
///
/// Wrong input: there is none.
pub fn find(qemu: &Path) -> Result<PathBuf, Failure> {
    which::which(qemu)
        .map_err(|_| Failure::usage(format!("there is no {}: {GET_IT}", qemu.display())))
}

/// What the process of a machine is started with.
#[derive(Debug)]
pub struct Recipe<'a> {
    /// The program.
    pub qemu: &'a Path,
    /// The board.
    pub board: &'a str,
    /// Where the guest and the monitor lie.
    pub directory: &'a Path,
    /// What executes the guest.
    pub accelerator: Accelerator,
    /// Virtual CPUs.
    pub vcpus: u32,
    /// What the guest is told.
    pub line: &'a str,
}

/// A machine that is a process of QEMU.
#[derive(Debug)]
pub struct Emulator {
    process: Child,
    complaints: Option<JoinHandle<String>>,
    monitor: PathBuf,
    /// The guest's memory and its bell, where CPUs are to be stopped.
    shared: Option<(Arc<Memory>, UnixStream)>,
}

impl Emulator {
    /// Starts it; what the guest says goes to `lines`. `watched`: its memory and its bell are shared with
    /// this process, and the threads of its CPUs have names.
    ///
    /// # Errors
    ///
    /// When the process cannot be started.
    pub fn start(
        recipe: &Recipe<'_>,
        watched: bool,
        lines: Sender<String>,
    ) -> anyhow::Result<Self> {
        let at = |name: &str| recipe.directory.join(name);
        let monitor = at("monitor");
        // Of the last machine.
        let _ = fs::remove_file(&monitor);
        let mut listening = OsString::from("unix:");
        listening.push(&monitor);
        listening.push(",server=on,wait=off");
        let mut command = Command::new(recipe.qemu);
        let mut board = recipe.board.to_owned();
        let mut inherited: Vec<RawFd> = Vec::new();
        let mut shared = None;
        // The other end of the bell: the child's, once it is started.
        let mut bell = None;
        if watched {
            let memory = Memory::new((MEMORY as usize) << 20).context("no memory for the guest")?;
            let (ours, its) = UnixStream::pair().context("no bell can be made")?;
            let path = memory.path();
            board += ",memory-backend=ram";
            command
                .arg("-object")
                .arg(format!("memory-backend-file,id=ram,size={MEMORY}M,mem-path={path},share=on"))
                .args(["-chardev", &format!("socket,id=bell,fd={}", its.as_raw_fd())])
                .args(["-device", &format!("isa-debugcon,iobase={BELL_PORT:#x},chardev=bell")]);
            inherited = vec![memory.file().as_raw_fd(), its.as_raw_fd()];
            shared = Some((Arc::new(memory), ours));
            bell = Some(its);
        }
        command
            // So that the threads of its CPUs are found.
            .args(["-name", "qspin,debug-threads=on"])
            .args(["-machine", &board, "-accel", recipe.accelerator.argument()])
            .args(["-cpu", recipe.accelerator.cpu(), "-smp", &recipe.vcpus.to_string()])
            .args(["-m", &MEMORY.to_string(), "-display", "none", "-nodefaults"])
            .args(["-no-user-config", "-no-reboot", "-serial", "stdio"])
            .args(["-device", &format!("isa-debug-exit,iobase={EXIT_PORT:#x},iosize=4")])
            .arg("-monitor")
            .arg(listening)
            .arg("-kernel")
            .arg(at("guest"))
            .args(["-append", recipe.line])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C is for us, and we end the machine.
            .process_group(0);
        // SAFETY: between fork and exec nothing is done but a few system calls, which ask that the
        // machine dies with this process, however that ends, and that it has what it is given.
        unsafe {
            command.pre_exec(move || {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                for file in &inherited {
                    libc::fcntl(*file, libc::F_SETFD, 0);
                }
                Ok(())
            });
        }
        let mut process =
            command.spawn().with_context(|| format!("cannot start {}", recipe.qemu.display()))?;
        drop(bell);
        if let Some(out) = process.stdout.take() {
            thread::spawn(move || {
                // A line that is no text is none of the guest's.
                for line in BufReader::new(out).lines().map_while(Result::ok) {
                    if lines.send(line).is_err() {
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
        Ok(Self { process, complaints, monitor, shared })
    }

    /// Its process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Its memory and its bell, once.
    pub fn take_shared(&mut self) -> Option<(Arc<Memory>, UnixStream)> {
        self.shared.take()
    }

    /// Presses the button of the machine: an NMI, by which the guest looks where its CPUs are. It believes the
    /// second time only.
    pub fn press(&self) {
        // A machine that does not listen is asked no further.
        if let Ok(mut monitor) = UnixStream::connect(&self.monitor) {
            for _ in 0..2 {
                let _ = monitor.write_all(b"nmi\n");
                thread::sleep(Duration::from_millis(1500));
            }
        }
    }

    /// Ends it; what it complained of, in a line.
    pub fn end(&mut self) -> String {
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

impl Drop for Emulator {
    fn drop(&mut self) {
        self.end();
    }
}
