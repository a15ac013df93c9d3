//! The process that is looked at: whether it is there, whose it is, and when it ends.

use std::fmt;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, geteuid, pidfd_open, test_kill_process};

use crate::bench::interrupt::Interrupt;
use crate::command::proc;
use crate::failure::Failure;

/// How long a wait for the end of a process may keep an interrupt waiting.
const SLICE: Duration = Duration::from_millis(50);

/// A process that was there when it was opened.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) pid: u32,
    /// The name of its program.
    pub(super) name: String,
    /// Its number as it sees itself: another one in a container.
    pub(super) own_pid: u32,
    user: u32,
    /// Told by the kernel when this very process ends, whichever process gets its number then.
    handle: Option<OwnedFd>,
}

/// As messages name it: `process 123 (name)`.
impl fmt::Display for Process {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "process {} ({})", self.pid, self.name)
    }
}

impl Process {
    /// The process with the number `pid`.
    ///
    /// # Errors
    ///
    /// There is none, it has ended, or the number is a thread's.
    pub(super) fn open(pid: u32) -> Result<Self, Failure> {
        let handle = number(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let status = proc::text(pid, "status").ok_or_else(|| Failure::usage(absent(pid)))?;
        let field = |name: &str| proc::field(&status, name).unwrap_or_default();
        let name: String = field("Name").chars().filter(|c| !c.is_control()).collect();
        if field("State").starts_with(['Z', 'X']) {
            return Err(Failure::usage(format!(
                "process {pid} ({name}) has ended, though its parent has not noticed yet"
            )));
        }
        match field("Tgid").parse::<u32>().ok() {
            Some(leader) if leader != pid => {
                return Err(Failure::usage(format!(
                    "{pid} is a thread of process {leader} ({name}): give {leader}"
                )));
            }
            _ => {}
        }
        // The real, the effective, … : files belong to the effective one.
        let user = field("Uid").split_whitespace().nth(1).and_then(|user| user.parse().ok());
        let own_pid = proc::own_number(&status).unwrap_or(pid);
        Ok(Self { pid, name, own_pid, user: user.unwrap_or(0), handle })
    }

    /// Why its open files are not shown.
    pub(super) fn refusal(&self, why: &io::Error) -> Failure {
        if why.kind() != io::ErrorKind::PermissionDenied || self.has_ended() {
            return Failure::usage(absent(self.pid));
        }
        if self.own_pid != self.pid {
            return Failure::usage(format!(
                "{self} runs in a container, which hides its open files: run as root, or there, where it is process {}",
                self.own_pid
            ));
        }
        if self.user == geteuid().as_raw() {
            return Failure::usage(format!(
                "{self} hides its open files (it has changed its user, or forbids others to trace \
                 it): run as root"
            ));
        }
        Failure::usage(format!("{self} belongs to user {}: run as that user or root", self.owner()))
    }

    /// The user that it belongs to, by name where that is known.
    pub(super) fn owner(&self) -> String {
        let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let name = users.lines().find_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?;
            (fields.nth(1)?.parse() == Ok(self.user)).then(|| name.to_owned())
        });
        name.unwrap_or_else(|| self.user.to_string())
    }

    /// Waits for `time`, until the process ends or the user interrupts; says whether it has ended.
    pub(super) fn wait(&self, time: Duration, interrupt: &Interrupt) -> bool {
        let end = Instant::now() + time;
        loop {
            let left = end.saturating_duration_since(Instant::now()).min(SLICE);
            let ended = self.ends_within(left);
            if ended || interrupt.is_raised() || Instant::now() >= end {
                return ended;
            }
        }
    }

    /// Whether it has ended; it may have left its number to another one.
    pub(super) fn has_ended(&self) -> bool {
        self.ends_within(Duration::ZERO)
    }

    fn ends_within(&self, time: Duration) -> bool {
        match &self.handle {
            Some(handle) => proc::readable(handle, time),
            None => {
                // A kernel before 5.3, which cannot tell of the end.
                std::thread::sleep(time);
                !fs::exists(format!("/proc/{}", self.pid)).unwrap_or(true)
            }
        }
    }
}

fn number(pid: u32) -> Option<Pid> {
    Pid::from_raw(pid as i32)
}

/// What to say of a number that is no process's, or none that is shown.
fn absent(pid: u32) -> String {
    if number(pid).map(test_kill_process) == Some(Err(Errno::PERM)) {
        return format!("process {pid} belongs to another user: run as that user or root");
    }
    format!(
        "no process {pid}: it has ended, or never was, or has another number here than in its container (`pidof NAME` \
         says it)"
    )
}
