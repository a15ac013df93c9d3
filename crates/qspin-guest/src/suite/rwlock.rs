//! The reader-writer lock: writers and readers as tasks, and readers in interrupts, which pass a
//! writer that waits.

use core::cell::UnsafeCell;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU32, AtomicU64};

use qspin_core::lock::RawSharedLock;
use qspin_core::locks::queued_rw::QueuedRwLock;

use super::{Outcome, Random, SHARED, Suite, count, counted, takes_part};
use crate::hardware::apic::{self, Message};
use crate::hardware::clock::now_ns;
use crate::hardware::cpu::{self, CPUS};
use crate::hardware::entry::{ABOVE, set_handler};
use crate::hardware::instruction::{disable_interrupts, enable_interrupts};
use crate::options::LOCKS;
use crate::platform::{Counted, Guest};
use crate::team;

type Rw = QueuedRwLock<core::sync::atomic::AtomicU32>;

struct Slot(UnsafeCell<Option<Rw>>);

// SAFETY: made anew only while nobody uses it.
unsafe impl Sync for Slot {}

/// The place of the lock in the list.
static NUMBER: AtomicU32 = AtomicU32::new(0);
static LOCK: Slot = Slot(UnsafeCell::new(None));
static END: AtomicU64 = AtomicU64::new(0);
/// Readers that have seen a writer's work half done.
static TORN: AtomicU64 = AtomicU64::new(0);
const PLATFORM: Guest<Counted> = Guest::NEW;

pub(super) fn test(suite: &mut Suite, lock: u32) {
    if LOCKS[lock as usize] != "queued-rw" {
        return;
    }
    NUMBER.store(lock, Relaxed);
    set_handler(ABOVE, read);
    let ms = suite.options.phase_ms;
    suite.check(4, lock, "readers in interrupts", || run(ms));
}

fn rw() -> &'static Rw {
    // SAFETY: made by `run`, before it is used.
    unsafe { (*LOCK.0.get()).as_ref().unwrap_unchecked() }
}

fn run(ms: u32) -> Outcome {
    // SAFETY: nobody uses it.
    unsafe { *LOCK.0.get() = Some(RawSharedLock::<Guest<Counted>>::new()) };
    TORN.store(0, Relaxed);
    END.store(now_ns() + u64::from(ms) * 1_000_000, Relaxed);
    team::run(work);
    let exact = Outcome::exact(0);
    // Somebody has read, and nobody torn words.
    Outcome { ok: exact.ok && TORN.load(Relaxed) == 0 && counted(1) > 0, ..exact }
}

/// As a task, or in an interrupt.
fn read() {
    rw().acquire_shared(&PLATFORM);
    if SHARED[0].get().is_none() {
        TORN.fetch_add(1, Relaxed);
    }
    // SAFETY: acquired above.
    unsafe { rw().release_shared(&PLATFORM) };
    count(1);
}

fn write() {
    // A reader in an interrupt would wait for the writer that it has interrupted.
    disable_interrupts();
    rw().acquire_exclusive(&PLATFORM);
    SHARED[0].add();
    // SAFETY: acquired above.
    unsafe { rw().release_exclusive(&PLATFORM) };
    enable_interrupts();
    count(0);
}

fn work(me: u32) {
    if !takes_part(NUMBER.load(Relaxed), me) {
        return;
    }
    let end = END.load(Relaxed);
    let all = cpu::online().count() as u32;
    let mut random = Random::new(u64::from(me) + 5);
    loop {
        write();
        for _ in 0..random.below(4) {
            read();
        }
        let to = &CPUS[random.below(all) as usize];
        apic::send(to.apic_id.load(Relaxed), Message::Vector(ABOVE));
        if now_ns() > end {
            break;
        }
    }
}
