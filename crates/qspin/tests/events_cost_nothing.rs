//! A lock that does not count has not one instruction for counting.
//!
//! The same probe is compiled twice: as it is, and with the line that counts taken out of the
//! source. The lock with `NoEvents` must come out as the same instructions; the lock that
//! counts must not, or this test would compare nothing.
//!
//! And a lock that is chosen when the program starts has one load and one branch that goes the same
//! way every time, before it does what the lock that was chosen does.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The machine code of the probe, compiled with `flags`.
fn assembly(name: &str, flags: &str) -> String {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let examples = target.join("release/examples");
    for old in assembly_files(&examples) {
        std::fs::remove_file(old).unwrap();
    }
    // The cause of a rebuild: without its output the example must be compiled again.
    let _ = std::fs::remove_dir_all(target.join("release/.fingerprint"));
    let output = Command::new(env!("CARGO"))
        .args(["rustc", "--release", "--offline", "--example", "probe", "--", "--emit", "asm"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("CARGO_TARGET_DIR", &target)
        .env("RUSTFLAGS", flags)
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let files = assembly_files(&examples);
    assert_eq!(files.len(), 1, "{files:?}");
    std::fs::read_to_string(&files[0]).unwrap()
}

/// The machine code of the probe as it is.
fn plain_assembly() -> &'static str {
    static PLAIN: OnceLock<String> = OnceLock::new();
    PLAIN.get_or_init(|| assembly("probe-with", ""))
}

fn assembly_files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "s")).collect()
}

/// The lines of `function` that are instructions.
fn body<'a>(assembly: &'a str, function: &str) -> impl Iterator<Item = &'a str> {
    let (label, end) = (format!("{function}:"), format!("\t.size\t{function},"));
    assembly
        .lines()
        .skip_while(move |line| *line != label)
        .take_while(move |line| !line.starts_with(&end))
        .filter(|line| line.starts_with('\t') && !line.starts_with("\t."))
}

/// The instructions of `function`, without the names that differ from build to build.
fn instructions(assembly: &str, function: &str) -> Vec<String> {
    body(assembly, function)
        .map(|line| line.split_whitespace().map(nameless).collect::<Vec<_>>().join(" "))
        .collect()
}

fn nameless(word: &str) -> &str {
    if word.starts_with(".L") || word.contains("_ZN") || word.contains("_R") {
        "name"
    } else {
        word
    }
}

/// The function of the library that a word of an instruction names.
fn named(word: &str) -> Option<&str> {
    let name = word.trim_start_matches('*').split(['@', '(', ',', '+']).next()?;
    name.contains("qspin_core").then_some(name)
}

/// The instructions of `function` and, each after the first that refers to it, of every function of
/// the library that it reaches.
fn reachable(assembly: &str, function: &str) -> Vec<Vec<String>> {
    let mut names = vec![function];
    let mut code = Vec::new();
    while let Some(&name) = names.get(code.len()) {
        code.push(instructions(assembly, name));
        for found in body(assembly, name).flat_map(str::split_whitespace).filter_map(named) {
            if !names.contains(&found) {
                names.push(found);
            }
        }
    }
    code
}

#[test]
fn a_lock_without_events_has_not_one_instruction_more() {
    let with = plain_assembly();
    let without = assembly("probe-without", "--cfg qspin_without_events");
    // (what of which lock, instructions that its slow paths have at least)
    let probes = [
        ("native_acquire", 40),
        ("paravirt_acquire", 80),
        ("paravirt_release", 20),
        ("paravirt_ticket_acquire", 40),
        ("paravirt_ticket_release", 10),
    ];
    for (probe, least) in probes {
        let length = |code: &[Vec<String>]| code.iter().map(Vec::len).sum::<usize>();
        let plain = reachable(with, &format!("probe_{probe}"));
        assert!(length(&plain[..1]) > 1, "{probe}: {plain:?}");
        assert!(length(&plain[1..]) >= least, "{probe}: {plain:?}");
        assert_eq!(plain, reachable(&without, &format!("probe_{probe}")), "{probe}");

        let counted = reachable(with, &format!("probe_{probe}_counted"));
        assert_eq!(plain[0], counted[0], "{probe}: the fast path counts nothing");
        let (plain, counted) = (length(&plain[1..]), length(&counted[1..]));
        assert!(counted > plain, "{probe}: {counted} and {plain} instructions");
        println!("{probe}: slow path of {plain} instructions, counted {counted}");
    }
}

/// What is executed on one way through a function, from its begin to its first locked instruction.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Way {
    instructions: usize,
    branches: usize,
}

/// All ways to a locked instruction that call nothing.
fn ways_to_the_lock(assembly: &str, function: &str) -> Vec<Way> {
    let start = format!("{function}:");
    let lines: Vec<&str> =
        assembly.lines().skip_while(|line| *line != start).map(str::trim_end).collect();
    let label = |name: &str| lines.iter().position(|line| line.strip_suffix(':') == Some(name));
    let mut open = vec![(0, Way::default())];
    let mut ways = Vec::new();
    while let Some((at, mut way)) = open.pop() {
        let Some(line) = lines.get(at) else { continue };
        let is_instruction = line.starts_with('\t') && !line.starts_with("\t.");
        let mut words = line.split_whitespace();
        let (operation, target) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        if !is_instruction {
            open.push((at + 1, way));
            continue;
        }
        way.instructions += 1;
        match operation {
            "lock" => ways.push(way),
            "jmp" => open.extend(label(target).map(|to| (to, way))),
            "call" | "callq" | "ret" | "retq" | "ud2" => {}
            _ if operation.starts_with('j') => {
                way.branches += 1;
                open.extend(label(target).map(|to| (to, way.clone())));
                open.push((at + 1, way));
            }
            _ => open.push((at + 1, way)),
        }
    }
    ways.sort_by_key(|way| way.branches);
    ways
}

#[test]
fn a_lock_that_is_chosen_costs_a_load_and_a_branch() {
    let code = plain_assembly();
    // (the ways there are: a release subtracts for native, and compares for all others)
    for (what, ways) in [("acquire", 1), ("release", 2)] {
        let chosen = ways_to_the_lock(code, &format!("probe_select_{what}"));
        let plain = ways_to_the_lock(code, &format!("probe_native_{what}"));
        println!("{what}: {chosen:?}, alone {plain:?}");
        let alone = plain.first().expect("a lock has a locked instruction");
        assert_eq!(alone.branches, 0, "{plain:?}");
        assert_eq!(chosen.len(), ways, "{chosen:?}");
        assert!(chosen.iter().all(|way| way.branches == 1), "{what}: {chosen:?}");
        // The load, its address, a comparison, the frame for the call that is not made; and what a
        // compare-exchange needs in registers, where a subtraction needs nothing.
        let most = alone.instructions + 8;
        assert!(chosen.iter().all(|way| way.instructions <= most), "{chosen:?}, alone {alone:?}");
    }
}
