//! `qspin stat` on processes that count, on those that do not, and on files that lie.
//!
//! The test process itself is the one that is looked at, or a child of it.

use std::ffi::CStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::FromRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Output, Stdio};
use std::thread;

use qspin::events::{CounterGroup, Event, Events};
use serde_json::Value;

fn qspin() -> Command {
    Command::new(env!("CARGO_BIN_EXE_qspin"))
}

fn stat(arguments: &[&str]) -> Output {
    qspin().arg("stat").args(arguments).output().unwrap()
}

fn this() -> String {
    std::process::id().to_string()
}

/// The line that `qspin stat` complains with.
fn complaint(output: &Output) -> String {
    let stderr = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.starts_with("qspin: "), "{stderr}");
    stderr
}

#[track_caller]
fn assert_said(output: &Output, parts: &[&str]) {
    let said = complaint(output);
    for part in parts {
        assert!(said.contains(part), "`{part}` is missing in: {said}");
    }
}

fn lines(output: &Output) -> Vec<Value> {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn group<'a>(line: &'a Value, name: &str) -> &'a Value {
    let groups = line["groups"].as_array().unwrap();
    groups.iter().find(|group| group["group"] == name).unwrap_or(&Value::Null)
}

/// A program that does nothing for as long as the test lives, and no longer.
struct Idle(Child);

impl Idle {
    fn cat(command: &mut Command) -> Self {
        let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        // It bears the name of the program that began it for a moment.
        while std::fs::read_to_string(format!("/proc/{}/comm", child.id())).unwrap() != "cat\n" {
            thread::yield_now();
        }
        Self(child)
    }

    fn id(&self) -> String {
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
struct Forked(libc::pid_t);

impl Forked {
    /// `raw` forks behind the C library's back.
    fn after(raw: bool, work: impl FnOnce()) -> Self {
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

    fn id(&self) -> String {
        self.0.to_string()
    }

    fn kill(&self) {
        // SAFETY: a child that nobody else waits for.
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

#[test]
fn every_counter_of_every_group_is_shown() {
    qspin::counter_group!(Table = "table");
    qspin::counter_group!(Cache = "cache");
    Table.add(Event::UnlockKickCount, 4);
    Table.add(Event::KickLatencies, 400);
    Table.add(Event::HashCount, 2);
    Table.add(Event::HashHopsCount, 3);
    Cache.add(Event::PendingLockCount, 7);

    let shown = lines(&stat(&[&this(), "--json"]));
    assert_eq!(shown.len(), 1);
    assert_eq!(shown[0]["pid"], std::process::id());
    let table = group(&shown[0], "table");
    for event in Event::ALL {
        let counter = &table["counters"][event.name()];
        assert_eq!(counter["count"], Table::count_of(event), "{}", event.name());
        assert_eq!(counter["alias"].as_str(), event.alias());
    }
    assert_eq!(table["averages"]["kick_latency_ns"], 100.0);
    assert_eq!(table["averages"]["wake_latency_ns"], Value::Null);
    assert_eq!(table["averages"]["hops_a_hash"], 1.5);
    assert!(table["counted_for_s"].as_f64().unwrap() >= 0.0);
    let cache = group(&shown[0], "cache");
    assert_eq!(cache["counters"]["pending_lock_count"]["count"], 7);
    assert_eq!(cache["counters"]["unlock_kick_count"]["count"], 0);

    let output = stat(&[&this()]);
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    for part in [
        "group table, counted for ",
        "group cache, counted for ",
        "kick latency 100 ns, wake latency –, hops a hash 1.5",
    ] {
        assert!(text.contains(part), "`{part}` is missing in:\n{text}");
    }
    let mut table = text.lines().skip_while(|line| !line.contains("group table,"));
    let row = table.find(|line| line.contains("unlock_kick_count")).unwrap();
    let cells: Vec<_> = row.split('|').map(str::trim).collect();
    assert_eq!(cells, ["unlock_kick_count", "pv_kick_unlock", "4"]);
}

#[test]
fn watching_shows_rates() {
    qspin::counter_group!(Watched = "watched");
    Watched.count(Event::HashCount);
    let mut watch = qspin()
        .args(["stat", &this(), "--json", "--interval", "0.02"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let shown = BufReader::new(watch.stdout.take().unwrap()).lines();
    let (mut before, mut rates) = (None, 0);
    // A line that comes while the test is not running shows a rate of 0, which is right.
    for line in shown.take(1000) {
        Watched.add(Event::HashCount, 100);
        let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let watched = group(&line, "watched");
        let counter = &watched["counters"]["hash_count"];
        let (count, rate) =
            (counter["count"].as_u64().unwrap(), counter["per_s"].as_f64().unwrap());
        if let Some(before) = before {
            let gained = rate * line["interval_s"].as_f64().unwrap();
            assert_eq!(gained.round() as u64, count - before, "{line}");
            rates += u32::from(count > before);
            let hops = (count > before).then_some(0.0);
            assert_eq!(watched["averages_of_interval"]["hops_a_hash"].as_f64(), hops);
        }
        before = Some(count);
        if rates == 3 {
            break;
        }
    }
    assert_eq!(rates, 3, "the counts that were added were not seen");
    assert!(watch.wait().unwrap().success());
}

#[test]
fn watching_stops_after_so_many_times() {
    qspin::counter_group!(Times = "times");
    Times.count(Event::HashCount);
    let output = stat(&[&this(), "--json", "--interval", "0.01", "--count", "3"]);
    assert_eq!(lines(&output).len(), 3);
    let output = stat(&[&this(), "--interval", "0.01", "--count", "1"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("per second") && text.contains("of the last "), "{text}");
    assert!(!text.contains('\x1b'), "no terminal, no redrawing");
}

#[test]
fn a_reset_shows_what_it_throws_away() {
    qspin::counter_group!(Cleared = "cleared");
    // In a child, whose groups no other test looks at.
    let child = Forked::after(false, || Cleared.add(Event::HashCount, 9));
    let output = stat(&[&child.id(), "--json", "--reset"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("begin at zero again"), "{said}");
    let count = |line: &Value| group(line, "cleared")["counters"]["hash_count"]["count"].clone();
    assert_eq!(count(&lines(&output)[0]), 9);
    assert_eq!(count(&lines(&stat(&[&child.id(), "--json"]))[0]), 0);
}

#[test]
fn a_reset_before_watching_begins_at_zero() {
    qspin::counter_group!(Cleared = "cleared2");
    let child = Forked::after(false, || Cleared.add(Event::HashCount, 9));
    let watched = stat(&[&child.id(), "--json", "--reset", "--interval", "0.01", "--count", "1"]);
    let shown = lines(&watched);
    let counter = &group(&shown[0], "cleared2")["counters"]["hash_count"];
    assert_eq!((&counter["count"], counter["per_s"].as_f64()), (&0.into(), Some(0.0)));
}

#[test]
fn the_end_of_a_process_ends_the_watch_with_its_last_counts() {
    qspin::counter_group!(Ending = "ending");
    let child = Forked::after(false, || Ending.add(Event::HashCount, 9));
    let mut watch = qspin()
        .args(["stat", &child.id(), "--json", "--interval", "0.05"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut shown = BufReader::new(watch.stdout.take().unwrap()).lines();
    shown.next().unwrap().unwrap();
    child.kill();
    let rest: Vec<_> = shown.map(Result::unwrap).collect();
    let last: Value = serde_json::from_str(rest.last().unwrap()).unwrap();
    assert_eq!(group(&last, "ending")["counters"]["hash_count"]["count"], 9);
    let output = watch.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.lines().count() == 1 && said.contains("has ended"), "{said}");
}

#[test]
fn a_process_that_runs_another_program_ends_the_watch() {
    qspin::counter_group!(Leaving = "leaving");
    let mut go = [0; 2];
    // SAFETY: room for two.
    assert_eq!(unsafe { libc::pipe2(go.as_mut_ptr(), libc::O_CLOEXEC) }, 0);
    // SAFETY: the child counts, waits, and becomes another program.
    let child = unsafe { libc::fork() };
    if child == 0 {
        Leaving.count(Event::HashCount);
        // SAFETY: valid places and strings.
        unsafe {
            libc::read(go[0], [0_u8; 1].as_mut_ptr().cast(), 1);
            let arguments = [c"sleep".as_ptr(), c"1000".as_ptr(), std::ptr::null()];
            libc::execvp(arguments[0], arguments.as_ptr());
            libc::_exit(1);
        }
    }
    let child = Forked(child);
    // Until it has counted.
    while !stat(&[&child.id()]).status.success() {}
    let mut watch = qspin()
        .args(["stat", &child.id(), "--json", "--interval", "0.05"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut shown = BufReader::new(watch.stdout.take().unwrap()).lines();
    shown.next().unwrap().unwrap();
    // SAFETY: the other end of a pipe of ours.
    unsafe { libc::write(go[1], c"!".as_ptr().cast(), 1) };
    shown.for_each(drop);
    let output = watch.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("no longer"), "{said}");
}

#[test]
fn a_reader_that_has_seen_enough_ends_the_watch() {
    qspin::counter_group!(Piped = "piped");
    Piped.count(Event::HashCount);
    let mut watch = qspin()
        .args(["stat", &this(), "--json", "--interval", "0.01"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut shown = BufReader::new(watch.stdout.take().unwrap()).lines();
    shown.next().unwrap().unwrap();
    drop(shown);
    assert!(watch.wait().unwrap().success());
}

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
    // SAFETY: a question without arguments.
    let thread = thread::spawn(|| {
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
    Before.count(Event::HashCount);
    let child = Forked::after(false, || {});
    assert_said(&stat(&[&child.id()]), &["publishes no qspin statistics", "since it was forked"]);
}

#[test]
fn the_child_of_a_raw_fork_is_answered_with_whose_file_it_has() {
    qspin::counter_group!(Raw = "raw");
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

/// Runs `qspin stat` as a user who owns nothing, where that is possible: as root.
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
    std::fs::copy(env!("CARGO_BIN_EXE_qspin"), &copy).unwrap();
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
        // SAFETY: this process's own user; who changes it hides the files, which is undone here.
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

#[test]
fn a_real_lock_is_seen_to_wait() {
    static LOCK: qspin::native::CountedMutex<u64> = qspin::native::CountedMutex::new(0);
    let held = LOCK.lock();
    thread::scope(|scope| {
        scope.spawn(|| *LOCK.lock() += 1);
        let count = || {
            let shown = stat(&[&this(), "--json"]);
            let shown = if shown.status.success() { lines(&shown) } else { Vec::new() };
            shown.first().map_or(Value::Null, |line| {
                group(line, "process")["counters"]["lock_slowpath"]["count"].clone()
            })
        };
        while count() != 1 {
            thread::yield_now();
        }
        drop(held);
    });
}
