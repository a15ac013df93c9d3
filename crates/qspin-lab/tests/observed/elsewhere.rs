//! Processes that are gone, another user's, in a container, or under a library of another version: what is said of them.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use crate::executable;
use crate::interposed::{compile, qspin, said};

const WAITS: &str = "#include <pthread.h>\n#include <stdio.h>\n#include <unistd.h>\n\
    static pthread_mutex_t hot = PTHREAD_MUTEX_INITIALIZER;\n\
    int main(void) {\n\
        printf(\"%d\\n\", getpid()); fflush(stdout);\n\
        for (int i = 0; i < 1000000; i++) {\n\
            pthread_mutex_lock(&hot); usleep(1); pthread_mutex_unlock(&hot);\n\
        }\n\
    }\n";

/// A program under the library, that ends with this.
struct Running {
    child: Child,
    /// The number by which it calls itself.
    own: u32,
}

impl Running {
    fn start(mut command: Command) -> Self {
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0).spawn().unwrap();
        let mut first = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
        Self { child, own: first.trim().parse().unwrap_or(0) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // SAFETY: the group of a child that was not waited for.
        unsafe { libc::kill(-(self.child.id() as i32), libc::SIGKILL) };
        let _ = self.child.wait();
    }
}

fn program(directory: &Path) -> Option<PathBuf> {
    let program = directory.join("waits");
    compile(WAITS, &["-O1", "-g"], &program).then_some(program)
}

fn stat(arguments: &[&str]) -> Output {
    Command::new(qspin()).arg("stat").args(arguments).output().unwrap()
}

/// Exit code 2, and one line.
fn assert_refused(output: &Output, parts: &[&str]) {
    let text = said(output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(output.stdout.is_empty() && text.lines().count() == 1, "{text}");
    assert!(parts.iter().all(|part| text.contains(part)), "{parts:?}: {text}");
}

fn is_root() -> bool {
    // SAFETY: a question without arguments.
    let is_root = unsafe { libc::geteuid() } == 0;
    if !is_root {
        println!("skipped: only root can become another user");
    }
    is_root
}

#[test]
fn a_program_that_has_ended_is_said_to() {
    let mut child = Command::new("true").spawn().unwrap();
    let number = child.id().to_string();
    child.wait().unwrap();
    for more in [&[][..], &["--deadlocks"], &["--json"]] {
        let output = stat(&[&[number.as_str()], more].concat());
        assert_refused(&output, &["no process", &number, "has ended", "pidof"]);
    }
}

#[test]
fn a_program_that_is_not_under_the_library_is_answered_with_how_to_start_it() {
    let mut sleeps = Command::new("sleep").arg("60").spawn().unwrap();
    let number = sleeps.id().to_string();
    // The kernel lets the parent go on before the child has its program's name.
    let name = format!("/proc/{number}/comm");
    while std::fs::read_to_string(&name).unwrap() != "sleep\n" {
        std::thread::yield_now();
    }
    let outputs = [stat(&[&number]), stat(&[&number, "--deadlocks"])];
    sleeps.kill().unwrap();
    sleeps.wait().unwrap();
    for output in outputs {
        assert_refused(&output, &["(sleep)", "qspin run --"]);
    }
}

#[test]
fn another_users_program_is_answered_with_whose_it_is() {
    const NOBODY: u32 = 65534;
    let directory = tempfile::tempdir().unwrap();
    let Some(program) = program(directory.path()) else { return };
    if !is_root() {
        return;
    }
    let mut command = Command::new(qspin());
    command.args(["run", "--stats", "--"]).arg(program);
    let running = Running::start(command);
    // A copy, since the build folder may be hidden from others.
    let folder = tempfile::tempdir().unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), mode).unwrap();
    let copy = folder.path().join("qspin");
    executable::write(&copy, std::fs::read(qspin()).unwrap());
    for more in [&[][..], &["--deadlocks"], &["--reset"]] {
        let mut command = Command::new(&copy);
        command.args(["stat", &running.own.to_string()]).args(more);
        let output = command.uid(NOBODY).gid(NOBODY).current_dir("/").output().unwrap();
        assert_refused(&output, &["belongs to user root: run as that user or root"]);
    }
}

/// `unshare`, if this user may make a container of its own by it.
fn container() -> Option<Command> {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]);
    let mut tried = Command::new("unshare");
    tried.args(["--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "true"]);
    if tried.output().is_ok_and(|output| output.status.success()) {
        return Some(command);
    }
    println!("skipped: no container can be made here");
    None
}

/// The process here that calls itself `own` in a container, below `root`.
fn number_here(root: u32, own: u32) -> Option<u32> {
    let children = |of: u32| std::fs::read_to_string(format!("/proc/{of}/task/{of}/children")).ok();
    let mut queue = vec![root];
    while let Some(process) = queue.pop() {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
        let mut numbers = numbers.split_whitespace().rev();
        let last: u32 = numbers.next()?.parse().ok()?;
        if numbers.next().is_some() && last == own {
            return Some(process);
        }
        let below = children(process).unwrap_or_default();
        queue.extend(below.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
    }
    None
}

#[test]
fn a_program_in_a_container_is_seen_from_outside_with_names_and_the_host_is_not_from_inside() {
    let directory = tempfile::tempdir().unwrap();
    let Some(program) = program(directory.path()) else { return };
    let Some(mut command) = container() else { return };
    // In the container the program lies where nothing is outside.
    let script =
        "mount -t tmpfs none /mnt && cp \"$1\" /mnt/inside && exec \"$0\" run -- /mnt/inside";
    command.args(["sh", "-c", script]).arg(qspin()).arg(&program);
    let running = Running::start(command);
    if running.own == 0 {
        println!("skipped: nothing can be mounted in the container");
        return;
    }
    let here = number_here(running.child.id(), running.own).unwrap();
    assert!(here != running.own && !Path::new("/mnt/inside").exists());
    let output = stat(&[&here.to_string(), "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let line: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(line["locks"][0]["name"], "hot", "{line}");
    assert!(line["locks"][0]["where"].as_str().unwrap().contains("main (waits.c:"), "{line}");
    let output = stat(&[&here.to_string(), "--deadlocks"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    // From inside, the numbers of outside name no process.
    let Some(mut command) = container() else { return };
    let output = command.arg(qspin()).args(["stat", &here.to_string()]).output().unwrap();
    assert_refused(&output, &["no process", &here.to_string(), "in its container"]);
}

#[test]
fn a_deadlock_in_a_container_is_ended_there_and_no_other_process_is() {
    let directory = tempfile::tempdir().unwrap();
    let Some(program) = crate::circles(directory.path()) else { return };
    let Some(container) = container() else { return };
    let mut command = Command::new(qspin());
    command.args(["run", "--deadlocks=abort", "--"]).arg(container.get_program());
    // Without --mount-proc, so that the program finds the file of `qspin run`. It is the second process there: its
    // number is another process's outside.
    command.args(["--pid", "--fork", "--kill-child", "sh", "-c", "\"$0\" mutex 2; exit $?"]);
    command.arg(program);
    let output = command.output().unwrap();
    let text = said(&output);
    assert!(text.contains("2 threads wait for each other"), "{text}");
    assert!(text.contains("(circles.c:"), "{text}");
    assert_eq!(output.status.code(), Some(128 + libc::SIGABRT), "{text}");
}

#[test]
fn a_library_of_another_version_is_told_of() {
    let directory = tempfile::tempdir().unwrap();
    let library = directory.path().join("libqspin_preload.so");
    // A library of this name, whose file says another number of the format.
    let source = "#define _GNU_SOURCE\n#include <sys/mman.h>\n#include <unistd.h>\n\
        __attribute__((constructor)) static void begin(void) {\n\
            int file = memfd_create(\"qspin-locks\", 0);\n\
            (void)!write(file, \"qspin-locks 1\\0\\0\", 16);\n\
            (void)!ftruncate(file, 1 << 20);\n\
            mmap(0, 4096, PROT_READ, MAP_SHARED, file, 4096);\n\
        }\n";
    let Some(program) = program(directory.path()) else { return };
    if !compile(source, &["-shared", "-fPIC"], &library) {
        return;
    }
    let mut command = Command::new(program);
    command.env("LD_PRELOAD", &library);
    let running = Running::start(command);
    let number = running.own.to_string();
    for more in [&[][..], &["--deadlocks"]] {
        let output = stat(&[&[number.as_str()], more].concat());
        assert_refused(&output, &["of another version", "the `qspin` that is installed with it"]);
    }
}
