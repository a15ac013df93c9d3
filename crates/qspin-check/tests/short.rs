//! The subcommands, in a size that suits every build. The full size is the command's.

use std::process::Command;

/// Whether everything is as it must be, or what is wrong with the command.
fn command(line: &str) -> Result<bool, String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_qspin-check"));
    let output = command.args(line.split_whitespace()).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    match output.status.code() {
        Some(0) => Ok(true),
        Some(1) => Ok(false),
        Some(2) => Err(message),
        _ => panic!("{line}: {}: {message}", output.status),
    }
}

#[test]
fn the_locks_pass_under_loom() {
    assert_eq!(command("loom --preemptions 1"), Ok(true));
}

#[test]
fn the_locks_pass_under_shuttle() {
    assert_eq!(command("shuttle --executions 20"), Ok(true));
}

#[test]
fn planted_bugs_are_caught() {
    assert_eq!(command("planted"), Ok(true));
}

#[test]
fn a_planted_bug_fails_the_commands_that_locks_pass() {
    assert_eq!(command("loom --lock planted-lost-hand-over"), Ok(false));
    assert_eq!(command("shuttle --lock planted-test-then-set --executions 20"), Ok(false));
    assert_eq!(command("loom --lock planted-early-kick --preemptions 2"), Ok(false));
    assert_eq!(command("shuttle --lock planted-look-before-hand-over --executions 100"), Ok(false));
}

#[test]
fn a_failing_seed_fails_again_and_a_passing_one_passes() {
    let replay = |seed: u32| {
        let lock = "--lock planted-lost-hand-over --scenario four --strategy random";
        command(&format!("replay {lock} --seed {seed}"))
    };
    // Which seeds fail changes with every step of the lock: find one of each kind, then try again.
    let verdicts: Vec<_> = (0..100).map(replay).collect();
    for verdict in [Ok(false), Ok(true)] {
        let seed = verdicts.iter().position(|found| *found == verdict);
        let seed = seed.unwrap_or_else(|| panic!("no seed of 100 with {verdict:?}"));
        assert_eq!(replay(seed as u32), verdict, "seed {seed}");
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (line, hint) in [
        ("", "loom, shuttle"),
        ("lom", "loom, shuttle"),
        ("loom --lock nosuch", "native"),
        ("loom --seconds many", "number"),
        ("loom --seconds", "value"),
        ("loom seconds", "option"),
        ("shuttle --colour red", "--colour"),
        ("replay --lock native", "--scenario"),
        ("replay --lock native --scenario x --strategy random --seed 1", "four"),
        ("replay --lock native --scenario four --strategy x --seed 1", "random"),
        ("emit --lock nosuch", "native"),
    ] {
        let message = command(line).expect_err(line);
        assert!(message.contains(hint), "{line}: {message}");
    }
}
