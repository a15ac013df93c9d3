//! The locks that C programs get, in one list: functions, types, initialisers and assertions come of it.

/// What a lock offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It excludes.
    Excludes,
    /// It admits many readers.
    AdmitsReaders,
}

/// A lock.
#[derive(Debug, Clone, Copy)]
pub struct Lock {
    /// The module of the crate `qspin`, and the middle of the names in C: `qspin_NAME_lock`.
    pub name: &'static str,
    /// What it is, for the header.
    pub about: &'static str,
    /// Its size, in words of 32 bits.
    pub words: usize,
    /// What it offers.
    pub kind: Kind,
}

const fn lock(name: &'static str, about: &'static str) -> Lock {
    Lock { name, about, words: 1, kind: Kind::Excludes }
}

/// Every lock, the defaults first. What they can beyond this, and their condition variable, is in `defaults.rs`.
pub const LOCKS: &[Lock] = &[
    lock(
        "mutex",
        "The default mutex: released by a plain store; waiters look, yield, then sleep, and nobody is \
         forgotten. For loads that nobody knows beforehand.",
    ),
    Lock {
        words: 2,
        kind: Kind::AdmitsReaders,
        ..lock(
            "rwlock",
            "The default reader-writer lock: a writer closes it to further readers, so neither starves; \
             waiters look, yield, then sleep.",
        )
    },
    lock(
        "native",
        "The queued spinlock: first come, first served; each waiter spins on a cache line of its own. \
         For programs whose threads never outnumber their CPUs.",
    ),
    lock(
        "paravirt",
        "The paravirt queued spinlock with culling: one or two waiters stay awake, the others halt. \
         For programs whose threads may outnumber their CPUs.",
    ),
    lock(
        "paravirt_stealing",
        "The paravirt queued spinlock that newcomers may steal past a sleeping head.",
    ),
    lock("paravirt_queued", "The paravirt queued spinlock, strictly first come, first served."),
    lock(
        "paravirt_ticket",
        "The paravirt ticket lock: strictly first come, first served; waiters spin, then halt.",
    ),
    lock(
        "cna",
        "The NUMA-aware queued spinlock: waiters near the holder first, within bounds. For machines \
         whose cores are far apart, while every thread runs.",
    ),
    lock(
        "cna_paravirt",
        "The NUMA-aware queued spinlock whose waiters halt, one or two of them awake.",
    ),
    lock("ticket", "The ticket lock: strictly first come, first served; waiters spin on the lock."),
    Lock {
        words: 2,
        ..lock(
            "mcs",
            "The MCS lock: strictly first come, first served; each waiter spins on a cache line of its own.",
        )
    },
    lock("backoff", "Test-and-set with bounded exponential backoff: the cheapest, and unfair."),
    lock("tas", "Plain test-and-set: unfair."),
    lock("yielding", "Test-and-set that yields the CPU after a bounded spin: unfair."),
    lock(
        "simple",
        "Test-and-set with its owner in the word, to whom waiters yield: unfair. The thread that locked \
         must be the one that unlocks.",
    ),
    lock(
        "select",
        "The lock that is chosen once for the process, when it starts: see qspin_select_decide().",
    ),
    Lock {
        words: 2,
        kind: Kind::AdmitsReaders,
        ..lock(
            "queued_rw",
            "The queued reader-writer lock: readers and writers alike wait their turn.",
        )
    },
];

/// `text`, in lines of documentation.
fn documentation(text: &str) -> String {
    let mut lines = String::new();
    let mut width = 0;
    for word in text.split_whitespace() {
        if width > 0 && width + word.len() > 96 {
            lines.push_str("\n///");
            width = 0;
        }
        if !lines.is_empty() {
            lines.push(' ');
        }
        lines.push_str(word);
        width += word.len() + 1;
    }
    lines
}

/// `text` about `lock`.
pub fn fill(text: &str, lock: &Lock) -> String {
    text.replace("{about}", &documentation(lock.about))
        .replace("{name}", lock.name)
        .replace("{NAME}", &lock.name.to_uppercase())
        .replace("{words}", &lock.words.to_string())
        .replace("{size}", &(4 * lock.words).to_string())
}

/// The Rust text of every lock's functions, from the texts for a lock that excludes and for one that
/// admits readers.
#[allow(dead_code, reason = "each of the three that read this list needs a part of it")]
pub fn functions(excludes: &str, admits_readers: &str) -> String {
    let of = |lock: &Lock| match lock.kind {
        Kind::Excludes => fill(excludes, lock),
        Kind::AdmitsReaders => fill(admits_readers, lock),
    };
    LOCKS.iter().map(of).collect()
}
