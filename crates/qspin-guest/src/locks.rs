//! The locks by their numbers in the register: what the suite runs, and what is measured.
//!
//! # Invariants
//! * **GUESTLOCKS-1** A place holds a lock of the kind that its last [`Lock::make`] has put there,
//!   and is made anew only while no CPU uses it.

use core::cell::UnsafeCell;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

use qspin_core::events::NoEvents;
use qspin_core::lock::{RawLock, RawSharedLock};
use qspin_core::locks::LOCKS;
use qspin_core::platform::Platform;

use crate::contend::contend;
use crate::hardware::cpu::{self, HOLDS};
use crate::platform::{Counted, Guest};

/// A lock that may be in any place.
const BYTES: usize = 64;

/// Memory for a lock, on a line of its own.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Place(UnsafeCell<[u8; BYTES]>);

// SAFETY: GUESTLOCKS-1: between two makings it is a lock, which is made to be shared.
unsafe impl Sync for Place {}

impl Place {
    /// A place without a lock.
    #[allow(clippy::declare_interior_mutable_const)]
    pub const EMPTY: Self = Self(UnsafeCell::new([0; BYTES]));
}

/// How a kind of lock is used without its type.
struct Kind {
    make: unsafe fn(*mut u8),
    acquire: unsafe fn(*const u8),
    try_acquire: unsafe fn(*const u8) -> bool,
    release: unsafe fn(*const u8),
    measure: [unsafe fn(*const u8, u32); 2],
    /// Acquires and releases it for reading, if readers share it.
    read: Option<[unsafe fn(*const u8); 2]>,
}

/// The suite counts events.
const PLATFORM: Guest<Counted> = Guest::NEW;

const fn kind<L>() -> Kind
where
    L: RawLock<Guest<Counted>> + RawLock<Guest<NoEvents>>,
{
    assert!(size_of::<L>() <= BYTES);
    // SAFETY: in all of them: GUESTLOCKS-1.
    unsafe {
        Kind {
            make: |place| place.cast::<L>().write(<L as RawLock<Guest<Counted>>>::new()),
            acquire: |place| (*place.cast::<L>()).acquire(&PLATFORM),
            try_acquire: |place| (*place.cast::<L>()).try_acquire(&PLATFORM),
            release: |place| (*place.cast::<L>()).release(&PLATFORM),
            measure: [
                |place, cpu| contend::<L, NoEvents>(&*place.cast(), cpu),
                |place, cpu| contend::<L, Counted>(&*place.cast(), cpu),
            ],
            read: None,
        }
    }
}

/// As a lock that excludes: its writers.
const fn shared_kind<L>() -> Kind
where
    L: RawSharedLock<Guest<Counted>> + RawSharedLock<Guest<NoEvents>>,
{
    // SAFETY: in both of them: GUESTLOCKS-1, and `Writers` is what it holds.
    let read: [unsafe fn(*const u8); 2] = unsafe {
        [
            |place| (*place.cast::<L>()).acquire_shared(&PLATFORM),
            |place| (*place.cast::<L>()).release_shared(&PLATFORM),
        ]
    };
    Kind { read: Some(read), ..kind::<Writers<L>>() }
}

/// The groups of the register: what is there of each of its locks.
macro_rules! kinds {
    (() $($group:ident { $($id:ident: $module:ident = $lock:path, $about:literal;)* })*) => {
        [$($({
            #[allow(unused_imports)]
            use $lock as Lock;
            kinds!($group Lock)
        },)*)*]
    };
    (spinning $lock:ident) => { Some(kind::<$lock<AtomicU32>>()) };
    (shared_spinning $lock:ident) => { Some(shared_kind::<$lock<AtomicU32>>()) };
    // The guest has no way to sleep yet.
    ($sleeping:ident $lock:ident) => { None };
}

/// By their numbers in the register.
static KINDS: [Option<Kind>; LOCKS.len()] = qspin_core::for_each_lock!(kinds);

/// A reader-writer lock, by its writers only.
#[repr(transparent)]
struct Writers<L>(L);

// SAFETY: the promise of `RawSharedLock` for its exclusive side.
unsafe impl<P: Platform, L: RawSharedLock<P>> RawLock<P> for Writers<L> {
    fn new() -> Self {
        Self(L::new())
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
        self.0.is_locked(p)
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
    /// GUESTLOCKS-1: one of this kind was made there.
    #[must_use]
    pub unsafe fn in_place(number: u32, place: &'static Place) -> Self {
        Self { number, place }
    }

    /// Makes a free lock of kind `number` in `place`.
    ///
    /// # Safety
    /// GUESTLOCKS-1: no CPU uses a lock there.
    pub unsafe fn make(number: u32, place: &'static Place) -> Self {
        let lock = Self { number, place };
        // SAFETY: GUESTLOCKS-1.
        unsafe { (lock.kind().make)(place.0.get().cast()) };
        lock
    }

    fn kind(self) -> &'static Kind {
        // Nothing else is understood on the command line.
        KINDS[self.number as usize].as_ref().expect("a lock that the guest runs")
    }

    fn address(self) -> *const u8 {
        self.place.0.get().cast()
    }

    /// Acquires it, and says so to the watch.
    pub fn acquire(self) {
        let cpu = cpu::this();
        let state = &cpu.waits[cpu.level()];
        state.store(self.number + 1, Relaxed);
        // SAFETY: GUESTLOCKS-1.
        unsafe { (self.kind().acquire)(self.address()) };
        state.store((self.number + 1) | HOLDS, Relaxed);
    }

    /// Acquires it if that takes no waiting.
    pub fn try_acquire(self) -> bool {
        // SAFETY: GUESTLOCKS-1.
        unsafe { (self.kind().try_acquire)(self.address()) }
    }

    /// Releases it.
    ///
    /// # Safety
    /// This context holds it.
    pub unsafe fn release(self) {
        let cpu = cpu::this();
        // SAFETY: GUESTLOCKS-1, and the caller's promise.
        unsafe { (self.kind().release)(self.address()) };
        cpu.waits[cpu.level()].store(0, Relaxed);
    }

    /// Acquires it for reading, does something, and releases it.
    pub fn read(self, section: impl FnOnce()) {
        let [acquire, release] = self.kind().read.expect("a lock that readers share");
        // SAFETY: GUESTLOCKS-1.
        unsafe { acquire(self.address()) };
        section();
        // SAFETY: GUESTLOCKS-1; acquired above.
        unsafe { release(self.address()) };
    }

    /// Measures it on this CPU; `counting` its events or not.
    pub fn measure(self, counting: bool, cpu: u32) {
        // SAFETY: GUESTLOCKS-1.
        unsafe { (self.kind().measure[usize::from(counting)])(self.address(), cpu) };
    }
}
