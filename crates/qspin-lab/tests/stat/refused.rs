//! What cannot be shown is refused in one line that says why.

use std::ffi::CStr;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};
use std::thread;

use qspin::events::{CounterGroup, Event, Events};

use crate::{Forked, Idle, assert_said, executable, group, lines, publish, qspin, stat, this};

#[test]
fn what_is_no_process_is_refused() {
    for wrong in ["", "x", "0", "-1", "1.5", "4194305", "99999999999999999999"] {
        assert_said(&qspin().args(["stat", "--", wrong]).output().unwrap(), &["give its number"]);
    }
    assert_said(&stat(&[]), &["PID"]);
    assert_said(&stat(&[&this(), "--interval", "0"]), &["0.001 to 3600"]);
    assert_said(&stat(&[&this(), "--interval", "1", "--count", "0"]), &["1 or more"]);
    assert_said(&stat(&[&this(), "--count", "2"]), &["--interval"]);
}

#[test]
fn a_dead_process_is_said_to_be_dead() {
    let mut child = Command::new("true").spawn().unwrap();
    let process = child.id().to_string();
    // Until it has ended, but not yet collected.
    while !std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap().contains(") Z ") {
        thread::yield_now();
    }
    assert_said(&stat(&[&process]), &["process", &process, "(true) has ended"]);
    child.wait().unwrap();
    assert_said(&stat(&[&process]), &["no process", &process]);
}

#[test]
fn a_thread_is_answered_with_its_process() {
    let thread = thread::spawn(|| {
        // SAFETY: a question without arguments.
        let own = unsafe { libc::gettid() }.to_string();
        assert_said(&stat(&[&own]), &["thread of process", &format!("give {}", this())]);
    });
    thread.join().unwrap();
}

#[test]
fn a_process_without_qspin_is_said_to_publish_nothing() {
    let cat = Idle::cat(&mut Command::new("cat"));
    assert_said(&stat(&[&cat.id()]), &[&cat.id(), "(cat) publishes no qspin statistics: none"]);
}

#[test]
fn a_child_that_has_not_counted_since_its_fork_has_nothing_to_show() {
    qspin::counter_group!(Before = "before");
    publish::<Before>();
    Before.count(Event::HashCount);
    let child = Forked::after(false, || {});
    assert_said(&stat(&[&child.id()]), &["publishes no qspin statistics", "since it was forked"]);
}

#[test]
fn the_child_of_a_raw_fork_is_answered_with_whose_file_it_has() {
    qspin::counter_group!(Raw = "raw");
    publish::<Raw>();
    Raw.count(Event::HashCount);
    let child = Forked::after(true, || {});
    assert_said(&stat(&[&child.id()]), &["publishes no", &format!("process {}'s", this())]);
}

/// A program that has a file with this name and content open.
fn with_file(name: &'static CStr, content: &'static [u8], size: libc::off_t) -> Idle {
    let mut command = Command::new("cat");
    // SAFETY: system calls only.
    unsafe {
        command.pre_exec(move || {
            let file = libc::memfd_create(name.as_ptr(), 0);
            libc::write(file, content.as_ptr().cast(), content.len());
            libc::ftruncate(file, size);
            Ok(())
        });
    }
    Idle::cat(&mut command)
}

#[test]
fn a_file_that_is_not_what_it_is_called_is_reported() {
    const HEADER: &[u8] =
        b"qspin-stat 1\ngroup x\npid 1\nstarted 1\nrecords 4096 256 256\nmark 0\n\
                            event a\nend\n";
    const LATER: &[u8] = b"qspin-stat 2\nend\n";
    const HUGE: &[u8] = b"qspin-stat 1\ngroup x\npid 1\nstarted 1\nrecords 4096 256 \
                          18446744073709551615\nmark 0\nevent a\nend\n";
    const COLOURED: &[u8] = b"qspin-stat 1\ngroup \x1b[31m\nend\n";
    for (content, size, said) in [
        (b"".as_slice(), 0, "is empty"),
        (b"", 1 << 20, "is empty"),
        (&[0xff; 5000], 5000, "is not a file of qspin"),
        (b"qspin", 5, "is not a file of qspin"),
        (HEADER, HEADER.len() as libc::off_t, "is cut off"),
        (HEADER, 5000, "is cut off"),
        (LATER, 70_000, "format 2"),
        (HUGE, 70_000, "contradicts itself"),
        (COLOURED, 70_000, "is not a file of qspin"),
    ] {
        let cat = with_file(c"qspin-stat:process", content, size);
        assert_said(&stat(&[&cat.id()]), &["(cat) has no statistics to show", said]);
    }
    let other = with_file(c"qspin-stat:process", HEADER, 70_000);
    assert_said(&stat(&[&other.id()]), &["publishes no qspin statistics", "process 1's"]);
    let similar = with_file(c"qspin-state", HEADER, 70_000);
    assert_said(&stat(&[&similar.id()]), &["publishes no qspin statistics"]);
}

#[test]
fn a_bad_file_beside_a_good_one_is_told_of_once() {
    qspin::counter_group!(Good = "good");
    let child = Forked::after(false, || {
        // SAFETY: a new file.
        unsafe { libc::memfd_create(c"qspin-stat:bad".as_ptr(), libc::MFD_CLOEXEC) };
        Good.count(Event::HashCount);
    });
    let output = stat(&[&child.id(), "--json", "--interval", "0.01", "--count", "3"]);
    assert_eq!(lines(&output).len(), 3);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.lines().count() == 1 && said.contains("is empty"), "{said}");
}

/// Runs `qspin stat` as a user that owns nothing, where that is possible: as root.
fn as_nobody(arguments: &[&str]) -> Option<Output> {
    const NOBODY: u32 = 65534;
    // SAFETY: a question without arguments.
    if unsafe { libc::geteuid() } != 0 {
        println!("skipped: only root can become another user");
        return None;
    }
    // A copy, since the build folder may be hidden from others.
    let folder = tempfile::tempdir().unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), mode).unwrap();
    let copy = folder.path().join("qspin");
    executable::write(&copy, std::fs::read(env!("CARGO_BIN_EXE_qspin")).unwrap());
    let mut command = Command::new(copy);
    command.arg("stat").args(arguments).uid(NOBODY).gid(NOBODY).current_dir("/");
    match command.output() {
        Ok(output) => Some(output),
        Err(why) => {
            println!("skipped: cannot run as another user: {why}");
            None
        }
    }
}

#[test]
fn another_users_process_is_said_to_be_anothers() {
    qspin::counter_group!(Owned = "owned");
    publish::<Owned>();
    Owned.count(Event::HashCount);
    for arguments in [&[this().as_str()][..], &[&this(), "--reset"]] {
        if let Some(output) = as_nobody(arguments) {
            assert_said(&output, &[&this(), "belongs to user root: run as that user or root"]);
        }
    }
    assert_eq!(Owned::count_of(Event::HashCount), 1);
}

#[test]
fn an_ordinary_user_reads_and_resets_what_is_his() {
    qspin::counter_group!(Mine = "mine");
    const NOBODY: u32 = 65534;
    // SAFETY: a question without arguments.
    if unsafe { libc::geteuid() } != 0 {
        println!("skipped: every other test shows it");
        return;
    }
    let child = Forked::after(false, || {
        // SAFETY: this process's own user; changing it hides the files, which is undone here.
        unsafe {
            libc::setgid(NOBODY);
            libc::setuid(NOBODY);
            libc::prctl(libc::PR_SET_DUMPABLE, 1);
        }
        Mine.add(Event::HashCount, 3);
    });
    for expected in [3, 0] {
        let Some(output) = as_nobody(&[&child.id(), "--json", "--reset"]) else { return };
        let line = &lines(&output)[0];
        assert_eq!(group(line, "mine")["counters"]["hash_count"]["count"], expected);
    }
}

#[test]
fn a_process_that_hides_itself_is_said_to() {
    qspin::counter_group!(Hidden = "hidden");
    const NOBODY: u32 = 65534;
    // SAFETY: a question without arguments.
    if unsafe { libc::geteuid() } != 0 {
        println!("skipped: only root can become another user");
        return;
    }
    let child = Forked::after(false, || {
        // SAFETY: this process's own user.
        unsafe {
            libc::setgid(NOBODY);
            libc::setuid(NOBODY);
        }
        Hidden.add(Event::HashCount, 3);
    });
    if let Some(output) = as_nobody(&[&child.id()]) {
        assert_said(&output, &["hides its open files", "run as root"]);
    }
}
