//! Which lock is chosen, of machines that are folders.

mod select_world;

use qspin::select::{Choice, Dedicated, Hints, Inputs, RULES, Threads};

use select_world::{Machine, kvm};

fn threads(threads: u32) -> Hints {
    Hints { threads: Some(threads), ..Hints::NONE }
}

fn dedicated(dedicated: bool) -> Hints {
    Hints { dedicated: Some(dedicated), ..Hints::NONE }
}

const CANNOT_HALT: Hints = Hints { can_halt: Some(false), ..Hints::NONE };

/// Checks choice and rule, and that nothing was malformed.
fn assert_chosen(machine: &Machine, hints: Hints, choice: Choice, rule: &str) -> Inputs {
    let inputs = machine.inputs(hints);
    assert_eq!(inputs.problems, [""; 0]);
    let verdict = inputs.verdict();
    assert_eq!((verdict.choice, verdict.rule), (choice, rule), "{inputs:?}");
    inputs
}

#[test]
fn every_thread_has_a_cpu_on_one_node_or_on_several() {
    let one = Machine::bare();
    let inputs = assert_chosen(&one, Hints::NONE, Choice::Native, "native");
    assert_eq!((inputs.cpus.as_slice(), inputs.nodes), (&[0, 1, 2, 3][..], 1));
    assert_chosen(&one, threads(4), Choice::Native, "native");
    let two = Machine::bare().two_nodes();
    let inputs = assert_chosen(&two, threads(4), Choice::Cna, "native");
    assert_eq!((inputs.nodes, inputs.distances.as_slice()), (2, &[0, 2][..]));
    assert!(inputs.verdict().reason.contains("2 NUMA nodes"));
    // Only the CPUs on which it may run count.
    let half = Machine::bare().two_nodes().status("2-3", 1);
    let inputs = assert_chosen(&half, Hints::NONE, Choice::Native, "native");
    assert_eq!((inputs.cpus.as_slice(), inputs.nodes), (&[2, 3][..], 1));
}

#[test]
fn a_virtual_machine_halts_unless_it_cannot() {
    let one = Machine::bare().cpuid(&kvm(true, false));
    assert_chosen(&one, Hints::NONE, Choice::Paravirt, "hypervisor");
    assert_chosen(&one, CANNOT_HALT, Choice::Backoff, "hypervisor-without-halt");
    let two = Machine::bare().two_nodes().cpuid(&kvm(true, false));
    assert_chosen(&two, Hints::NONE, Choice::CnaParavirt, "hypervisor");
    assert_chosen(&two, CANNOT_HALT, Choice::Backoff, "hypervisor-without-halt");
    // Threads halt by a futex: whether virtual CPUs can be kicked is the kernel's business.
    let deprived = Machine::bare().cpuid(&kvm(false, false));
    let inputs = assert_chosen(&deprived, Hints::NONE, Choice::Paravirt, "hypervisor");
    assert_eq!(inputs.hypervisor.unwrap().pv_unhalt, Some(false));
}

#[test]
fn dedicated_cpus_spin_even_without_unhalt() {
    // `-cpu host,kvm-hint-dedicated -overcommit cpu-pm=on`: the hint, and no PV_UNHALT.
    let pinned = Machine::bare().cpuid(&kvm(false, true));
    let inputs = assert_chosen(&pinned, Hints::NONE, Choice::Native, "dedicated");
    assert_eq!(inputs.dedicated, Dedicated::ByHypervisor);
    assert_chosen(&pinned, CANNOT_HALT, Choice::Native, "dedicated");
    let pinned = Machine::bare().two_nodes().cpuid(&kvm(false, true));
    assert_chosen(&pinned, CANNOT_HALT, Choice::Cna, "dedicated");
    // A user that knows better is believed, in both directions.
    let shared = Machine::bare().cpuid(&kvm(true, false));
    assert_chosen(&shared, dedicated(true), Choice::Native, "dedicated");
    let pinned = Machine::bare().cpuid(&kvm(true, true));
    assert_chosen(&pinned, dedicated(false), Choice::Paravirt, "hypervisor");
}

#[test]
fn more_threads_than_cpus_halt_whatever_the_machine() {
    assert_chosen(&Machine::bare(), threads(5), Choice::Paravirt, "more-threads-than-cpus");
    let two = Machine::bare().two_nodes();
    assert_chosen(&two, threads(5), Choice::CnaParavirt, "more-threads-than-cpus");
    let pinned = Machine::bare().cpuid(&kvm(true, true));
    assert_chosen(&pinned, threads(5), Choice::Paravirt, "more-threads-than-cpus");
    let hints = Hints { can_halt: Some(false), ..threads(5) };
    assert_chosen(&Machine::bare(), hints, Choice::Backoff, "overcommit-without-halt");
    // Without a hint those that there are now count; with one, the hint does.
    let many = Machine::bare().status("0-3", 9);
    let inputs = assert_chosen(&many, Hints::NONE, Choice::Paravirt, "more-threads-than-cpus");
    assert_eq!(inputs.threads, Threads::Now(9));
    assert_chosen(&many, threads(2), Choice::Native, "native");
}

#[test]
fn on_one_cpu_no_waiter_spins_unless_there_is_one_thread() {
    let one = Machine::bare().status("2", 1);
    assert_chosen(&one, Hints::NONE, Choice::Paravirt, "one-cpu");
    assert_chosen(&one, dedicated(true), Choice::Paravirt, "one-cpu");
    assert_chosen(&one, threads(2), Choice::Paravirt, "more-threads-than-cpus");
    assert_chosen(&one, threads(1), Choice::Native, "native");
    assert_chosen(&one, CANNOT_HALT, Choice::Backoff, "overcommit-without-halt");
    let pinned = Machine::bare().status("2", 1).cpuid(&kvm(true, true));
    assert_chosen(&pinned, Hints::NONE, Choice::Paravirt, "one-cpu");
    let changes = one.inputs(Hints::NONE).changes();
    assert!(changes.contains(&("at most 1 thread (--threads 1)".to_owned(), Choice::Native)));
}

#[test]
fn a_hint_that_stolen_time_disproves_is_not_believed_and_a_person_s_word_is() {
    let stolen = |ticks: &str| Machine::bare().cpuid(&kvm(false, true)).file("proc/stat", ticks);
    // Half a hundredth: while it started.
    let honest = stolen("cpu  1000 0 0 985 5 0 0 10");
    assert_chosen(&honest, Hints::NONE, Choice::Native, "dedicated");
    let broken = stolen("cpu  1000 0 0 975 5 0 0 20");
    let inputs = assert_chosen(&broken, Hints::NONE, Choice::Paravirt, "hypervisor");
    assert_eq!(inputs.dedicated, Dedicated::Doubted);
    assert_chosen(&broken, dedicated(true), Choice::Native, "dedicated");
    // Without the hint stolen time says no more than the hypervisor's presence does.
    let shared = Machine::bare().cpuid(&kvm(true, false)).file("proc/stat", "cpu  9 0 0 0 0 0 0 1");
    assert_chosen(&shared, Hints::NONE, Choice::Paravirt, "hypervisor");
}

#[test]
fn a_quota_counts_whatever_the_number_of_threads() {
    // Four CPUs, and the time of two: with three threads, and with one, since others may use it up.
    let quota = Machine::bare()
        .file("proc/self/cgroup", "0::/")
        .file("sys/fs/cgroup/cpu.max", "200000 100000");
    for said in [1, 2, 3, 4] {
        assert_chosen(&quota, threads(said), Choice::Paravirt, "quota");
    }
    assert_chosen(&quota, threads(5), Choice::Paravirt, "more-threads-than-cpus");
    // A quota that is more than the CPUs allow no limit; and one CPU is one.
    let wide = Machine::bare()
        .status("1-2", 1)
        .file("proc/self/cgroup", "0::/")
        .file("sys/fs/cgroup/cpu.max", "200000 100000");
    assert_chosen(&wide, threads(2), Choice::Native, "native");
}

#[test]
fn the_tightest_quota_of_a_group_and_its_ancestors_counts() {
    let v2 = |own: &str, parent: &str| {
        Machine::bare()
            .file("proc/self/cgroup", "0::/app/part")
            .file("sys/fs/cgroup/app/part/cpu.max", own)
            .file("sys/fs/cgroup/app/cpu.max", parent)
    };
    for (own, parent, cpus, named) in [
        ("max 100000", "150000 100000", 1.5, "app/cpu.max"),
        ("50000 100000", "150000 100000", 0.5, "part/cpu.max"),
        ("300000 100000", "200000 100000", 2.0, "app/cpu.max"),
    ] {
        let inputs = assert_chosen(&v2(own, parent), Hints::NONE, Choice::Paravirt, "quota");
        let quota = inputs.quota.unwrap();
        assert_eq!(quota.cpus, cpus);
        assert!(quota.file.ends_with(named), "{quota:?}");
    }
    assert_chosen(&v2("max 100000", "max 100000"), Hints::NONE, Choice::Native, "native");
    // As much as the CPUs have is no limit.
    let inputs =
        assert_chosen(&v2("400000 100000", "max 1"), Hints::NONE, Choice::Native, "native");
    assert_eq!(inputs.capacity(), 4.0);
    // It stops threads on dedicated CPUs, too.
    assert_chosen(&v2("50000 100000", "max 1"), dedicated(true), Choice::Paravirt, "quota");
    let two = v2("50000 100000", "max 1").two_nodes();
    assert_chosen(&two, Hints::NONE, Choice::CnaParavirt, "quota");
    let hints = CANNOT_HALT;
    assert_chosen(&v2("5 10", "max 1"), hints, Choice::Backoff, "overcommit-without-halt");
}

#[test]
fn quotas_of_both_versions_are_found_wherever_they_are_mounted() {
    let v1 = |mount: &str| {
        Machine::bare()
            .file("proc/self/cgroup", "4:memory:/other\n3:cpu,cpuacct:/app/part\n0::/")
            .file(&format!("{mount}/app/part/cpu.cfs_quota_us"), "-1")
            .file(&format!("{mount}/app/part/cpu.cfs_period_us"), "100000")
            .file(&format!("{mount}/app/cpu.cfs_quota_us"), "250000")
            .file(&format!("{mount}/app/cpu.cfs_period_us"), "100000")
    };
    let quota = |machine: &Machine| machine.inputs(Hints::NONE).quota.map(|quota| quota.cpus);
    for usual in ["sys/fs/cgroup/cpu", "sys/fs/cgroup/cpu,cpuacct"] {
        assert_eq!(quota(&v1(usual)), Some(2.5), "{usual}");
    }
    assert_eq!(quota(&v1("elsewhere")), None);
    let line = "30 20 0:26 / /elsewhere rw shared:9 - cgroup cgroup rw,cpu,cpuacct";
    assert_eq!(quota(&v1("elsewhere").file("proc/self/mountinfo", line)), Some(2.5));
    // A container sees its own group as the top: what is above is not known.
    let inside = Machine::bare()
        .file("proc/self/cgroup", "0::/box/7/app")
        .file("proc/self/mountinfo", "30 20 0:26 /box/7 /cg rw - cgroup2 cgroup2 rw")
        .file("cg/app/cpu.max", "max 100000")
        .file("cg/cpu.max", "120000 100000")
        .file("cpu.max", "1 100000");
    assert_eq!(quota(&inside), Some(1.2));
    // A name that leads out of the hierarchy is not followed.
    let outside = Machine::bare()
        .file("proc/self/cgroup", "0::/../../up")
        .file("up/cpu.max", "1 100000")
        .file("sys/fs/up/cpu.max", "1 100000");
    assert_eq!(quota(&outside), None);
}

#[test]
fn hypervisors_that_hide_give_themselves_away() {
    let named = [
        ("sys/class/dmi/id/sys_vendor", "QEMU", "QEMU"),
        ("sys/class/dmi/id/product_name", "VMware Virtual Platform", "VMware"),
        ("sys/hypervisor/type", "xen", "Xen"),
    ];
    for (file, says, name) in named {
        let machine = Machine::bare().file(file, says);
        let inputs = assert_chosen(&machine, Hints::NONE, Choice::Paravirt, "hypervisor");
        assert_eq!(inputs.hypervisor.unwrap().name, name);
    }
    let metal = Machine::bare().file("sys/class/dmi/id/sys_vendor", "Dell Inc.");
    assert_chosen(&metal, Hints::NONE, Choice::Native, "native");
    let robbed = Machine::bare().file("proc/stat", "cpu  10 0 10 75 0 0 0 5 0 0");
    let inputs = assert_chosen(&robbed, Hints::NONE, Choice::Paravirt, "hypervisor");
    assert_eq!(inputs.stolen, Some(0.05));
    assert_eq!(inputs.hypervisor.unwrap().source, "stolen time");
}

#[test]
fn a_lock_that_is_asked_for_by_name_is_taken() {
    for &choice in Choice::ALL {
        let hints = Hints { lock: Some(choice), ..threads(1000) };
        let inputs = assert_chosen(&Machine::bare(), hints, choice, "said");
        let changes = inputs.changes();
        assert_eq!(changes.len(), 1);
        assert_eq!(changes[0].1, Choice::Paravirt);
    }
}

#[test]
fn what_is_missing_is_not_known() {
    let nothing = Machine::empty().file("proc/hello", "");
    let inputs = assert_chosen(&nothing, Hints::NONE, Choice::Paravirt, "one-cpu");
    assert_eq!((inputs.cpus.as_slice(), inputs.nodes, inputs.caches), (&[0][..], 1, 1));
    assert_eq!((inputs.stolen, inputs.threads), (None, Threads::Unknown));
    // A container may have no sysfs: its affinity is known all the same.
    let container = Machine::empty().status("0-7", 1);
    assert_eq!(container.inputs(Hints::NONE).cpus.len(), 8);
    // A machine without CPUs' lists in proc has those that are online.
    let sysfs = Machine::empty().file("sys/devices/system/cpu/online", "0,2");
    assert_eq!(sysfs.inputs(Hints::NONE).cpus, [0, 2]);
}

#[test]
fn what_may_not_run_because_it_is_offline_does_not_count() {
    let machine = Machine::bare().status("0-127", 1);
    assert_eq!(machine.inputs(Hints::NONE).cpus, [0, 1, 2, 3]);
    assert_chosen(&machine, threads(5), Choice::Paravirt, "more-threads-than-cpus");
    // A cpuset whose CPUs are all offline by now: it is not known where the process runs.
    let gone = Machine::bare().status("64-127", 1);
    assert_eq!(gone.inputs(Hints::NONE).cpus, [0]);
}

#[test]
fn what_is_malformed_counts_as_missing_and_is_told() {
    let node = "sys/devices/system/node/node0/cpulist";
    let files = [
        ("proc/self/status", "Cpus_allowed_list:\tall\nThreads:\t1", "list of CPUs like"),
        ("proc/self/status", "Cpus_allowed_list:\t0-3\nThreads:\tmany", "number of threads"),
        ("proc/stat", "cpu 1 2 3", "8 numbers of ticks"),
        ("proc/stat", "", "8 numbers of ticks"),
        ("sys/fs/cgroup/cpu.max", "half", "150000 100000"),
        ("sys/fs/cgroup/cpu.max", "0 100000", "150000 100000"),
        ("cpuid", "0x00000001: eax", "edx=0x00000000"),
        ("sys/devices/system/cpu/online", "4-0", "list of CPUs"),
        (node, "zero", "list of CPUs like"),
        ("sys/devices/system/node/node0/distance", "10 x", "1 distances"),
    ];
    for (file, text, right) in files {
        let machine = Machine::bare().file("proc/self/cgroup", "0::/").file(file, text);
        let inputs = machine.inputs(Hints::NONE);
        assert_eq!(inputs.problems.len(), 1, "{file}: {:?}", inputs.problems);
        let problem = &inputs.problems[0];
        assert!(problem.contains(file) && problem.contains(right), "{problem}");
        assert_eq!(problem.lines().count(), 1);
        assert_eq!(inputs.verdict().choice, Choice::Native, "{file}");
        assert_eq!(inputs.nodes, 1, "{file}");
    }
    assert!(Inputs::of_folder("/nonexistent".as_ref(), Hints::NONE, None).is_err());
}

#[test]
fn nonsense_in_any_file_is_survived() {
    let files = [
        "proc/self/status",
        "proc/stat",
        "proc/self/cgroup",
        "proc/self/mountinfo",
        "cpuid",
        "sys/devices/system/cpu/online",
        "sys/devices/system/node/node0/cpulist",
        "sys/devices/system/node/node0/distance",
        "sys/fs/cgroup/cpu.max",
        "sys/devices/system/cpu/cpu0/cache/index0/level",
    ];
    let long = "0-9,".repeat(100_000);
    let nonsense = [
        "",
        "\n\n",
        "::::",
        ":",
        "0::",
        "0::/\n0::/../..",
        "-",
        "18446744073709551616",
        "0-",
        "é€",
        "\u{0}",
        "- - -",
        " - cgroup2 - -",
        "a b c d e f g - cgroup2 x cpu",
        "0x0:",
        "cpu ",
        &long,
    ];
    for file in files {
        for text in nonsense {
            let inputs = Machine::bare().file(file, text).inputs(Hints::NONE);
            assert!(!inputs.cpus.is_empty() && inputs.nodes >= 1, "{file}: {text}");
            assert!(inputs.problems.iter().all(|line| line.len() < 400 && !line.contains('\n')));
        }
    }
}

#[test]
fn a_fake_topology_stands_for_the_machine_s() {
    let inputs = Machine::bare().inputs_on("4x18x2", Hints::NONE);
    assert!(inputs.fake_topology);
    assert_eq!((inputs.nodes, inputs.caches, inputs.cpus.len()), (4, 4, 4));
    assert_eq!(inputs.verdict().choice, Choice::Cna);
    let tree = Machine::bare().two_nodes();
    let inputs = Machine::bare().inputs_on(tree.root().to_str().unwrap(), Hints::NONE);
    assert_eq!((inputs.nodes, inputs.verdict().choice), (2, Choice::Cna));
    for wrong in ["4x18", "/nonexistent", "0x1x1"] {
        let inputs = Machine::bare().two_nodes().inputs_on(wrong, Hints::NONE);
        assert_eq!((inputs.nodes, inputs.fake_topology), (1, false), "one node is what is left");
        assert!(inputs.problems[0].contains(&format!("QSPIN_TOPOLOGY={wrong}")));
    }
}

/// Every machine that differs in what the rules look at.
fn all_machines() -> Vec<Inputs> {
    let mut all = Vec::new();
    for machine in 0..16 {
        let has = |bit: u32| machine >> bit & 1 != 0;
        let mut machine = Machine::bare();
        if has(0) {
            machine = machine.cpuid(&kvm(true, false));
        }
        if has(1) {
            machine = machine.two_nodes();
        }
        if has(2) {
            machine = machine
                .file("proc/self/cgroup", "0::/")
                .file("sys/fs/cgroup/cpu.max", "50000 100000");
        }
        if has(3) {
            machine = machine.status("1", 1);
        }
        for threads in [None, Some(1), Some(4), Some(5)] {
            for dedicated in [None, Some(true), Some(false)] {
                for can_halt in [true, false] {
                    let can_halt = Some(can_halt);
                    all.push(machine.inputs(Hints { lock: None, threads, dedicated, can_halt }));
                }
            }
        }
    }
    all
}

#[test]
fn the_rules_agree_with_what_they_are_for() {
    let mut applied = vec![0; RULES.len()];
    for inputs in all_machines() {
        let verdict = inputs.verdict();
        let at = RULES.iter().position(|rule| rule.name == verdict.rule).unwrap();
        applied[at] += 1;
        let crowded = inputs.has_more_threads_than_cpus() || inputs.has_one_cpu();
        let stops = crowded || inputs.is_limited();
        let halts = matches!(verdict.choice, Choice::Paravirt | Choice::CnaParavirt);
        let queues = verdict.choice != Choice::Backoff;
        let near = matches!(verdict.choice, Choice::Cna | Choice::CnaParavirt);
        let taken_away = stops || inputs.hypervisor.is_some() && !inputs.is_dedicated();
        assert_eq!(halts, taken_away && inputs.can_halt, "{inputs:?}");
        assert_eq!(queues, halts || !taken_away, "{inputs:?}");
        assert_eq!(near, queues && inputs.nodes > 1, "{inputs:?}");
        for (what, choice) in inputs.changes() {
            assert_ne!(choice, verdict.choice, "{what}");
        }
        assert!(!inputs.changes().is_empty(), "something matters: {inputs:?}");
    }
    assert!(applied.iter().all(|&times| times > 0), "every rule applies somewhere: {applied:?}");
}

#[test]
fn what_would_change_the_choice_is_what_changes_it() {
    let changes = |machine: &Machine, hints| {
        let changes = machine.inputs(hints).changes();
        changes.into_iter().map(|(what, choice)| format!("{what}: {choice}")).collect::<Vec<_>>()
    };
    assert_eq!(
        changes(&Machine::bare(), Hints::NONE),
        [
            "more threads than CPUs (--threads 5): paravirt",
            "a CPU quota below 4: paravirt",
            "a hypervisor: paravirt",
            "CPUs on several NUMA nodes: cna",
        ]
    );
    let guest = Machine::bare().cpuid(&kvm(true, false));
    assert_eq!(
        changes(&guest, Hints::NONE),
        [
            "CPUs that are this program's alone (--dedicated): native",
            "no hypervisor: native",
            "CPUs on several NUMA nodes: cna-paravirt",
            "no way to halt and kick (--no-halt): backoff",
        ]
    );
    assert_eq!(changes(&Machine::bare(), threads(5))[0], "at most 4 threads (--threads 4): native");
}
