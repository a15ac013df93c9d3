//! `qspin advise`: inputs, choice, reason, and what would change it; on this machine, on others' files
//! and under limits.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

const VARIABLES: [&str; 4] = ["QSPIN_LOCK", "QSPIN_THREADS", "QSPIN_DEDICATED", "QSPIN_TOPOLOGY"];

/// `qspin advise` in an environment without a word about locks.
fn advise(args: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("qspin"));
    VARIABLES.iter().for_each(|name| {
        command.env_remove(name);
    });
    command.arg("advise").args(args);
    command
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn json(command: &mut Command) -> Value {
    let text = text(&command.arg("--json").output().unwrap());
    assert_eq!(text.lines().count(), 1, "{text}");
    serde_json::from_str(&text).unwrap()
}

/// The one line of a refusal.
fn refused(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(output.stdout.is_empty());
    assert!(said.lines().count() == 1 && said.starts_with("qspin: "), "{said}");
    said
}

/// Another machine: two nodes of two CPUs under KVM.
struct Machine(tempfile::TempDir);

impl Machine {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
            .file("proc/self/status", "Threads:\t1\nCpus_allowed_list:\t0-3")
            .file("proc/self/cgroup", "0::/app")
            .file("proc/stat", "cpu  1 0 1 98 0 0 0 0")
            .file("sys/devices/system/cpu/online", "0-3")
            .file("sys/devices/system/node/node0/cpulist", "0-1")
            .file("sys/devices/system/node/node0/distance", "10 21")
            .file("sys/devices/system/node/node1/cpulist", "2-3")
            .file("sys/devices/system/node/node1/distance", "21 10")
            .kvm(0x80, 0)
    }

    fn file(self, path: &str, text: &str) -> Self {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
        self
    }

    fn kvm(self, features: u32, hints: u32) -> Self {
        let text = format!(
            "   0x00000001 0x00: eax=0x0 ebx=0x0 ecx=0x80000000 edx=0x0\n   \
             0x40000000 0x00: eax=0x40000001 ebx=0x4b4d564b ecx=0x564b4d56 edx=0x0000004d\n   \
             0x40000001 0x00: eax={features:#x} ebx=0x0 ecx=0x0 edx={hints:#x}"
        );
        self.file("cpuid", &text)
    }

    fn path(&self) -> &str {
        self.0.path().to_str().unwrap()
    }

    fn advise(&self, args: &[&str]) -> Command {
        advise(&[&["--root", self.path()], args].concat())
    }
}

/// The newcomer meets these one after the other: they must not name different locks.
#[test]
fn advice_readme_and_documentation_name_the_same_default() {
    let said = json(&mut advise(&[]));
    assert_eq!(said["default"], "mutex");
    assert!(text(&advise(&[]).output().unwrap()).starts_with("Take `mutex` (`qspin::Mutex`)"));
    let page = |path: &str| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        std::fs::read_to_string(root.join(path)).unwrap()
    };
    assert!(
        page("README.md")
            .contains("| don't know, and it may change | `qspin::Mutex`, the default |")
    );
    assert!(page("README.md").contains("\nuse qspin::Mutex;\n"));
    assert!(page("docs/bench.md").contains("Take `mutex` in place of"));
    assert!(page("docs/mutex.md").starts_with("# The default mutex\n\n`qspin::Mutex<T>`"));
}

#[test]
fn this_machine_gets_an_advice_with_a_reason() {
    let said = json(&mut advise(&[]));
    let choice = said["choice"].as_str().unwrap();
    assert!(said["reason"].as_str().unwrap().len() > 20);
    assert!(!said["inputs"]["cpus"].as_array().unwrap().is_empty());
    assert!(!said["changes"].as_array().unwrap().is_empty());
    let text = text(&advise(&[]).output().unwrap());
    assert!(text.contains(&format!("`qspin::select` takes `{choice}` here: ")), "{text}");
    for part in ["CPU quota", "PV_UNHALT", "NUMA nodes", "What would change that:", "--threads N"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn another_machine_is_advised_from_its_files() {
    let machine = Machine::new();
    let said = json(&mut machine.advise(&[]));
    assert_eq!((&said["choice"], &said["rule"]), (&"cna-paravirt".into(), &"hypervisor".into()));
    assert_eq!(said["inputs"]["distances"], serde_json::json!([0, 2]));
    assert_eq!(said["inputs"]["hypervisor"]["pv_unhalt"], true);
    let text = text(&machine.advise(&[]).output().unwrap());
    assert!(text.contains("takes `cna-paravirt` here"), "{text}");
    for line in ["4 (0-3)", "all CPUs on one NUMA node", "→ paravirt", "→ cna\n", "→ backoff"]
    {
        assert!(text.contains(line), "{line}: {text}");
    }
    // What is said counts more than what is found.
    let rule = |args: &[&str]| json(&mut machine.advise(args))["rule"].clone();
    assert_eq!(rule(&["--dedicated"]), "dedicated");
    assert_eq!(rule(&["--threads", "5"]), "more-threads-than-cpus");
    assert_eq!(rule(&["--no-halt"]), "hypervisor-without-halt");
    let said = json(machine.advise(&[]).env("QSPIN_LOCK", "backoff"));
    assert_eq!((&said["choice"], &said["rule"]), (&"backoff".into(), &"said".into()));
    assert_eq!(said["changes"].as_array().unwrap().len(), 1);
}

#[test]
fn idle_by_the_guest_itself_is_explained() {
    // `-overcommit cpu-pm=on` without the hint: it is not said whether the CPUs are dedicated.
    let machine = Machine::new().kvm(0, 0);
    let said = text(&machine.advise(&[]).output().unwrap()).replace('\n', " ");
    assert!(said.contains("cpu-pm=on") && said.contains("say --dedicated"), "{said}");
    // With the hint there is nothing to be explained.
    let machine = Machine::new().kvm(0, 1);
    let said = text(&machine.advise(&[]).output().unwrap());
    assert!(said.contains("KVM_HINTS_REALTIME") && !said.contains("cpu-pm=on"), "{said}");
    assert!(said.contains("takes `cna` here"), "{said}");
}

#[test]
fn doubtful_promises_are_remarked() {
    let machine = Machine::new().kvm(0, 1).file("proc/stat", "cpu  1 0 1 88 0 0 0 10");
    let said = text(&machine.advise(&[]).output().unwrap()).replace('\n', " ");
    assert!(said.contains("said to be dedicated, yet"), "{said}");
    assert!(said.contains("10.00 %") && said.contains("stolen time disproves it"), "{said}");
    assert!(said.contains("takes `cna-paravirt` here"), "{said}");
    assert_eq!(json(&mut machine.advise(&[]))["inputs"]["dedicated"], false);
    // A user that says so is believed, and told.
    let said = text(&machine.advise(&["--dedicated"]).output().unwrap()).replace('\n', " ");
    assert!(
        said.contains("takes `cna` here") && said.contains("said to be dedicated, yet"),
        "{said}"
    );
}

#[test]
fn a_quota_of_another_machine_is_heeded() {
    let machine = Machine::new().file("sys/fs/cgroup/cpu.max", "150000 100000");
    let said = json(&mut machine.advise(&["--dedicated"]));
    assert_eq!((&said["rule"], &said["choice"]), (&"quota".into(), &"cna-paravirt".into()));
    assert_eq!(said["inputs"]["quota"]["cpus"], 1.5);
    let text = text(&machine.advise(&[]).output().unwrap());
    assert!(text.contains("1.50 CPUs") && text.contains("sys/fs/cgroup/cpu.max"), "{text}");
}

#[test]
fn a_fake_topology_is_heeded_and_named() {
    let mut command = advise(&["--dedicated", "--threads", "1"]);
    let said = json(command.env("QSPIN_TOPOLOGY", "4x18x2"));
    assert_eq!(
        (&said["inputs"]["nodes"], &said["inputs"]["topology"]),
        (&4.into(), &"4x18x2".into())
    );
    if said["rule"] == "dedicated" {
        assert_eq!(said["choice"], "cna");
    } else {
        assert_eq!(said["rule"], "quota", "nothing else could stop one thread");
    }
    let tree = Machine::new();
    let text = text(&advise(&[]).env("QSPIN_TOPOLOGY", tree.path()).output().unwrap());
    assert!(text.contains("which is fake") && text.contains("levels 0 2"), "{text}");
}

#[test]
fn fewer_cpus_are_seen_at_once() {
    let all = json(&mut advise(&[]))["inputs"]["cpus"].as_array().unwrap().clone();
    let first = all[0].as_u64().unwrap() as usize;
    let mut command = advise(&["--threads", "2"]);
    // SAFETY: between fork and exec only a system call is made, on plain bits.
    unsafe {
        command.pre_exec(move || {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(first, &mut set);
            match libc::sched_setaffinity(0, size_of_val(&set), &set) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        });
    }
    let said = json(&mut command);
    assert_eq!(said["inputs"]["cpus"], serde_json::json!([first]));
    let stopped = ["more-threads-than-cpus", "overcommit-without-halt"];
    assert!(stopped.contains(&said["rule"].as_str().unwrap()), "{said}");
}

/// Checks that an advice explains itself: every input with its source, the choice and its reason, and
/// what would change it; and that what can be said by an option does change it so.
fn explains(again: &dyn Fn(&[&str]) -> Command, rule: &str, choice: &str, inputs: &[&str]) {
    let said = json(&mut again(&[]));
    assert_eq!((&said["rule"], &said["choice"]), (&rule.into(), &choice.into()), "{said}");
    let text = text(&again(&[]).output().unwrap());
    let reason = said["reason"].as_str().unwrap();
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains(&format!("takes `{choice}` here: {reason}.")), "{text}");
    let rows = [
        "CPUs  ",
        "CPU quota",
        "threads  ",
        "hypervisor",
        "kicks halted CPUs",
        "stolen time",
        "dedicated CPUs",
        "halt and kick",
        "NUMA nodes",
        "last-level caches",
    ];
    for part in rows.iter().chain(inputs).chain(&["What would change that:"]) {
        assert!(text.contains(part), "{part}: {text}");
    }
    let changes = said["changes"].as_array().unwrap();
    assert!(!changes.is_empty(), "{said}");
    for change in changes {
        let (what, to) = (change["what"].as_str().unwrap(), change["choice"].as_str().unwrap());
        assert_ne!(to, choice);
        assert!(text.contains(what) && text.contains(&format!("→ {to}\n")), "{what}: {text}");
        if let Some((_, option)) = what.strip_suffix(')').and_then(|what| what.split_once("(--")) {
            let option = format!("--{option}");
            let other = json(&mut again(&option.split(' ').collect::<Vec<_>>()));
            assert_eq!(other["choice"], to, "{what}");
        }
    }
}

#[test]
fn every_kind_of_machine_is_explained() {
    let kvm = |features, hints| Machine::new().kvm(features, hints);
    let bare = || Machine::new().file("cpuid", "");
    let v1 = |quota: &str| {
        bare()
            .file("proc/self/cgroup", "3:cpu,cpuacct:/app\n0::/app")
            .file("sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_quota_us", quota)
            .file("sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_period_us", "100000")
    };
    let status = |cpus: &str| format!("Threads:\t1\nCpus_allowed_list:\t{cpus}");
    let cases: [(Machine, &str, &str, &[&str]); 11] = [
        (bare(), "native", "cna", &["none", "levels 0 2"]),
        (kvm(0x80, 0), "hypervisor", "cna-paravirt", &["KVM", "CPUID", "yes"]),
        (kvm(0, 0), "hypervisor", "cna-paravirt", &["no  ", "cpu-pm=on"]),
        (kvm(0, 1), "dedicated", "cna", &["KVM_HINTS_REALTIME"]),
        (
            bare().file("sys/class/dmi/id/sys_vendor", "QEMU"),
            "hypervisor",
            "cna-paravirt",
            &["its name in sysfs", "not said"],
        ),
        (
            bare().file("sys/fs/cgroup/app/cpu.max", "150000 100000"),
            "quota",
            "cna-paravirt",
            &["1.50 CPUs", "sys/fs/cgroup/app/cpu.max"],
        ),
        (v1("250000"), "quota", "cna-paravirt", &["2.50 CPUs", "cpu.cfs_quota_us"]),
        (v1("-1"), "native", "cna", &["none"]),
        (v1("400000"), "native", "cna", &["4.00 CPUs, not below the CPUs"]),
        (bare().file("proc/self/status", &status("3")), "one-cpu", "paravirt", &["1 (3)"]),
        (bare().file("proc/self/status", &status("2-3")), "native", "native", &["2 (2-3)"]),
    ];
    for (machine, rule, choice, inputs) in &cases {
        explains(&|args| machine.advise(args), rule, choice, inputs);
    }
    let fake = |args: &[&str]| {
        let mut command = cases[10].0.advise(args);
        command.env("QSPIN_TOPOLOGY", "4x18x2");
        command
    };
    explains(&fake, "native", "cna", &["QSPIN_TOPOLOGY=4x18x2, which is fake"]);
    let named = |args: &[&str]| {
        let mut command = cases[1].0.advise(args);
        command.env("QSPIN_LOCK", "backoff");
        command
    };
    explains(&named, "said", "backoff", &["the lock not asked for by name", "→ cna-paravirt"]);
}

#[test]
fn under_taskset_on_one_cpu_no_waiter_spins() {
    let all = json(&mut advise(&[]))["inputs"]["cpus"].as_array().unwrap().clone();
    let cpu = all[0].to_string();
    let on_one = |args: &[&str]| {
        let plain = advise(args);
        let mut command = Command::new("taskset");
        VARIABLES.iter().for_each(|name| {
            command.env_remove(name);
        });
        command.args(["-c", &cpu]).arg(plain.get_program()).args(plain.get_args());
        command
    };
    if on_one(&[]).output().is_err() {
        println!("skipped: there is no taskset");
        return;
    }
    explains(&on_one, "one-cpu", "paravirt", &[&format!("1 ({cpu})"), "more than one"]);
}

/// A control group of this machine, which is removed at the end.
struct Group(PathBuf);

impl Group {
    /// One that allows half a CPU; `None` where none may be made.
    fn of_half_a_cpu() -> Option<Self> {
        let name = format!("qspin-test-{}", std::process::id());
        for top in ["", "unified", "cpu", "cpu,cpuacct"] {
            let path = Path::new("/sys/fs/cgroup").join(top).join(&name);
            if fs::create_dir(&path).is_err() {
                continue;
            }
            let group = Self(path);
            let set = |file: &str, text: &str| {
                let path = group.0.join(file);
                path.exists() && fs::write(path, text).is_ok()
            };
            if set("cpu.max", "50000 100000")
                || set("cpu.cfs_period_us", "100000") && set("cpu.cfs_quota_us", "50000")
            {
                return Some(group);
            }
        }
        None
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn a_real_quota_is_found() {
    let Some(group) = Group::of_half_a_cpu() else {
        println!("skipped: no control group can be made here");
        return;
    };
    let mut command = Command::new("sh");
    VARIABLES.iter().for_each(|name| {
        command.env_remove(name);
    });
    command.args([
        "-c",
        "echo $$ > \"$0/cgroup.procs\" && exec \"$1\" advise --dedicated --threads 1 --json",
    ]);
    command.arg(&group.0).arg(assert_cmd::cargo::cargo_bin("qspin"));
    let said: Value = serde_json::from_str(&text(&command.output().unwrap())).unwrap();
    assert_eq!(said["inputs"]["quota"]["cpus"], 0.5, "{said}");
    assert_eq!(said["rule"], "quota");
    let file = said["inputs"]["quota"]["file"].as_str().unwrap();
    assert!(Path::new(file).starts_with(&group.0), "{file}");
}

#[test]
fn what_is_malformed_is_refused_in_one_line() {
    let environment = [
        ("QSPIN_LOCK", "nativ", "native, paravirt, backoff, cna or cna-paravirt"),
        ("QSPIN_THREADS", "0", "a number of threads like 32"),
        ("QSPIN_DEDICATED", "yes", "0 or 1"),
        ("QSPIN_TOPOLOGY", "4x18", "NODESxCORESxTHREADS like 4x18x2"),
        ("QSPIN_TOPOLOGY", "0x1x1", "NODESxCORESxTHREADS"),
        ("QSPIN_TOPOLOGY", "/nonexistent", "no cpu/online and no node/node0/cpulist"),
    ];
    for (name, value, right) in environment {
        for machine in [None, Some(Machine::new())] {
            let mut command = machine.as_ref().map_or_else(|| advise(&[]), |m| m.advise(&[]));
            let said = refused(command.env(name, value));
            assert!(said.contains(&format!("{name}={value}")) && said.contains(right), "{said}");
        }
    }
    let node = "sys/devices/system/node/node1/cpulist";
    for (file, text, right) in [
        (node, "two", "list of CPUs like"),
        (node, "1-2", "node0 lists CPU 1, too"),
        ("sys/devices/system/cpu/online", "9", "no node lists a CPU that is online"),
        ("sys/devices/system/node/node1/distance", "21", "2 distances"),
        ("sys/fs/cgroup/cpu.max", "1", "like `150000 100000`"),
        ("proc/self/status", "Cpus_allowed_list:\t?", "list of CPUs"),
        ("cpuid", "0x1", "edx=0x00000000"),
    ] {
        let said = refused(&mut Machine::new().file(file, text).advise(&["--json"]));
        assert!(said.contains(right), "{said}");
    }
    assert!(refused(&mut advise(&["--root", "/nonexistent"])).contains("like /"));
    assert!(refused(&mut advise(&["--threads", "0"])).contains("1..=1048576"));
    assert!(refused(&mut advise(&["native"])).contains("Usage: qspin advise"));
}
