//! What must end: a time limit, and what is said when it has passed.

use core::fmt::{self, Display};
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU32, AtomicU64};

use crate::hardware::cpu::{self, HOLDS};
use crate::hardware::{clock, exit};
use crate::line;
use crate::options::LOCKS;

/// When; 0 for never.
static DEADLINE: AtomicU64 = AtomicU64::new(0);
/// What is running: a test's place in the list, plus 1; 0 for a measurement.
static TEST: AtomicU32 = AtomicU32::new(0);
static SAID: AtomicU32 = AtomicU32::new(0);

/// From now on everything ends within `ms`, or hangs. `test`: its place in the list, plus 1.
pub fn limit(ms: u64, test: u32) {
    TEST.store(test, Relaxed);
    DEADLINE.store(clock::now_ns() + ms * 1_000_000, Relaxed);
}

/// Nothing is waited for any more.
pub fn end() {
    DEADLINE.store(0, Relaxed);
}

/// Looks whether the time has passed, and ends the guest if so. Called by the first CPU's timer, and
/// by every NMI: the button of the machine, for a guest whose interrupts are off.
pub fn look() {
    let deadline = DEADLINE.load(Relaxed);
    if deadline != 0 && clock::now_ns() > deadline && SAID.swap(1, Relaxed) == 0 {
        line!("");
        line!("{}", Hang);
        exit::exit(exit::HANG);
    }
}

/// Which CPU waits for which lock.
struct Hang;

impl Display for Hang {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let test = TEST.load(Relaxed) as usize;
        let test = crate::options::TESTS.get(test.wrapping_sub(1)).unwrap_or(&"bench");
        write!(f, "{{\"guest\":\"hang\",\"test\":\"{test}\",\"waits\":[")?;
        let mut separator = "";
        for cpu in cpu::online() {
            for (level, state) in cpu.waits.iter().enumerate() {
                let state = state.load(Relaxed);
                let lock = (state & (HOLDS - 1)) as usize;
                if let Some(lock) = LOCKS.get(lock.wrapping_sub(1)) {
                    let level = ["task", "interrupt", "nested interrupt", "NMI"][level];
                    let holds = state & HOLDS != 0;
                    write!(
                        f,
                        "{separator}{{\"cpu\":{},\"level\":\"{level}\",\"lock\":\"{lock}\",\
                         \"holds\":{holds}}}",
                        cpu.number()
                    )?;
                    separator = ",";
                }
            }
        }
        write!(f, "]}}")
    }
}
