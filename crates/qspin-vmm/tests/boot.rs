//! Machines by KVM, where there is one that runs: skipped with a line elsewhere.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use qspin_guest::IMAGE;
use qspin_guest::preempt::Victim;
use qspin_vmm::cpuid::Offer;
use qspin_vmm::machine::{Machine, Plan};
use qspin_vmm::warden::{Order, Tally, Warden, sleep_exactly};

/// The longest that a guest may take. A KVM that executes its guest instruction by instruction needs a
/// second for what takes a processor some milliseconds.
const LONGEST: Duration = Duration::from_secs(40);

fn start(line: &str, vcpus: u32) -> Option<(Machine, Receiver<String>)> {
    let line = format!("vcpus={vcpus} {line}");
    let (sender, lines) = channel();
    let plan = Plan { image: IMAGE, line: &line, vcpus, memory: 64 << 20, offer: Offer::default() };
    match Machine::start(&plan, sender) {
        Ok(machine) => Some((machine, lines)),
        Err(why) => {
            println!("skipped: the machine by KVM ({why})");
            None
        }
    }
}

/// The lines up to one that contains `last`, or until the machine ends; `None` if neither comes.
fn until(last: &str, lines: &Receiver<String>) -> Option<Vec<String>> {
    let end = Instant::now() + LONGEST;
    let mut heard = Vec::new();
    loop {
        match lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(line) => {
                let found = line.contains(last);
                heard.push(line);
                if found {
                    return Some(heard);
                }
            }
            Err(RecvTimeoutError::Disconnected) => return Some(heard),
            Err(RecvTimeoutError::Timeout) => {
                println!("skipped: the machine by KVM (it did not get on: {heard:?})");
                return None;
            }
        }
    }
}

#[test]
fn the_guest_boots_and_ends() {
    let Some((mut machine, lines)) = start("mode=probe kick=vector", 1) else { return };
    let Some(heard) = until("\"end\"", &lines) else { return };
    assert_eq!(machine.end(), "", "{heard:?}");
    let ready = heard.iter().find(|line| line.contains("\"ready\"")).unwrap();
    assert!(ready.contains("\"kvm\":true") && ready.contains("\"vcpus\":1"), "{ready}");
    assert!(heard.last().unwrap().contains("\"ok\":true"), "{heard:?}");
}

#[test]
fn the_suite_holds_on_cpus_that_are_our_threads() {
    let line =
        "mode=suite kick=vector ms=20 locks=paravirt,ticket tests=exclusion,halts,storm,hotplug";
    let Some((mut machine, lines)) = start(line, 2) else { return };
    let Some(heard) = until("\"end\"", &lines) else { return };
    assert_eq!(machine.end(), "", "{heard:?}");
    let results = heard.iter().filter(|line| line.contains("\"result\"")).count();
    assert!(results >= 2 + 2 + 1 + 4, "{heard:?}");
    assert!(!heard.iter().any(|line| line.contains("\"ok\":false")), "{heard:?}");
}

/// A number in a line of the guest.
fn number(line: &str, name: &str) -> u64 {
    let at = line.find(&format!("\"{name}\":")).unwrap() + name.len() + 3;
    let digits: String = line[at..].chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

#[test]
fn the_holder_is_stopped_as_often_as_the_plan_says() {
    // With this seed the first acquisition is struck: a slow KVM may do few.
    let line = "mode=bench kick=vector ms=300 locks=paravirt preempt=holder:3:200000000";
    let Some((mut machine, lines)) = start(line, 2) else { return };
    let Some(heard) = until("\"ready\"", &lines) else { return };
    let shared = number(heard.last().unwrap(), "shared_page");
    let (memory, hands) = (machine.memory(), machine.hands());
    let (bell, bells) = channel();
    let tally = Arc::new(Mutex::new(Tally::default()));
    let order =
        Order { victim: Victim::Holder, time: Duration::from_millis(3), honours_hints: false };
    let warden = thread::spawn({
        let tally = tally.clone();
        move || {
            sleep_exactly();
            Warden::new(order, hands).serve(memory.shared(shared).unwrap(), &bells, &tally);
        }
    });
    machine.ring(bell);
    let Some(heard) = until("\"end\"", &lines) else { return };
    assert_eq!(machine.end(), "", "{heard:?}");
    warden.join().unwrap();
    let tally = *tally.lock().unwrap();
    let phase = heard.iter().find(|line| line.contains("\"phase\"")).unwrap();
    let plan = qspin_guest::preempt::Plan { victim: Victim::Holder, seed: 3, chance: 200_000_000 };
    let struck = (0..number(phase, "acquisitions")).filter(|turn| plan.strikes(*turn)).count();
    assert_eq!(number(phase, "struck"), struck as u64);
    println!("{tally:?} {phase}");
    assert!(struck > 0 && tally.asked >= struck as u64, "{tally:?}");
    assert_eq!((tally.asked, tally.missed), (tally.stopped, 0), "{tally:?}");
    assert_eq!(tally.hit, tally.stopped, "the holder waits for it: {tally:?}");
    assert!(tally.least_ns >= 3_000_000, "{tally:?}");
}
