//! The locks of a workload and the lines of its data, in simulated memory.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;

use qspin_core::lock::RawLock;
use qspin_core::platform::{AtomicWord, Platform};

use crate::machine::{Memory, Padded, WORDS};
use crate::platform::{SimPlatform, SimWord};
use crate::shared::Sharing;

type Data = Padded<[SimWord; WORDS]>;

/// Words that lie in a lock's own line, behind the lock.
const BESIDE: usize = 8;

#[derive(Debug)]
#[repr(C)]
struct Place<L> {
    lock: L,
    beside: [SimWord; BESIDE],
}

/// Where the CPUs of a workload meet.
pub struct Station<L> {
    locks: Box<[Padded<Place<L>>]>,
    data: Box<[Data]>,
    /// Pieces of work that no CPU has taken yet.
    pieces: Cell<u64>,
    /// The sleeping CPUs, in the order in which they came; under the first lock.
    pub(super) sleepers: RefCell<VecDeque<u32>>,
    cpus: u32,
    /// The readers' side of the locks, if they have one.
    sharing: Option<Sharing<L>>,
}

impl<L> Station<L> {
    /// Words that lie in a lock's own line, behind the lock.
    pub const BESIDE: u32 = BESIDE as u32;
}

impl<L: RawLock<SimPlatform>> Station<L> {
    /// A station of this many locks, each in a line of its own, with this many lines of data.
    pub(crate) fn new(locks: u32, lines: usize, pieces: u64, cpus: u32) -> Self {
        let words = || std::array::from_fn(|_| SimWord::new(0));
        let place = || Place { lock: L::new(), beside: std::array::from_fn(|_| SimWord::new(0)) };
        Self {
            locks: (0..locks).map(|_| Padded(place())).collect(),
            data: (0..lines).map(|_| Padded(words())).collect(),
            pieces: Cell::new(pieces),
            sleepers: RefCell::default(),
            cpus,
            sharing: None,
        }
    }

    /// The same, whose locks have this readers' side.
    pub(crate) fn shared_by(self, sharing: Option<Sharing<L>>) -> Self {
        Self { sharing, ..self }
    }

    /// Puts it into simulated memory: locks first, then data.
    pub(crate) fn settle(&self, memory: &mut Memory) {
        memory.add(&self.locks);
        memory.add(&self.data);
    }

    /// CPUs that meet here.
    #[must_use]
    pub fn cpus(&self) -> u32 {
        self.cpus
    }

    /// Runs `inside` as a critical section of lock number `lock`.
    pub fn section(&self, p: &SimPlatform, lock: u32, inside: impl FnOnce()) {
        let it = &self.locks[lock as usize].0.lock;
        p.wants(lock);
        it.acquire(p);
        p.entered(lock);
        p.holder_enter();
        inside();
        p.leaves(lock);
        // SAFETY: acquired above by this very context, which has not released it.
        unsafe { it.release(p) };
        p.holder_exit();
    }

    /// Runs `inside` as a reader of lock number `lock`; as a critical section, if the lock has no readers' side.
    pub fn reading(&self, p: &SimPlatform, lock: u32, inside: impl FnOnce()) {
        let Some(sharing) = &self.sharing else { return self.section(p, lock, inside) };
        let it = &self.locks[lock as usize].0.lock;
        p.wants(lock);
        (sharing.acquire)(it, p);
        p.entered_shared(lock);
        p.holder_enter();
        inside();
        p.leaves_shared(lock);
        // SAFETY: acquired above for reading by this very context, which has not released it.
        unsafe { (sharing.release)(it, p) };
        p.holder_exit();
    }

    /// A word of the data.
    #[must_use]
    pub fn word(&self, line: usize, word: usize) -> &SimWord {
        &self.data[line].0[word]
    }

    /// A word of the line in which the lock lies, behind it.
    #[must_use]
    pub fn beside(&self, lock: u32, word: usize) -> &SimWord {
        &self.locks[lock as usize].0.beside[word]
    }

    /// Adds one to a word that a lock protects: a load, and a store.
    pub fn count(&self, word: &SimWord) {
        word.store(word.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// Takes one of the pieces of work that the CPUs share. Costs nothing: a scheduler's time to hand it out is
    /// part of the work.
    #[must_use]
    pub fn take_piece(&self) -> bool {
        let left = self.pieces.get();
        self.pieces.set(left.saturating_sub(1));
        left > 0
    }
}
