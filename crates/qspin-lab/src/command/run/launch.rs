//! Running the program once: its environment, its signals, its end.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicI32;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, PidfdFlags, WaitId, WaitIdOptions, pidfd_open, waitid};

use crate::command::proc::readable;
use crate::failure::Failure;
use crate::tune::Tune;

use super::futexes::Futexes;
use super::program;
use super::report::{self, Report};
use super::symbols::Maps;
use super::watch::{self, OnDeadlock, Watch};

/// How often the maps of memory of the processes are looked at, while the program runs: so that addresses have
/// names also if it is killed. Soon after the start more often: some programs crash early.
const LOOK: Duration = Duration::from_millis(100);
const FIRST_LOOK: Duration = Duration::from_millis(1);

/// What the library reads in its environment.
const VARIABLES: [&str; 6] = [
    "QSPIN_PRELOAD_LOCK",
    "QSPIN_PRELOAD_RWLOCK",
    "QSPIN_PRELOAD_TUNE",
    "QSPIN_PRELOAD_STATS",
    "QSPIN_PRELOAD_DEADLOCKS",
    "QSPIN_PRELOAD_REPORT",
];

/// What is run, and how.
pub(super) struct Launch<'a> {
    pub(super) program: &'a Path,
    pub(super) name: &'a OsStr,
    pub(super) arguments: &'a [OsString],
    pub(super) library: &'a Path,
    pub(super) lock: &'static str,
    /// Empty: the library's own.
    pub(super) rwlock: &'static str,
    pub(super) tunes: &'a [Tune],
    pub(super) stats: bool,
    pub(super) deadlocks: Option<OnDeadlock>,
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
    pub(super) report: Report,
    pub(super) maps: Maps,
    /// How much its threads waited in the kernel, if that was looked at.
    pub(super) futexes: Futexes,
}

impl Launch<'_> {
    /// The locks that serve, by name.
    pub(super) fn locks(&self) -> String {
        match self.rwlock {
            "" => self.lock.to_owned(),
            rwlock => format!("{} and {rwlock}", self.lock),
        }
    }

    /// With the C library's locks: also where this command itself was started with others.
    pub(super) fn run_bare(&self, output: Output) -> Result<Ended, Failure> {
        let file = report_file()?;
        let mut command = self.command();
        for variable in VARIABLES {
            command.env_remove(variable);
        }
        match self.other_preloads() {
            others if others.is_empty() => command.env_remove("LD_PRELOAD"),
            others => command.env("LD_PRELOAD", others),
        };
        // Nothing to report: a program that loads the library all the same says so.
        command.env("QSPIN_PRELOAD_REPORT", path_of(&file));
        self.run(command, output, &file)
    }

    /// With the library.
    pub(super) fn run_with_library(&self, output: Output) -> Result<Ended, Failure> {
        let file = report_file()?;
        let mut command = self.command();
        let mut preload = self.library.as_os_str().to_owned();
        let others = self.other_preloads();
        if !others.is_empty() {
            preload.push(":");
            preload.push(others);
        }
        let tunes: Vec<String> =
            self.tunes.iter().map(|tune| format!("{}={}", tune.name(), tune.value())).collect();
        let on = |wanted| if wanted { "1" } else { "0" };
        let (stats, deadlocks) = (on(self.stats), on(self.deadlocks.is_some()));
        let values = [self.lock, self.rwlock, &tunes.join(","), stats, deadlocks];
        for (variable, value) in VARIABLES.iter().zip(values) {
            command.env(variable, value);
        }
        command.env("LD_PRELOAD", preload).env("QSPIN_PRELOAD_REPORT", path_of(&file));
        self.run(command, output, &file)
    }

    /// What else is to be preloaded, without libraries like this one.
    fn other_preloads(&self) -> OsString {
        let all = std::env::var_os("LD_PRELOAD").unwrap_or_default();
        let own = self.library.file_name().unwrap_or_default();
        let is_other = |path: &&[u8]| {
            let name = Path::new(OsStr::from_bytes(path)).file_name();
            !path.is_empty() && name.is_none_or(|name| name != own)
        };
        let parts = all.as_bytes().split(|byte| matches!(byte, b':' | b' ')).filter(is_other);
        OsString::from_vec(parts.collect::<Vec<_>>().join(&b':'))
    }

    fn command(&self) -> Command {
        let mut command = Command::new(self.program);
        command.arg0(self.name).args(self.arguments);
        command
    }

    fn run(&self, mut command: Command, output: Output, file: &File) -> Result<Ended, Failure> {
        let mut kept = None;
        if output == Output::Kept {
            let both = tempfile::tempfile().context("cannot make a temporary file")?;
            let clone = || both.try_clone().map(Stdio::from);
            command.stdin(Stdio::null()).stdout(clone()?).stderr(clone()?);
            kept = Some(both);
        }
        let began = Instant::now();
        let held = Held::signals();
        let before = held.0;
        // SAFETY: an async-signal-safe function, on a copy of a set that is valid.
        unsafe {
            command.pre_exec(move || {
                libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, core::ptr::null_mut());
                Ok(())
            });
        }
        let mut child =
            command.spawn().map_err(|why| program::not_executable(self.program, &why))?;
        let forwarding = Forwarding::to(&child);
        drop(held);
        let mut maps = Maps::default();
        let mut futexes = Futexes::default();
        let mut watch = self.deadlocks.map(Watch::new);
        // Short programs are seen, too; a longer one is asked less often, since that takes its CPUs' time.
        let mut pause = FIRST_LOOK;
        let mut next_maps = began + pause;
        // The kernel tells of the end; one before 5.3 is asked again and again.
        let handle = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).ok();
        loop {
            let until_maps =
                self.stats.then(|| next_maps.saturating_duration_since(Instant::now()));
            let until_look = watch.is_some().then_some(watch::LOOK);
            let most = until_maps.into_iter().chain(until_look).min().unwrap_or(Duration::MAX);
            if await_end(&child, handle.as_ref(), most) {
                break;
            }
            if let Some(watch) = &mut watch {
                watch.look(file);
            }
            if self.stats && Instant::now() >= next_maps {
                futexes.look(child.id());
                report::running(file).into_iter().for_each(|process| maps.look_at(process));
                pause = LOOK.min(pause * 2);
                next_maps = Instant::now() + pause;
            }
        }
        let elapsed = began.elapsed();
        // Until the child is waited for its number is no other process's.
        drop(forwarding);
        let status = child.wait()?;
        let mut printed = String::new();
        if let Some(mut both) = kept {
            use std::io::{Seek, SeekFrom};
            let mut bytes = Vec::new();
            both.seek(SeekFrom::Start(0))?;
            both.read_to_end(&mut bytes)?;
            printed = String::from_utf8_lossy(&bytes).into_owned();
        }
        let report = report::read(file)?;
        let code = status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(1);
        Ok(Ended { code: code as u8, elapsed, printed, report, maps, futexes })
    }
}

/// Waits for the end of the child, for `most` at most; whether it has ended. It stays to be waited for.
fn await_end(child: &Child, handle: Option<&OwnedFd>, most: Duration) -> bool {
    let end = Instant::now().checked_add(most);
    if let Some(handle) = handle {
        loop {
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            // A signal interrupts it.
            if readable(handle, left.unwrap_or(Duration::MAX)) {
                return true;
            }
            if left.is_some_and(|left| left.is_zero()) {
                return false;
            }
        }
    }
    let look = if end.is_some() { WaitIdOptions::NOHANG } else { WaitIdOptions::empty() };
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | look;
    loop {
        let ended = matches!(waitid(WaitId::Pid(Pid::from_child(child)), options), Ok(Some(_)));
        if ended || end.is_some_and(|end| Instant::now() >= end) {
            return ended;
        }
        if end.is_some() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// By which the program finds the file: it does not inherit it.
fn path_of(file: &File) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd())
}

/// A file in memory for what the library says.
fn report_file() -> Result<File, Failure> {
    const WHY: &str = "cannot make a file in memory";
    let file = File::from(memfd_create("qspin-locks", MemfdFlags::CLOEXEC).context(WHY)?);
    file.set_len(report::LENGTH).with_context(|| format!("{WHY} as long as is needed"))?;
    Ok(file)
}

/// The child that signals go to.
static CHILD: AtomicI32 = AtomicI32::new(0);

extern "C" fn forward(signal: libc::c_int, about: *mut libc::siginfo_t, _: *mut libc::c_void) {
    let child = CHILD.load(Relaxed);
    // SAFETY: the kernel's answer about this signal, whose sender stands where every sender of one does.
    let (code, sender) = unsafe { ((*about).si_code, (*about).si_pid()) };
    // What the kernel sends, for a key of the terminal, it sends to the program, too; and what the program sends
    // to its whole group must not come back to it, again and again.
    if code == libc::SI_KERNEL || sender == child {
        return;
    }
    // SAFETY: async-signal-safe; the child is there until `Forwarding` is dropped.
    unsafe { libc::kill(child, signal) };
}

/// What goes to the program.
const FORWARDED: [libc::c_int; 7] = [
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGWINCH,
];

/// While it lives, signals wait: until there is a child that they can go to. The child is not to inherit that.
struct Held(libc::sigset_t);

impl Held {
    fn signals() -> Self {
        // SAFETY: sets that are valid, and initialised before they are used.
        unsafe {
            let (mut held, mut before) = (core::mem::zeroed(), core::mem::zeroed());
            libc::sigemptyset(&raw mut held);
            for signal in FORWARDED {
                libc::sigaddset(&raw mut held, signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const held, &raw mut before);
            Self(before)
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: the set was written by the call above.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, core::ptr::null_mut());
        }
    }
}

/// While it lives, a signal that is sent to this command goes to the program instead, whose end is then this one's.
struct Forwarding(Vec<(libc::c_int, libc::sigaction)>);

impl Forwarding {
    fn to(child: &Child) -> Self {
        CHILD.store(child.id() as i32, Relaxed);
        let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = forward;
        // SAFETY: zeros are valid in both structs; the handler is async-signal-safe.
        let before = FORWARDED.map(|signal| unsafe {
            let mut action: libc::sigaction = core::mem::zeroed();
            let mut before: libc::sigaction = core::mem::zeroed();
            action.sa_sigaction = handler as *const () as libc::sighandler_t;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
            libc::sigaction(signal, &raw const action, &raw mut before);
            // What is ignored here, the program ignores, too: it has inherited that.
            if before.sa_sigaction == libc::SIG_IGN {
                libc::sigaction(signal, &raw const before, core::ptr::null_mut());
            }
            (signal, before)
        });
        Self(before.into())
    }
}

impl Drop for Forwarding {
    fn drop(&mut self) {
        for (signal, before) in &self.0 {
            // SAFETY: what was in force before.
            unsafe { libc::sigaction(*signal, before, core::ptr::null_mut()) };
        }
    }
}
