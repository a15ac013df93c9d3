//! Spinning processes beside the threads: the other programs of an overcommitted machine.
//!
//! They are copies of this program with the hidden subcommand `hog`. They stand still until a
//! measurement needs them, and die with this process, however it ends.

use std::io;
use std::os::unix::process::{CommandExt, parent_id};
use std::process::{Child, Command, Stdio};

/// The hogs of a run.
#[derive(Debug, Default)]
pub struct Hogs {
    children: Vec<Child>,
    running: usize,
}

impl Hogs {
    /// Starts `count` hogs, which stand still. The calling thread must outlive them.
    /// Fails when the machine starts fewer.
    pub fn start(count: usize) -> io::Result<Self> {
        let mut hogs = Self::default();
        if count == 0 {
            return Ok(hogs);
        }
        let program = std::env::current_exe()?;
        let parent = std::process::id();
        for _ in 0..count {
            let mut command = Command::new(&program);
            command
                .args(["hog", "--parent", &parent.to_string()])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            // SAFETY: between fork and exec it makes two system calls and allocates nothing.
            unsafe { command.pre_exec(move || die_with(parent)) };
            let child = command.spawn().map_err(|why| {
                let made = hogs.children.len();
                io::Error::other(format!("started {made} of {count} hogs: {why}"))
            })?;
            signal(&child, libc::SIGSTOP);
            hogs.children.push(child);
        }
        Ok(hogs)
    }

    /// Lets the first `count` spin and the others stand still.
    pub fn run(&mut self, count: usize) {
        let count = count.min(self.children.len());
        for child in &self.children[self.running.min(count)..count] {
            signal(child, libc::SIGCONT);
        }
        for child in &self.children[count..self.running.max(count)] {
            signal(child, libc::SIGSTOP);
        }
        self.running = count;
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        for child in &mut self.children {
            // One that is gone already is as good as killed.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn signal(child: &Child, signal: libc::c_int) {
    // SAFETY: the child is ours and not yet waited for, so its number names no other process.
    unsafe { libc::kill(child.id() as libc::pid_t, signal) };
}

/// Ties the calling process to its parent. Done before the hog's own code runs: a hog is stopped
/// as soon as it exists, perhaps before it could do so itself.
fn die_with(parent: u32) -> io::Result<()> {
    // SAFETY: asks for a signal to this process, nothing else.
    if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // A parent that died before the call above sends no signal.
    if parent_id() == parent { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::ESRCH)) }
}

/// What a hog does: spins until its parent dies.
pub fn spin_beside(parent: u32) {
    // Started by hand, it has no parent that ends it and must look for itself.
    while parent_id() == parent {
        for _ in 0..100_000_000_u32 {
            std::hint::black_box(());
        }
    }
}
