//! Where a thread is, and how far from there: machines that people have, threads that move, and what
//! becomes of a description that is wrong.

mod pinning;
mod trees;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::symlink;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use lock_api::RawMutex;
use qspin::platform::topology::{self, Topology};

use trees::Tree;

fn read(tree: &Tree) -> Topology {
    Topology::read(tree.path()).unwrap()
}

#[test]
fn core_complexes_are_near_then_sockets() {
    let machine = read(&trees::epyc());
    assert_eq!((machine.nodes_among(0..64), machine.caches_among(0..64)), (2, 16));
    assert_eq!(machine.distances_among(0..64), [0, 1, 2]);
    let from_0 = |cpu| machine.distance_of_cpus(0, cpu);
    // Its own second hardware thread, its neighbour's; the next complex; the other socket.
    assert_eq!([1, 32, 33, 2, 15, 34, 47, 16, 63].map(from_0), [0, 0, 0, 1, 1, 1, 1, 2, 2]);
}

#[test]
fn sockets_in_a_row_are_ever_farther() {
    let machine = read(&trees::four_sockets());
    let from = |from| [0, 4, 8, 12].map(|to| machine.distance_of_cpus(from, to));
    assert_eq!(from(3), [0, 2, 3, 4]);
    assert_eq!(from(7), [2, 0, 2, 3]);
    assert_eq!(from(15), [4, 3, 2, 0]);
}

#[test]
fn clusters_of_one_socket_are_nearer_than_another_socket() {
    let machine = read(&trees::clusters());
    let from_0 = |cpu| machine.distance_of_cpus(0, cpu);
    assert_eq!([3, 4, 7, 8, 15].map(from_0), [0, 1, 1, 3, 3]);
    assert_eq!((machine.nodes_among(0..16), machine.caches_among(0..16)), (4, 2));
    // One socket alone: two nodes, one level of distance, so it is CNA exactly.
    let one = Tree::new(4, &["0-1", "2-3"]).slit(&[&[10, 12], &[12, 10]]).cache(0, 3, "0-3");
    assert_eq!(read(&one).distances_among(0..4), [0, 1]);
}

#[test]
fn a_way_there_may_be_shorter_than_the_way_back() {
    let machine = read(&trees::asymmetric());
    let of = |from, to| machine.distance_of_cpus(from, to);
    assert_eq!([of(0, 2), of(0, 4), of(2, 0), of(2, 4), of(4, 0)], [2, 3, 4, 2, 2]);
}

#[test]
fn cores_of_two_kinds_are_near_if_they_share_a_cache() {
    let machine = read(&trees::hybrid());
    let from_0 = |cpu| machine.distance_of_cpus(0, cpu);
    assert_eq!([3, 4, 7, 8, 9].map(from_0), [0, 0, 0, 1, 1]);
    assert_eq!((machine.distance_of_cpus(8, 9), machine.caches_among(0..10)), (0, 2));
}

#[test]
fn tables_of_distances_that_make_no_sense_still_give_an_order() {
    // Nearer than itself, unreachable, not as far from itself as the others from themselves.
    let table: [&[u32]; 3] = [&[10, 5, 255], &[0, 20, 10], &[255, 10, 10]];
    let machine = read(&Tree::new(3, &["0", "1", "2"]).slit(&table));
    let from = |from| [0, 1, 2].map(|to| machine.distance_of_cpus(from, to));
    assert_eq!([from(0), from(1), from(2)], [[0, 3, 5], [2, 0, 4], [5, 4, 0]]);
}

#[test]
fn offline_cpus_holes_and_nodes_of_memory_alone_are_no_places() {
    let machine = Tree::new(1, &["0-1", "", "4-7"])
        .file("cpu/online", "0,4-5")
        .file("node/node9/cpulist", "8")
        .slit(&[&[10, 14, 20, 20], &[14, 10, 20, 20], &[20, 20, 10, 30]])
        .file("node/node9/distance", "20 20 30 10");
    let machine = read(&machine);
    assert_eq!(machine.cpus().collect::<Vec<_>>(), [0, 4, 5]);
    assert_eq!((machine.to_string(), machine.node_of(5)), ("2 nodes".to_owned(), 2));
    // Offline, in a hole, of a node that is offline, past the end: as a CPU of the lowest node.
    for cpu in [1, 2, 6, 8, 1 << 20, usize::MAX] {
        assert_eq!((machine.node_of(cpu), machine.distance_of_cpus(0, cpu)), (0, 0), "{cpu}");
    }
}

/// Locks while its affinity changes, in a topology that changes as well.
fn counts_on_moving_threads<R: RawMutex + Send + Sync>(
    cpus: &[usize],
    topologies: &[&'static Topology],
) {
    let lock = lock_api::Mutex::<R, _>::new((0u32, 0u32));
    let (threads, rounds) = (4, 100);
    let end = AtomicBool::new(false);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|first| {
                let lock = &lock;
                scope.spawn(move || {
                    for round in 0..rounds {
                        pinning::pin(cpus[(first + round) % cpus.len()]);
                        let mut halves = lock.lock();
                        assert_eq!(halves.0, halves.1);
                        halves.0 += 1;
                        thread::yield_now();
                        halves.1 += 1;
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            for &topology in topologies.iter().cycle() {
                topology::set(topology);
                thread::yield_now();
                if end.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        end.store(true, Ordering::Relaxed);
    });
    assert_eq!(lock.into_inner().0 as usize, threads * rounds);
}

/// The only test of this process that puts topologies in force.
#[test]
#[cfg_attr(
    feature = "portable",
    ignore = "the portable platform does not know where a thread runs"
)]
fn a_thread_is_where_it_runs_at_each_moment() {
    let cpus = pinning::cpus();
    let &[one, other, ..] = cpus.as_slice() else {
        println!("skipped: there is one CPU");
        return;
    };
    let last = one.max(other);
    let leak = |tree: &Tree| -> &'static Topology { Box::leak(Box::new(read(tree))) };
    let tree = Tree::new(last + 1, &[&one.to_string(), &other.to_string()]);
    let two = leak(&tree);
    topology::set(two);
    for _ in 0..20 {
        pinning::pin(one);
        assert_eq!(topology::place(None), 0);
        // A cpuset that shrinks moves the thread in the same way.
        pinning::pin(other);
        assert_eq!(topology::place(None), 1);
    }
    // A CPU that came online later, or was put into the cpuset: it is in no list.
    let (known, third) = (one.to_string(), (last + 1).to_string());
    let unlisted = leak(&Tree::new(last + 2, &[&known, &third]));
    topology::set(unlisted);
    assert_eq!(topology::place(None), 0, "as a CPU of the lowest node");
    counts_on_moving_threads::<qspin::cna::RawMutex>(&[one, other], &[two, unlisted]);
    counts_on_moving_threads::<qspin::cna_paravirt::RawMutex>(&[one, other], &[two, unlisted]);
}

/// Runs `part` of this program with `QSPIN_TOPOLOGY`.
fn run(part: &str, described: &OsStr) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "--nocapture", part]).env("QSPIN_TOPOLOGY", described);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{described:?}: {output:?}");
    output
}

/// A program that uses the NUMA-aware locks, and no other part of the library.
#[test]
#[ignore = "a part of other tests"]
fn part_program() {
    fn counts<R: RawMutex + Send + Sync>() {
        let lock = lock_api::Mutex::<R, _>::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..100).for_each(|_| *lock.lock() += 1));
            }
        });
        assert_eq!(lock.into_inner(), 400);
    }
    counts::<qspin::cna::RawMutex>();
    counts::<qspin::cna_paravirt::RawMutex>();
    println!("said: {} {}", topology::in_force(), topology::in_force().is_fake());
}

#[test]
fn a_description_that_is_wrong_harms_no_program() {
    let tree = Tree::new(4, &["0-1", "2-3"]);
    let nonsense = Tree::new(4, &["0-1", "1-3"]);
    let level = Tree::new(4, &["0-3"]).file("cpu/cpu0/cache/index0/level", "-1");
    let (file, other) = (tree.path().join("cpu/online"), tempfile::tempdir().unwrap());
    // A reader that opened this one would wait for a writer.
    let pipe = Tree::new(4, &["0-3"]).file("node/node1/distance", "");
    let name = pipe.path().join("node/node1/cpulist");
    assert!(Command::new("mkfifo").arg(&name).status().unwrap().success());
    let endless = Tree::new(4, &["0-3"]);
    std::fs::remove_file(endless.path().join("cpu/online")).unwrap();
    symlink("/dev/zero", endless.path().join("cpu/online")).unwrap();
    let long = OsString::from("9".repeat(10_000));
    let bytes = OsString::from_vec(b"4x\xff18x2".to_vec());
    let wrong: [&OsStr; 14] = [
        "4x".as_ref(),
        "0x1x1".as_ref(),
        "2x-1x1".as_ref(),
        "1025x1x1".as_ref(),
        " ".as_ref(),
        "/nonexistent".as_ref(),
        file.as_os_str(),
        other.path().as_os_str(),
        nonsense.path().as_os_str(),
        level.path().as_os_str(),
        pipe.path().as_os_str(),
        endless.path().as_os_str(),
        &long,
        &bytes,
    ];
    for described in wrong {
        let output = run("part_program", described);
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("said: 1 node false"), "{described:?}: {said}");
        assert!(output.stderr.is_empty(), "no thread has locked a chosen lock: {output:?}");
    }
    for (right, nodes) in [("3x2x1".as_ref(), 3), (tree.path().as_os_str(), 2)] {
        let said = String::from_utf8(run("part_program", right).stdout).unwrap();
        assert!(said.contains(&format!("said: {nodes} nodes true")), "{said}");
    }
}
