//! What is counted is shown, once or again and again.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::thread;

use qspin::events::{Counted, CounterGroup, Event, Events};
use serde_json::Value;

use crate::{Forked, group, lines, publish, qspin, stat, this};

#[test]
fn every_counter_of_every_group_is_shown() {
    qspin::counter_group!(Table = "table");
    publish::<Table>();
    qspin::counter_group!(Cache = "cache");
    publish::<Cache>();
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
    publish::<Watched>();
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
    publish::<Times>();
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
    publish::<Piped>();
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
fn a_real_lock_is_seen_to_wait() {
    static LOCK: qspin::native::CountedMutex<u64> = qspin::native::CountedMutex::new(0);
    publish::<Counted>();
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

#[test]
fn the_book_explains_every_counter() {
    let book = include_str!("../../../../docs/statistics.md");
    for event in Event::ALL {
        let begin = match event.alias() {
            Some(alias) => format!("\n|`{}`|`{alias}`|", event.name()),
            None => format!("\n|`{}`|", event.name()),
        };
        assert!(book.contains(&begin), "{}", event.name());
    }
}
