//! Every lock by its number: what the suite runs, and what is measured.
//!
//! # Invariants
//! * **L1** A place holds a lock of the kind that its last [`Lock::make`] has put there, and is made
//!   anew only while nobody uses it.

use core::cell::UnsafeCell;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

use qspin_core::events::NoEvents;
use qspin_core::lock::{RawLock, RawSharedLock};
use qspin_core::locks::backoff::{BackoffLock, TasLock};
use qspin_core::locks::mcs::McsLock;
use qspin_core::locks::paravirt_ticket::ParavirtTicketLock;
use qspin_core::locks::queued::{
    CnaLock, CnaParavirtLock, NativeLock, ParavirtLock, ParavirtQueuedLock, ParavirtStealingLock,
};
use qspin_core::locks::queued_rw::QueuedRwLock;
use qspin_core::locks::simple::SimpleLock;
use qspin_core::locks::ticket::TicketLock;
use qspin_core::locks::yielding::YieldLock;
use qspin_core::platform::Platform;

use crate::bench;
use crate::hardware::cpu::{self, HOLDS};
use crate::options::LOCKS;
use crate::platform::{Counted, Guest};

/// A lock that may be in any place.
const BYTES: usize = 64;

/// Memory for a lock, on a line of its own.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Place(UnsafeCell<[u8; BYTES]>);

// SAFETY: L1: between two makings it is a lock, which is made to be shared.
unsafe impl Sync for Place {}

impl Place {
    /// A place without a lock.
    #[allow(clippy::declare_interior_mutable_const)]
    pub const EMPTY: Self = Self(UnsafeCell::new([0; BYTES]));
}

/// How a kind of lock is used without its type.
struct Kind {
    /// Its waiters halt.
    halts: bool,
    /// Its waiters queue with nodes.
    queues: bool,
    make: unsafe fn(*mut u8),
    acquire: unsafe fn(*const u8),
    try_acquire: unsafe fn(*const u8) -> bool,
    release: unsafe fn(*const u8),
    measure: [unsafe fn(*const u8, u32); 2],
}

/// The suite counts events.
const PLATFORM: Guest<Counted> = Guest::NEW;

const fn kind<L>(halts: bool, queues: bool) -> Kind
where
    L: RawLock<Guest<Counted>> + RawLock<Guest<NoEvents>>,
{
    assert!(size_of::<L>() <= BYTES);
    // SAFETY: in all of them: L1.
    unsafe {
        Kind {
            halts,
            queues,
            make: |place| place.cast::<L>().write(<L as RawLock<Guest<Counted>>>::new()),
            acquire: |place| (*place.cast::<L>()).acquire(&PLATFORM),
            try_acquire: |place| (*place.cast::<L>()).try_acquire(&PLATFORM),
            release: |place| (*place.cast::<L>()).release(&PLATFORM),
            measure: [
                |place, cpu| bench::contend::<L, NoEvents>(&*place.cast(), cpu),
                |place, cpu| bench::contend::<L, Counted>(&*place.cast(), cpu),
            ],
        }
    }
}

type W = AtomicU32;

/// In the order of [`LOCKS`].
static KINDS: [Kind; LOCKS.len()] = [
    kind::<NativeLock<W>>(false, true),
    kind::<BackoffLock<W>>(false, false),
    kind::<TasLock<W>>(false, false),
    kind::<YieldLock<W>>(false, false),
    kind::<TicketLock<W>>(false, false),
    kind::<McsLock<W>>(false, true),
    kind::<SimpleLock<W>>(false, false),
    kind::<ParavirtLock<W>>(true, true),
    kind::<ParavirtStealingLock<W>>(true, true),
    kind::<ParavirtQueuedLock<W>>(true, true),
    kind::<ParavirtTicketLock<W>>(true, true),
    kind::<CnaLock<W>>(false, true),
    kind::<CnaParavirtLock<W>>(true, true),
    kind::<Writers<W>>(false, true),
];

/// The reader-writer lock, by its writers only.
struct Writers<W>(QueuedRwLock<W>);

// SAFETY: the promise of `RawSharedLock` for its exclusive side.
unsafe impl<P: Platform> RawLock<P> for Writers<P::Word> {
    fn new() -> Self {
        Self(RawSharedLock::<P>::new())
    }
    #[inline]
    fn acquire(&self, p: &P) {
        self.0.acquire_exclusive(p);
    }
    #[inline]
    fn try_acquire(&self, p: &P) -> bool {
        self.0.try_acquire_exclusive(p)
    }
    #[inline]
    unsafe fn release(&self, p: &P) {
        // SAFETY: the caller's promise.
        unsafe { self.0.release_exclusive(p) };
    }
    fn is_locked(&self, p: &P) -> bool {
        RawSharedLock::<P>::is_locked(&self.0, p)
    }
}

/// A lock of some kind in some place.
#[derive(Clone, Copy)]
pub struct Lock {
    number: u32,
    place: &'static Place,
}

impl Lock {
    /// The lock of kind `number` that is in `place`.
    ///
    /// # Safety
    /// L1: one of this kind was made there.
    #[must_use]
    pub unsafe fn in_place(number: u32, place: &'static Place) -> Self {
        Self { number, place }
    }

    /// Makes a free lock of kind `number` in `place`.
    ///
    /// # Safety
    /// L1: nobody uses a lock there.
    pub unsafe fn make(number: u32, place: &'static Place) -> Self {
        let lock = Self { number, place };
        // SAFETY: L1.
        unsafe { (lock.kind().make)(place.0.get().cast()) };
        lock
    }

    fn kind(self) -> &'static Kind {
        &KINDS[self.number as usize]
    }

    fn address(self) -> *const u8 {
        self.place.0.get().cast()
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        LOCKS[self.number as usize]
    }

    /// Acquires it, and says so to the watch.
    pub fn acquire(self) {
        let cpu = cpu::this();
        let state = &cpu.waits[cpu.level()];
        state.store(self.number + 1, Relaxed);
        // SAFETY: L1.
        unsafe { (self.kind().acquire)(self.address()) };
        state.store((self.number + 1) | HOLDS, Relaxed);
    }

    /// Acquires it if that takes no waiting.
    pub fn try_acquire(self) -> bool {
        // SAFETY: L1.
        unsafe { (self.kind().try_acquire)(self.address()) }
    }

    /// Releases it.
    ///
    /// # Safety
    /// This context holds it.
    pub unsafe fn release(self) {
        let cpu = cpu::this();
        // SAFETY: L1, and the caller's promise.
        unsafe { (self.kind().release)(self.address()) };
        cpu.waits[cpu.level()].store(0, Relaxed);
    }

    /// Measures it on this CPU; `counting` its events or not.
    pub fn measure(self, counting: bool, cpu: u32) {
        // SAFETY: L1.
        unsafe { (self.kind().measure[usize::from(counting)])(self.address(), cpu) };
    }
}

/// Whether waiters of this kind halt.
#[must_use]
pub fn halts(number: u32) -> bool {
    KINDS[number as usize].halts
}

/// Whether waiters of this kind queue with nodes.
#[must_use]
pub fn queues(number: u32) -> bool {
    KINDS[number as usize].queues
}
