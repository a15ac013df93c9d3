//! The virtual CPUs of another monitor, which are threads of its process: each can be stopped by itself, by
//! `ptrace`, and none of the others notices.
//!
//! Signals stop whole processes, and cgroups freeze them; a thread that is traced stops alone. It is traced
//! only as long as it is stopped, so the monitor runs untouched otherwise, and all of it goes on by itself
//! should this process die.
//!
//! # Invariants
//! * **TRACED-1** A thread is let go on by the thread that has stopped it, as `ptrace` demands: a value of
//!   this type stays on one thread once it is used.

use std::fs;
use std::io;
use std::ptr::null_mut;

use crate::warden::CpuControl;

/// The threads, by the number that their monitor gives the CPU.
#[derive(Debug, Clone)]
pub struct Traced {
    threads: Vec<libc::pid_t>,
}

/// QEMU calls its threads so where it is asked to name them: `CPU 3/TCG`. Ours are called `vCPU 3`.
fn number(name: &str) -> Option<usize> {
    let name = name.strip_prefix('v').unwrap_or(name);
    name.strip_prefix("CPU ")?.split('/').next()?.trim().parse().ok()
}

/// The threads of the `count` virtual CPUs of process `process`, in their order.
///
/// # Errors
///
/// When they cannot be found.
pub fn threads(process: u32, count: usize) -> io::Result<Vec<libc::pid_t>> {
    let mut threads = vec![0; count];
    for thread in fs::read_dir(format!("/proc/{process}/task"))? {
        let thread = thread?;
        // A thread that has ended meanwhile is none of them.
        let name = fs::read_to_string(thread.path().join("comm")).unwrap_or_default();
        let id = thread.file_name().to_str().and_then(|name| name.parse().ok());
        if let (Some(number), Some(id)) = (number(name.trim()), id)
            && let Some(place) = threads.get_mut(number)
        {
            *place = id;
        }
    }
    if threads.contains(&0) {
        return Err(io::Error::other("the threads of its CPUs have no names"));
    }
    Ok(threads)
}

impl Traced {
    /// The virtual CPUs of process `process`, `count` of them.
    ///
    /// # Errors
    ///
    /// When they cannot be found.
    pub fn find(process: u32, count: usize) -> io::Result<Self> {
        let threads = threads(process, count)?;
        Ok(Self { threads })
    }

    /// Stops the first CPU for a moment: is that allowed here?
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn try_out(&mut self) -> io::Result<()> {
        let first = self.threads.first().copied().unwrap_or(0);
        let stopped = stop(first);
        if stopped.is_ok() {
            detach(first, 0);
        }
        stopped
    }
}

impl CpuControl for Traced {
    fn stop(&mut self, apic_id: u32) -> bool {
        self.threads.get(apic_id as usize).is_some_and(|thread| stop(*thread).is_ok())
    }

    fn go_on(&mut self, apic_id: u32) {
        if let Some(thread) = self.threads.get(apic_id as usize) {
            detach(*thread, 0);
        }
    }
}

fn request(what: libc::c_uint, thread: libc::pid_t, data: usize) -> io::Result<()> {
    // SAFETY: of the requests used here none reads or writes memory of this process.
    let done = unsafe { libc::ptrace(what, thread, null_mut::<u8>(), data) };
    if done == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Stops a thread; returns when it stands.
fn stop(thread: libc::pid_t) -> io::Result<()> {
    request(libc::PTRACE_SEIZE, thread, 0)?;
    if let Err(why) = request(libc::PTRACE_INTERRUPT, thread, 0) {
        detach(thread, 0);
        return Err(why);
    }
    loop {
        let mut status = 0;
        // SAFETY: writes the status.
        let found = unsafe { libc::waitpid(thread, &raw mut status, libc::__WALL) };
        if found == -1 {
            let why = io::Error::last_os_error();
            if why.kind() == io::ErrorKind::Interrupted {
                continue;
            }
            return Err(why);
        }
        if !libc::WIFSTOPPED(status) {
            return Err(io::Error::other("the thread has ended"));
        }
        if status >> 16 == libc::PTRACE_EVENT_STOP {
            return Ok(());
        }
        // A signal came first: it is delivered, and the stop comes after it.
        request(libc::PTRACE_CONT, thread, libc::WSTOPSIG(status) as usize)?;
    }
}

/// Lets a stopped thread go on. One that has ended needs nothing.
fn detach(thread: libc::pid_t, signal: usize) {
    let _ = request(libc::PTRACE_DETACH, thread, signal);
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};
    use std::thread::sleep;
    use std::time::Duration;

    use super::*;

    #[test]
    fn names_of_threads_tell_their_numbers() {
        assert_eq!(number("CPU 0/TCG"), Some(0));
        assert_eq!(number("CPU 17/KVM"), Some(17));
        for other in ["qemu-system-x86", "CPU", "CPU x/TCG", "worker", ""] {
            assert_eq!(number(other), None, "{other}");
        }
    }

    struct Sleeper(Child);

    impl Drop for Sleeper {
        fn drop(&mut self) {
            // It may have ended already.
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// How the process is, in a letter: `t` stands for traced and stopped.
    fn state(process: u32) -> char {
        let text = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
        text[text.rfind(')').unwrap() + 2..].chars().next().unwrap()
    }

    #[test]
    fn a_thread_stops_goes_on_and_stops_again() {
        let sleeper = Sleeper(Command::new("sleep").arg("60").spawn().unwrap());
        let id = sleeper.0.id();
        let mut traced = Traced { threads: vec![id as libc::pid_t] };
        if let Err(why) = traced.try_out() {
            println!("skipped: stopping threads ({why})");
            return;
        }
        for _ in 0..3 {
            assert!(traced.stop(0));
            assert_eq!(state(id), 't');
            traced.go_on(0);
            let goes_on = || {
                sleep(Duration::from_millis(1));
                state(id) != 't'
            };
            assert!((0..2000).any(|_| goes_on()));
        }
        assert!(!traced.stop(1), "there is no such CPU");
        assert!(Traced::find(id, 1).is_err(), "its thread has another name");
    }

    #[test]
    fn one_that_has_ended_cannot_be_stopped() {
        let mut sleeper = Sleeper(Command::new("true").spawn().unwrap());
        sleeper.0.wait().unwrap();
        assert!(!Traced { threads: vec![sleeper.0.id() as libc::pid_t] }.stop(0));
        assert!(Traced::find(sleeper.0.id(), 1).is_err());
    }
}
