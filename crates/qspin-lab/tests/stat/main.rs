//! `qspin stat` on processes that count, on those that do not, and on files that lie.
//!
//! The test process itself is the one that is looked at, or a child of it.

#[path = "../executable/mod.rs"]
mod executable;
mod refused;
mod shown;
mod tuned;

use std::fs::File;
use std::io::Read;
use std::os::fd::FromRawFd;
use std::process::{Child, Command, Output, Stdio};
use std::thread;

use qspin::events::{CounterGroup, Event};
use serde_json::Value;

pub(crate) fn qspin() -> Command {
    Command::new(env!("CARGO_BIN_EXE_qspin"))
}

pub(crate) fn stat(arguments: &[&str]) -> Output {
    qspin().arg("stat").args(arguments).output().unwrap()
}

pub(crate) fn this() -> String {
    std::process::id().to_string()
}

/// Lets other processes see the group of this process. One that first counts while another thread forks is seen
/// from its next count on; and other tests here fork.
pub(crate) fn publish<G: CounterGroup>() {
    let file = format!("/memfd:qspin-stat:{} ", G::group().name());
    let is_it = |entry: std::io::Result<std::fs::DirEntry>| {
        let link = entry.and_then(|entry| std::fs::read_link(entry.path()));
        link.is_ok_and(|link| link.to_string_lossy().starts_with(&file))
    };
    while !std::fs::read_dir("/proc/self/fd").unwrap().any(is_it) {
        G::group().add(Event::HashCount, 0);
    }
}

/// The line that `qspin stat` complains with.
pub(crate) fn complaint(output: &Output) -> String {
    let stderr = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.starts_with("qspin: "), "{stderr}");
    stderr
}

#[track_caller]
pub(crate) fn assert_said(output: &Output, parts: &[&str]) {
    let said = complaint(output);
    for part in parts {
        assert!(said.contains(part), "`{part}` is missing in: {said}");
    }
}

pub(crate) fn lines(output: &Output) -> Vec<Value> {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub(crate) fn group<'a>(line: &'a Value, name: &str) -> &'a Value {
    let groups = line["groups"].as_array().unwrap();
    groups.iter().find(|group| group["group"] == name).unwrap_or(&Value::Null)
}

/// A program that does nothing for as long as the test lives, and no longer.
pub(crate) struct Idle(Child);

impl Idle {
    pub(crate) fn cat(command: &mut Command) -> Self {
        let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        // It bears the name of the program that began it for a moment.
        while std::fs::read_to_string(format!("/proc/{}/comm", child.id())).unwrap() != "cat\n" {
            thread::yield_now();
        }
        Self(child)
    }

    pub(crate) fn id(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A child of this process, made by `fork`, that does `work` and then nothing.
pub(crate) struct Forked(pub(crate) libc::pid_t);

impl Forked {
    /// `raw` forks behind the C library's back.
    pub(crate) fn after(raw: bool, work: impl FnOnce()) -> Self {
        let mut pipe = [0; 2];
        // SAFETY: room for two.
        assert_eq!(unsafe { libc::pipe2(pipe.as_mut_ptr(), libc::O_CLOEXEC) }, 0);
        // SAFETY: the child only counts and waits.
        let child =
            unsafe { if raw { libc::syscall(libc::SYS_fork) as i32 } else { libc::fork() } };
        assert!(child >= 0);
        if child == 0 {
            work();
            // SAFETY: calls that are allowed in the child of a program with threads.
            unsafe {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                libc::write(pipe[1], c"!".as_ptr().cast(), 1);
                loop {
                    libc::pause();
                }
            }
        }
        // SAFETY: both were just opened.
        let (mut read, write) = unsafe { (File::from_raw_fd(pipe[0]), File::from_raw_fd(pipe[1])) };
        drop(write);
        read.read_exact(&mut [0]).expect("the child lives");
        Self(child)
    }

    pub(crate) fn id(&self) -> String {
        self.0.to_string()
    }

    pub(crate) fn kill(&self) {
        // SAFETY: a child that no other thread waits for.
        unsafe { libc::kill(self.0, libc::SIGKILL) };
    }
}

impl Drop for Forked {
    fn drop(&mut self) {
        self.kill();
        // SAFETY: as above.
        unsafe { libc::waitpid(self.0, std::ptr::null_mut(), 0) };
    }
}
