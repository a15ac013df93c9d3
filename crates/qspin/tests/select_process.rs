//! The choice of a whole process: made when it is loaded, fixed by its first lock operation.
//!
//! Each test starts this program again, for one of the functions that are ignored otherwise.

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Barrier;
use std::thread;

use qspin::platform::topology::{self, Topology};
use qspin::select::{self, Choice, Hints, Inputs, Mutex};

/// Runs `part` in a process of its own with these variables, and no other of ours.
fn run(program: &Path, part: &str, variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(program);
    for name in ["QSPIN_LOCK", "QSPIN_THREADS", "QSPIN_DEDICATED", "QSPIN_TOPOLOGY"] {
        command.env_remove(name);
    }
    command.args(["--ignored", "--exact", "--nocapture", part]).envs(variables.iter().copied());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{part} {variables:?}: {output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "there is no {part}");
    output
}

/// What `part` says, in a line that begins with `said: `, and what stands on stderr.
fn said(part: &str, variables: &[(&str, &str)]) -> (String, String) {
    let output = run(&std::env::current_exe().unwrap(), part, variables);
    (line(&output), String::from_utf8(output.stderr).unwrap())
}

fn line(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout);
    let at = text.find("said: ").expect("it says something");
    text[at + 6..].lines().next().unwrap_or("").to_owned()
}

/// A process that is being loaded has one thread; the one that tests it has more.
const AT_LOAD: Hints = Hints { threads: Some(1), ..Hints::NONE };

/// Threads count together, each a little: strict orders are slow where they outnumber the CPUs.
fn counts_together() {
    let lock = Mutex::new((0u64, 0u64));
    let (threads, each) = (4, 100);
    let start = Barrier::new(threads);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                start.wait();
                for _ in 0..each {
                    let mut halves = lock.lock();
                    assert_eq!(halves.0, halves.1);
                    halves.0 += 1;
                    std::hint::black_box(&mut *halves);
                    halves.1 += 1;
                }
            });
        }
    });
    assert!(!lock.is_locked());
    assert_eq!(lock.into_inner().0, (threads * each) as u64);
}

#[test]
#[ignore = "a part of other tests"]
fn part_lock() {
    let before = (select::chosen(), select::is_fixed());
    assert!(!before.1, "no thread has locked yet");
    let lock = Mutex::new(1);
    assert!(!lock.is_locked() && !select::is_fixed(), "a look fixes nothing");
    let held = lock.try_lock().expect("a free lock");
    assert!(select::is_fixed() && lock.is_locked() && lock.try_lock().is_none());
    drop(held);
    counts_together();
    assert_eq!((select::chosen(), select::is_fixed()), (before.0, true));
    println!("said: {}", before.0);
}

#[test]
#[ignore = "a part of other tests"]
fn part_look() {
    println!("said: {} {}", select::chosen(), topology::in_force());
}

#[test]
#[ignore = "a part of other tests"]
fn part_lock_where_no_reader_has_stderr() {
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for two descriptors; the three calls act on what is this process's.
    unsafe {
        assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
        assert_eq!(libc::close(ends[0]), 0);
        assert_eq!(libc::dup2(ends[1], libc::STDERR_FILENO), libc::STDERR_FILENO);
        // As in most programs. Those of Rust ignore it.
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
    }
    drop(Mutex::new(1).lock());
    println!("said: {}", select::is_fixed());
}

#[test]
#[cfg_attr(feature = "portable", ignore = "the portable platform writes to stderr as Rust does")]
fn a_complaint_that_is_not_read_does_not_kill() {
    let (fixed, _) = said("part_lock_where_no_reader_has_stderr", &[("QSPIN_LOCK", "nativ")]);
    assert_eq!(fixed, "true");
}

#[test]
fn the_user_of_the_program_names_the_lock() {
    for &choice in Choice::ALL {
        let (lock, complaint) = said("part_lock", &[("QSPIN_LOCK", choice.name())]);
        assert_eq!(lock, choice.name());
        assert_eq!(complaint, "");
    }
}

#[test]
fn without_a_word_the_machine_decides() {
    let dedicated = Hints { dedicated: Some(true), ..AT_LOAD };
    let crowded = Hints { threads: Some(1_000_000), ..dedicated };
    let cases: [(&[(&str, &str)], Hints); 3] = [
        (&[("QSPIN_LOCK", "")], AT_LOAD),
        (&[("QSPIN_DEDICATED", "1")], dedicated),
        (&[("QSPIN_DEDICATED", "1"), ("QSPIN_THREADS", "1000000")], crowded),
    ];
    for (variables, hints) in cases {
        let inputs = Inputs::of_this_process(hints, &Topology::of_this_machine());
        let (lock, complaint) = said("part_lock", variables);
        assert_eq!(lock, inputs.verdict().choice.name(), "{variables:?}");
        assert_eq!(complaint, "");
    }
}

#[test]
fn what_is_malformed_is_ignored_and_said_once_by_the_first_that_locks() {
    let by_machine = said("part_look", &[]).0;
    let (lock, complaint) = said("part_lock", &[("QSPIN_LOCK", "nativ\nx")]);
    assert!(by_machine.starts_with(&lock), "{by_machine}, {lock}");
    assert_eq!(
        complaint,
        "qspin: QSPIN_LOCK=nativ x is not native, paravirt, backoff, cna or cna-paravirt; it is ignored\n"
    );
    let (_, complaint) = said("part_look", &[("QSPIN_LOCK", "nativ")]);
    assert_eq!(complaint, "", "who does not lock does not care");
    let all = [("QSPIN_THREADS", "-1"), ("QSPIN_DEDICATED", "maybe"), ("QSPIN_TOPOLOGY", "4x")];
    let (_, complaint) = said("part_lock", &all);
    assert_eq!(complaint.lines().count(), 1, "{complaint}");
    for part in ["like 32", "0 or 1", "4x18x2"] {
        assert!(complaint.contains(part), "{complaint}");
    }
}

#[test]
fn a_malformed_topology_is_one_node_and_a_fake_one_is_heeded() {
    let nodes = |described: &str| said("part_look", &[("QSPIN_TOPOLOGY", described)]).0;
    assert!(nodes("3x2x1").ends_with(" 3 nodes"));
    assert!(nodes("3x2").ends_with(" 1 node"));
    assert!(nodes("/nonexistent").ends_with(" 1 node"));
}

#[test]
#[ignore = "a part of other tests"]
fn part_decide() {
    assert_eq!(select::force(Choice::Backoff), Ok(()));
    assert_eq!(select::chosen(), Choice::Backoff);
    // The program's word counts until a thread locks ...
    let hints = |lock| Hints { lock: Some(lock), ..Hints::NONE };
    assert_eq!(select::decide(hints(Choice::Native)).choice, Choice::Native);
    assert_eq!(select::chosen(), Choice::Native);
    assert_eq!(select::decide(hints(Choice::Paravirt)).choice, Choice::Paravirt);
    drop(Mutex::new(()).lock());
    // ... and no longer: what it would be now is still said.
    assert_eq!(select::decide(hints(Choice::Native)).choice, Choice::Native);
    assert_eq!(select::chosen(), Choice::Paravirt);
    assert_eq!(select::force(Choice::Backoff), Err(Choice::Paravirt));
    assert_eq!(select::force(Choice::Paravirt), Ok(()));
    println!("said: done");
}

#[test]
#[ignore = "a part of other tests"]
fn part_overruled() {
    let verdict = select::decide(Hints { lock: Some(Choice::Native), ..Hints::NONE });
    println!("said: {} {}", verdict.choice, select::chosen());
}

#[test]
fn the_program_decides_until_it_locks_and_its_user_before_it() {
    assert_eq!(said("part_decide", &[]).0, "done");
    assert_eq!(said("part_overruled", &[("QSPIN_LOCK", "backoff")]).0, "backoff backoff");
}

/// Leaves this thread on one CPU, its first one; returns how many it had.
fn pin() -> usize {
    let cpus = select::allowed_cpus();
    // SAFETY: a CPU set is plain bits; its size is given.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpus[0], &mut set);
        assert_eq!(libc::sched_setaffinity(0, size_of_val(&set), &set), 0);
    }
    cpus.len()
}

#[test]
#[ignore = "a part of other tests"]
fn part_affinity() {
    let decided = select::chosen();
    drop(Mutex::new(()).lock());
    let hints = Hints { threads: Some(1), dedicated: Some(true), ..Hints::NONE };
    let before = Inputs::of_this_process(hints, topology::in_force());
    let had = pin();
    let after = Inputs::of_this_process(hints, topology::in_force());
    assert_eq!((before.cpus.len(), after.cpus.len()), (had, 1));
    let crowded = Hints { threads: Some(2), ..hints };
    assert_eq!(select::decide(crowded).rule, "more-threads-than-cpus");
    assert_eq!(select::chosen(), decided, "what is fixed does not follow");
    counts_together();
    println!("said: done");
}

#[test]
fn cpus_that_are_taken_away_change_the_inputs_and_not_the_choice() {
    assert_eq!(said("part_affinity", &[]).0, "done");
}

#[test]
#[ignore = "a part of other tests"]
fn part_fork() {
    drop(Mutex::new(()).lock());
    let chosen = select::chosen();
    // SAFETY: the child locks and leaves.
    let child = unsafe { libc::fork() };
    if child == 0 {
        drop(Mutex::new(()).lock());
        let same = select::chosen() == chosen && select::is_fixed();
        // SAFETY: ends this process at once.
        unsafe { libc::_exit(if same { 0 } else { 1 }) };
    }
    let mut status = -1;
    // SAFETY: a valid place.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0);
    println!("said: done");
}

#[test]
fn a_forked_child_has_its_parent_s_choice() {
    assert_eq!(said("part_fork", &[("QSPIN_LOCK", "backoff")]).0, "done");
}

#[test]
#[cfg_attr(feature = "portable", ignore = "the portable platform does not know a program's rights")]
fn a_program_with_more_rights_does_not_heed_the_environment() {
    // SAFETY: asks for a number.
    if unsafe { libc::geteuid() } != 0 {
        println!("skipped: only root can make a program that has another's rights");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o755)).unwrap();
    let program = folder.path().join("program");
    // Not by this process: a child that another test forks meanwhile would have it open for writing.
    let copied = Command::new("cp").arg(std::env::current_exe().unwrap()).arg(&program).status();
    assert!(copied.unwrap().success());
    chown(&program, Some(65534), Some(65534)).unwrap();
    let variables = [("QSPIN_LOCK", "backoff"), ("QSPIN_TOPOLOGY", "5x1x1")];
    let heeded = line(&run(&program, "part_look", &variables));
    assert_eq!(heeded, "backoff 5 nodes");
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o4755)).unwrap();
    let ignored = line(&run(&program, "part_look", &variables));
    let here = Inputs::of_this_process(AT_LOAD, &Topology::of_this_machine());
    assert_eq!(ignored.split(' ').next(), Some(here.verdict().choice.name()), "{ignored}");
}
