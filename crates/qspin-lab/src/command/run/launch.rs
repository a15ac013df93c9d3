//! Running the program once: its environment, its signals, its end.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicI32;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::failure::Failure;
use crate::tune::Tune;

use super::report::{self, Process};
use super::symbols::Maps;

/// How often the program's map of memory is looked at, while it runs: so that addresses have names also if it
/// is killed.
const LOOK: Duration = Duration::from_millis(100);

/// What is run, and how.
pub(super) struct Launch<'a> {
    pub(super) program: &'a Path,
    pub(super) name: &'a OsStr,
    pub(super) arguments: &'a [OsString],
    pub(super) library: &'a Path,
    pub(super) lock: &'static str,
    pub(super) tunes: &'a [Tune],
    pub(super) stats: bool,
}

/// What becomes of what the program prints.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Output {
    Shown,
    Kept,
}

/// How a run ended.
pub(super) struct Ended {
    /// As a shell says it.
    pub(super) code: u8,
    pub(super) elapsed: Duration,
    /// What the program printed, if it was kept.
    pub(super) printed: String,
    /// What the library said, of each process that loaded it.
    pub(super) report: Vec<Process>,
    pub(super) maps: Maps,
}

impl Launch<'_> {
    /// With the C library's locks.
    pub(super) fn run_bare(&self, output: Output) -> Result<Ended, Failure> {
        self.run(self.command(), output, None)
    }

    /// With the library.
    pub(super) fn run_with_library(&self, output: Output) -> Result<Ended, Failure> {
        let file = report_file()?;
        let mut command = self.command();
        let mut preload = self.library.as_os_str().to_owned();
        if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
            preload.push(":");
            preload.push(others);
        }
        let tunes: Vec<String> =
            self.tunes.iter().map(|tune| format!("{}={}", tune.name(), tune.value())).collect();
        command
            .env("LD_PRELOAD", preload)
            .env("QSPIN_PRELOAD_LOCK", self.lock)
            .env("QSPIN_PRELOAD_TUNE", tunes.join(","))
            .env("QSPIN_PRELOAD_STATS", if self.stats { "1" } else { "0" })
            .env(
                "QSPIN_PRELOAD_REPORT",
                format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()),
            );
        self.run(command, output, Some(&file))
    }

    fn command(&self) -> Command {
        let mut command = Command::new(self.program);
        command.arg0(self.name).args(self.arguments);
        command
    }

    fn run(
        &self,
        mut command: Command,
        output: Output,
        file: Option<&File>,
    ) -> Result<Ended, Failure> {
        let mut kept = None;
        if output == Output::Kept {
            let both = tempfile::tempfile().context("cannot make a temporary file")?;
            let clone = || both.try_clone().map(Stdio::from);
            command.stdin(Stdio::null()).stdout(clone()?).stderr(clone()?);
            kept = Some(both);
        }
        let began = Instant::now();
        let mut child = command.spawn().map_err(|why| {
            Failure::usage(format!("cannot run `{}`: {why}", self.program.display()))
        })?;
        let forwarding = Forwarding::to(&child);
        let mut maps = Maps::default();
        let status = if self.stats {
            loop {
                maps.look_at(child.id());
                if let Some(status) = child.try_wait()? {
                    break status;
                }
                await_end(&child, LOOK);
            }
        } else {
            child.wait()?
        };
        let elapsed = began.elapsed();
        drop(forwarding);
        let mut printed = String::new();
        if let Some(mut both) = kept {
            use std::io::{Seek, SeekFrom};
            let mut bytes = Vec::new();
            both.seek(SeekFrom::Start(0))?;
            both.read_to_end(&mut bytes)?;
            printed = String::from_utf8_lossy(&bytes).into_owned();
        }
        let report = match file {
            Some(file) => report::read(file)?,
            None => Vec::new(),
        };
        let code = status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(1);
        Ok(Ended { code: code as u8, elapsed, printed, report, maps })
    }
}

/// Waits for the end of the child, for `most` at most. It stays to be waited for.
fn await_end(child: &Child, most: Duration) {
    let end = Instant::now() + most;
    loop {
        // SAFETY: an all-zero answer is valid, and the place is.
        let ended = unsafe {
            let mut about: libc::siginfo_t = core::mem::zeroed();
            let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
            libc::waitid(libc::P_PID, child.id(), &raw mut about, flags) == 0 && about.si_pid() != 0
        };
        if ended || Instant::now() >= end {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A file in memory for what the library says.
fn report_file() -> Result<File, Failure> {
    // SAFETY: a name that ends with a zero.
    let descriptor = unsafe { libc::memfd_create(c"qspin-locks".as_ptr(), libc::MFD_CLOEXEC) };
    if descriptor < 0 {
        let why = std::io::Error::last_os_error();
        return Err(anyhow::Error::from(why).context("cannot make a file in memory").into());
    }
    // SAFETY: a new file descriptor, which is nobody else's.
    let file = unsafe { File::from_raw_fd(descriptor) };
    file.set_len(report::LENGTH).context("cannot make a file in memory as long as is needed")?;
    Ok(file)
}

/// The child that signals go to.
static CHILD: AtomicI32 = AtomicI32::new(0);

extern "C" fn forward(signal: libc::c_int) {
    // SAFETY: async-signal-safe; the child is there until `Forwarding` is dropped.
    unsafe { libc::kill(CHILD.load(Relaxed), signal) };
}

/// While it lives, what is to end this command ends the program instead, whose exit code is then this one's. What
/// a terminal sends to both is left to the program.
struct Forwarding(Vec<(libc::c_int, libc::sighandler_t)>);

impl Forwarding {
    fn to(child: &Child) -> Self {
        CHILD.store(child.id() as i32, Relaxed);
        let forward = forward as *const () as libc::sighandler_t;
        let ways = [
            (libc::SIGTERM, forward),
            (libc::SIGHUP, forward),
            (libc::SIGINT, libc::SIG_IGN),
            (libc::SIGQUIT, libc::SIG_IGN),
        ];
        // SAFETY: handlers that are async-signal-safe.
        Self(ways.map(|(signal, way)| (signal, unsafe { libc::signal(signal, way) })).into())
    }
}

impl Drop for Forwarding {
    fn drop(&mut self) {
        for (signal, before) in &self.0 {
            // SAFETY: what was in force before.
            unsafe { libc::signal(*signal, *before) };
        }
    }
}

/// The text of a file below `/proc`, if it is there.
pub(super) fn proc_file(process: u32, name: &str) -> Option<String> {
    fs::read_to_string(format!("/proc/{process}/{name}")).ok()
}
