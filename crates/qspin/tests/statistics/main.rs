//! Counters that other processes read: exact whichever thread counts, separate after a fork, gone with their
//! process.
//!
//! Children are made by `fork`, so each begins with groups that have not counted yet. The tests run
//! in parallel, so each has a group of its own.

// The portable platform shows its counters to no other process.
#![cfg(not(feature = "portable"))]

mod apart;
mod exact;

use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::fd::{FromRawFd, RawFd};
use std::os::unix::fs::FileExt;

use qspin::events::{Event, Group, Pages};

/// A file of counters, read as `docs/notes/statistics.md` describes it.
pub(crate) struct Published {
    pub(crate) descriptor: RawFd,
    pub(crate) file: File,
    header: Vec<Vec<String>>,
}

impl Published {
    /// The files of the group that are of that process. It may have others open: a child of a
    /// test inherits what the test looks at.
    pub(crate) fn all(process: u32, group: &str) -> Vec<Self> {
        let mut all = Self::open_in(process, group);
        all.retain(|file| file.line("pid") == [u64::from(process)]);
        all
    }

    /// The files of the group that are open in that process.
    pub(crate) fn open_in(process: u32, group: &str) -> Vec<Self> {
        let mut found = Vec::new();
        for entry in fs::read_dir(format!("/proc/{process}/fd")).unwrap() {
            let path = entry.unwrap().path();
            let Ok(link) = fs::read_link(&path) else { continue };
            if link.to_str() == Some(&format!("/memfd:qspin-stat:{group} (deleted)")) {
                let descriptor = path.file_name().unwrap().to_str().unwrap().parse().unwrap();
                let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
                found.push(Self { descriptor, header: Self::header(&file), file });
            }
        }
        found
    }

    pub(crate) fn only(process: u32, group: &str) -> Self {
        let mut all = Self::all(process, group);
        assert_eq!(all.len(), 1, "files of {group}");
        all.remove(0)
    }

    fn header(file: &File) -> Vec<Vec<String>> {
        let mut page = [0; 4096];
        file.read_exact_at(&mut page, 0).unwrap();
        let text = String::from_utf8(page.to_vec()).unwrap();
        let text = text.trim_end_matches('\0').to_owned();
        assert!(text.starts_with("qspin-stat 1\n") && text.ends_with("\nend\n"), "{text}");
        text.lines().map(|line| line.split(' ').map(str::to_owned).collect()).collect()
    }

    pub(crate) fn line(&self, key: &str) -> Vec<u64> {
        let line = self.header.iter().find(|line| line[0] == key).unwrap();
        line[1..].iter().map(|word| word.parse().unwrap()).collect()
    }

    pub(crate) fn count(&self, event: Event) -> u64 {
        let events: Vec<_> = self.header.iter().filter(|line| line[0] == "event").collect();
        let index = events.iter().position(|line| line[1] == event.name()).unwrap() as u64;
        assert_eq!(events[index as usize].get(2).map(String::as_str), event.alias());
        let ([offset, stride, records], [mark]) = (
            self.line("records")[..].try_into().unwrap(),
            self.line("mark")[..].try_into().unwrap(),
        );
        let mut bytes = vec![0; (stride * records) as usize];
        self.file.read_exact_at(&mut bytes, offset).unwrap();
        let word = |record: u64| {
            let at = (record * stride + 8 * index) as usize;
            u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap())
        };
        (0..records).filter(|record| *record != mark).map(word).sum::<u64>() - word(mark)
    }
}

/// A child that does `work` and then lives until it is killed or its parent has ended.
pub(crate) struct Child {
    process: libc::pid_t,
}

impl Child {
    /// Begins the child, and waits until its work is done. `work` says whether all was right.
    pub(crate) fn after(work: impl FnOnce() -> bool) -> Self {
        let mut pipe = [0; 2];
        // SAFETY: room for two.
        assert_eq!(unsafe { libc::pipe2(pipe.as_mut_ptr(), libc::O_CLOEXEC) }, 0);
        // SAFETY: the C library lets the child of a program with threads allocate; it runs no
        // destructors of the parent.
        let process = unsafe { libc::fork() };
        assert!(process >= 0);
        if process == 0 {
            let good =
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or(false);
            // SAFETY: calls that are allowed in the child of a program with threads.
            unsafe {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                libc::write(pipe[1], (&raw const good).cast(), 1);
                loop {
                    libc::pause();
                }
            }
        }
        let child = Self { process };
        // SAFETY: both were just opened.
        let (mut read, write) = unsafe { (File::from_raw_fd(pipe[0]), File::from_raw_fd(pipe[1])) };
        drop(write);
        let mut good = [0];
        // A child that dies writes nothing.
        assert!(read.read_exact(&mut good).is_ok(), "the child has died");
        assert_eq!(good, [1], "the child found something wrong");
        child
    }

    pub(crate) fn id(&self) -> u32 {
        self.process as u32
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // SAFETY: a child that has not been waited for.
        unsafe {
            libc::kill(self.process, libc::SIGKILL);
            libc::waitpid(self.process, std::ptr::null_mut(), 0);
        }
    }
}

pub(crate) fn this() -> u32 {
    std::process::id()
}

/// Groups that have not counted yet, all of one name, which ends with a zero.
pub(crate) fn new_groups(name: &'static str, number: usize) -> &'static [Group] {
    let group = |_| Group::new(name, Box::leak(Box::new(Pages::untouched())));
    Vec::leak((0..number).map(group).collect())
}

/// Runs the test `name` once more, in a process where no other test does; whether this is that one.
///
/// A child that makes threads must not be forked while another test makes one: it would inherit
/// locks of the standard library that are opened no more.
pub(crate) fn is_alone(name: &str) -> bool {
    const ALONE: &str = "QSPIN_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let mut again = std::process::Command::new(std::env::current_exe().unwrap());
    let done = again.args([name, "--exact", "--test-threads=1"]).env(ALONE, "1").output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
    false
}
