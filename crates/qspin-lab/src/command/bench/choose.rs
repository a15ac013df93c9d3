//! What was asked for, checked and completed.

use std::time::Duration;

use qspin_table::number::list;

use crate::bench::random;
use crate::compare::FEWEST_ROUNDS;
use crate::contender::catalog::{self, Lock, Origin, PEERS_C};
use crate::failure::Failure;
use crate::quantity::Ratio;
use crate::this_machine::QuotaGroup;

use super::{Args, Peers, QUICK_BUDGET, Workload, quick};

/// Refuses options that do not fit together.
pub(super) fn check(args: &Args) -> Result<(), Failure> {
    if args.quick && args.workload == Workload::KernelLockBench {
        return Err(Failure::usage(
            "the grid of kernel-lock-bench takes more than a quick minute: leave out --quick, and \
             shorten it by --threads 1,2 or --rounds 6",
        ));
    }
    without_effect(args)?;
    if let Some(cpus) = args.quota
        && let Err(why) = QuotaGroup::make(cpus)
    {
        return Err(Failure::usage(format!("--quota cannot be set here: {why}; leave it out")));
    }
    match (args.workload, &args.ratio) {
        (Workload::Lengths | Workload::Locktorture | Workload::Torture, Some(_)) => {
            Err(Failure::usage(
                "--ratio says nothing to this workload: add --workload kernel-lock-bench for two locks \
             (backoff/tas), or --workload rw for readers:writers (9:1)",
            ))
        }
        (Workload::KernelLockBench, Some(Ratio::Readers(..))) => {
            Err(Failure::usage("kernel-lock-bench compares two locks: write --ratio backoff/tas"))
        }
        (Workload::Rw, Some(Ratio::Locks(..))) => {
            Err(Failure::usage("rw mixes readers and writers: write --ratio 9:1"))
        }
        (Workload::KernelLockBench, Some(Ratio::Locks(..))) if !args.locks.is_empty() => {
            Err(Failure::usage("--ratio names the two locks already: leave out --locks"))
        }
        _ => Ok(()),
    }
}

/// Refuses options that would change nothing: a user that gives one believes that it does.
fn without_effect(args: &Args) -> Result<(), Failure> {
    let (workload, decides) = match args.workload {
        Workload::Lengths => return Ok(()),
        Workload::Locktorture => ("locktorture", true),
        Workload::KernelLockBench => ("kernel-lock-bench", true),
        Workload::Rw => ("rw", false),
        Workload::Torture => ("torture", true),
    };
    let measures = args.workload != Workload::Torture;
    let varied = args.varied().map(|(option, given)| (option, decides && given));
    let beside = args.beside().map(|(option, given)| (option, !measures && given));
    let given = [
        ("--critical", decides && args.critical.is_some()),
        ("--outside", decides && args.outside.is_some()),
        ("--lines", args.lines.is_some()),
        // It gives a verdict on each lock, and no rows.
        ("--rounds", !measures && args.rounds.is_some()),
        ("--stats", !measures && args.stats),
        ("--out", !measures && args.out.is_some()),
        ("--report", !measures && args.report.is_some()),
    ];
    let mut given = given.into_iter().chain(varied).chain(beside);
    match given.find(|(_, without_effect)| *without_effect) {
        Some((option, _)) => Err(Failure::usage(format!(
            "{option} says nothing to {workload}: leave it out, or take --workload lengths"
        ))),
        None => Ok(()),
    }
}

/// The contenders.
pub(super) fn locks(args: &Args) -> Result<Vec<Lock>, Failure> {
    if args.peers == Peers::C {
        require_c_peers()?;
    }
    let rw = args.of_rw();
    let fitting: Vec<Lock> =
        catalog::locks().into_iter().filter(|lock| lock.is_rw() == rw).collect();
    let wanted: Vec<String> = match &args.ratio {
        Some(Ratio::Locks(one, other)) => vec![one.clone(), other.clone()],
        _ if args.locks.is_empty() && args.random.is_some() => vec![ORACLE.to_owned()],
        _ if args.locks.is_empty() && args.quick && !rw && args.peers == Peers::Rust => {
            quick::LOCKS.map(str::to_owned).to_vec()
        }
        _ if args.locks.is_empty() => vec!["all".to_owned()],
        _ => args.locks.clone(),
    };
    let oracle = random::oracle(rw);
    let mut chosen: Vec<Lock> = Vec::new();
    for name in &wanted {
        let name = name.trim();
        let group: Vec<Lock> = match name {
            "all" => fitting.iter().filter(|lock| in_default(lock, args.peers)).copied().collect(),
            ORACLE => oracle
                .iter()
                .filter_map(|name| fitting.iter().find(|lock| lock.name == *name).copied())
                .collect(),
            "ours" => fitting.iter().filter(|lock| lock.origin == Origin::Ours).copied().collect(),
            "peers" => fitting
                .iter()
                .filter(|lock| matches!(lock.origin, Origin::Peer | Origin::PeerC))
                .filter(|lock| in_default(lock, args.peers))
                .copied()
                .collect(),
            _ => match fitting.iter().find(|lock| lock.is_called(name)) {
                Some(lock) => vec![*lock],
                None => return Err(unknown(args, name, &fitting)),
            },
        };
        for lock in group {
            if !chosen.iter().any(|other| other.name == lock.name) {
                chosen.push(lock);
            }
        }
    }
    if chosen.is_empty() {
        return Err(Failure::usage(
            "these --locks and --peers leave no lock to measure: add --peers rust, or name locks",
        ));
    }
    if let Some(lock) = chosen.iter().find(|lock| lock.is_for_one_thread())
        && matches!(args.ratio, Some(Ratio::Locks(..)))
    {
        return Err(Failure::usage(format!(
            "{} is for one thread only and fills no grid: compare two locks, as backoff/tas",
            lock.name
        )));
    }
    Ok(chosen)
}

/// The group of locks that a regret is to.
const ORACLE: &str = "oracle";

fn in_default(lock: &Lock, peers: Peers) -> bool {
    match lock.origin {
        Origin::Ours | Origin::Baseline => true,
        Origin::Peer => peers != Peers::None,
        Origin::PeerC => peers == Peers::C,
    }
}

fn unknown(args: &Args, name: &str, fitting: &[Lock]) -> Failure {
    let names: Vec<&str> = fitting.iter().map(|lock| lock.name).collect();
    let names = names.join(", ");
    if PEERS_C.contains(&name) {
        return match require_c_peers() {
            Err(failure) => failure,
            Ok(()) => Failure::usage(format!(
                "`{name}` was not found when this program was built: install {} and build again",
                package(name)
            )),
        };
    }
    if catalog::locks().iter().any(|lock| lock.is_called(name)) {
        let other =
            if args.matrix.is_some() { "take --matrix rwlock" } else { "add --workload rw" };
        return Failure::usage(if args.of_rw() {
            format!("`{name}` is no reader-writer lock: choose from {names}")
        } else {
            format!("`{name}` is a reader-writer lock: {other}, or choose from {names}")
        });
    }
    Failure::usage(format!(
        "no lock is called `{name}`: choose from {names}, or ours, peers, all, oracle"
    ))
}

/// The Debian package that a C or C++ peer comes from.
fn package(peer: &str) -> &'static str {
    match peer {
        "tbb_spin" | "tbb_mutex" => "libtbb-dev",
        "absl" => "libabsl-dev",
        "nsync" => "libnsync-dev",
        _ => "libck-dev",
    }
}

/// The C and C++ peers are in this build, those at least that were found.
fn require_c_peers() -> Result<(), Failure> {
    if cfg!(feature = "peers-c") {
        return Ok(());
    }
    Err(Failure::usage(
        "this build has no C peers: install libtbb-dev libabsl-dev libnsync-dev libck-dev and \
         run `cargo run --release --features peers-c -- bench --peers c`",
    ))
}

/// The C and C++ peers that were asked for and are not in this build, a sentence each.
pub(super) fn left_out(args: &Args) -> Vec<String> {
    if args.peers != Peers::C || args.workload == Workload::Rw {
        return Vec::new();
    }
    let found = catalog::locks();
    PEERS_C
        .iter()
        .filter(|peer| !found.iter().any(|lock| lock.name == **peer))
        .map(|peer| {
            let package = package(peer);
            format!("{peer} is left out: {package} was not found when this program was built.")
        })
        .collect()
}

/// The numbers of threads, in order; 1 is among them, but a series has it on demand only.
pub(super) fn threads(args: &Args, cpus: usize) -> Vec<usize> {
    let mut threads = if args.threads.is_empty() {
        let mut threads = vec![2, cpus, 2 * cpus];
        // Beyond that a queue of spinning threads takes seconds for one turn.
        if cpus <= 8 {
            threads.push(4 * cpus);
        } else {
            threads.push(cpus / 2);
        }
        threads
    } else {
        args.threads.clone()
    };
    if args.series().is_none() {
        threads.push(1);
    }
    threads.sort_unstable();
    threads.dedup();
    threads
}

/// The numbers of threads on a machine that made only `made`, and the largest that is measured:
/// a little less, since a thread that works needs more than one that was only made.
pub(super) fn fit(threads: &[usize], made: usize) -> (Vec<usize>, usize) {
    let safe = (made * 9 / 10).max(1);
    let mut fitting: Vec<usize> = threads.iter().map(|&threads| threads.min(safe)).collect();
    fitting.dedup();
    (fitting, safe)
}

/// Rounds and the length of a phase, which no hurry shortens: rounds are left out instead.
pub(super) fn length(args: &Args) -> (usize, Duration) {
    let (rounds, seconds) = match args.workload {
        Workload::Lengths | Workload::Rw | Workload::Torture => (9, 0.1),
        Workload::Locktorture => (5, 0.5),
        Workload::KernelLockBench => (9, 0.02),
    };
    let rounds = args.rounds.map_or(rounds, |rounds| rounds as usize);
    (rounds, args.seconds.unwrap_or(Duration::from_secs_f64(seconds)))
}

/// Of numbers of threads, as many as `--quick` has time for with six rounds of so many locks, and a
/// sentence on those that are left out: the smallest but one thread, since a crowd shows most.
pub(super) fn within_budget(
    args: &Args,
    mut threads: Vec<usize>,
    locks: usize,
) -> (Vec<usize>, Option<String>) {
    if !args.quick {
        return (threads, None);
    }
    // A phase of throughput and one of waits.
    let number = 2 * length(args).1 * (FEWEST_ROUNDS * locks) as u32;
    let fitting = (QUICK_BUDGET.as_secs_f64() / number.as_secs_f64()) as usize;
    let mut left_out = Vec::new();
    while threads.len() > fitting.max(1) {
        let smallest = usize::from(threads[0] == 1 && threads.len() > 2);
        left_out.push(threads.remove(smallest).to_string());
    }
    let why = (!left_out.is_empty())
        .then(|| format!("Left out to stay within a minute: {} threads.", list(&left_out, "and")));
    (threads, why)
}

/// What a phase gives at least to each thread where threads outnumber CPUs. The scheduler lets a
/// thread run for some 3 ms, so a shorter phase would see threads without a turn and call that
/// unfair. A length that was given is taken as it is.
pub(super) fn turn(args: &Args) -> Duration {
    if args.seconds.is_some() { Duration::ZERO } else { Duration::from_millis(12) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_machine_cannot_make_is_measured_with_what_it_can() {
        assert_eq!(fit(&[1, 2, 100, 4000, 4096], 220), (vec![1, 2, 100, 198], 198));
        assert_eq!(fit(&[1, 2], 0), (vec![1], 1));
    }
}
