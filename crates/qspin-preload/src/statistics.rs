//! What the locks of a process do, one row a lock, for another process to see.
//!
//! # Problem
//! Counting must not be what is measured, must need no allocation, and must be there after the process has
//! ended, however that ended.
//!
//! So the table is a static array, and the file of whoever wants to see it is put in its place, as the event
//! counters of the crate `qspin` are. A row is found by the lock's address. It is written by who holds the
//! lock: so it moves from CPU to CPU with the lock, and needs no locked instruction. Every
//! acquisition is counted; waits are measured each, holds one in so many, since a look at the clock costs as
//! much as an acquisition. A mutex keeps the place of its row in its own memory, which its holder has at hand.
//!
//! ```text
//! file = a page: magic, processes so far │ slot 0 │ slot 1 │ …          one slot a process
//! slot = a page: pid, on, rows lost, left to the C library, lock │ rows │ the process's map of memory
//! ```
//!
//! # Invariants
//! * **T1** A row is written by who holds its lock; rows of reader-writer locks by several, with locked
//!   instructions. What two locks without a row of their own write to row 0 may lose counts.
//! * **T2** A child of a `fork` writes nothing, since the slot is its parent's: `generation::reports` and `counts` are
//!   false in it.

use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::mem::offset_of;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

use crate::deadline::now_ns;
use crate::sleep::system_call;
use crate::{generation, served};

const PAGE: usize = 4096;
const ROWS: usize = 2048;
const BUCKETS: usize = 96;
const SITES: usize = 4;
/// Bytes of the process's map of memory that are kept.
const MAP: usize = 1 << 17;
/// Processes that find a slot.
const SLOTS: u32 = 64;
/// Of the first acquisitions of a lock the hold of one in so many is measured, of later ones that of one in more: two
/// looks at the clock and three cache lines.
const SAMPLE: u64 = 16;
const EARLY: u64 = 1024;
const LATE_SAMPLE: u64 = 128;

#[inline(always)]
fn is_sampled(acquisitions: u64) -> bool {
    acquisitions % SAMPLE == 1 && (acquisitions < EARLY || acquisitions % LATE_SAMPLE == 1)
}

/// Why an object was left to the C library.
#[derive(Clone, Copy)]
pub(crate) enum LeftToLibc {
    SharedMutex,
    RobustMutex,
    InheritingMutex,
    ProtectedMutex,
    SharedCondvar,
    SharedRwLock,
}

const REASONS: usize = 6;

/// A lock's row.
#[repr(C, align(1024))]
struct Row {
    address: AtomicU64,
    acquisitions: AtomicU64,
    contended: AtomicU64,
    wait_ns: AtomicU64,
    longest_wait_ns: AtomicU64,
    /// When the hold began that is measured, or 0.
    since: AtomicU64,
    sites: [[AtomicU64; 2]; SITES],
    waits: [AtomicU32; BUCKETS],
    holds: [AtomicU32; BUCKETS],
}

/// What is said of a process.
#[repr(C, align(4096))]
struct Head {
    magic: [AtomicU64; 2],
    process: AtomicU64,
    counts: AtomicU64,
    lost: AtomicU64,
    left: [AtomicU64; REASONS],
    map_length: AtomicU64,
    /// The name of the lock that serves, and zeros.
    lock: [AtomicU8; 32],
    /// How long the map is with which the process began; it holds where no other was written.
    first_map: AtomicU64,
}

#[repr(C)]
struct Slot {
    head: Head,
    rows: [Row; ROWS],
    map: UnsafeCell<[u8; MAP]>,
}

// SAFETY: `map` is written by the library's destructor alone.
unsafe impl Sync for Slot {}

const _: () = assert!(size_of::<Slot>().is_multiple_of(PAGE) && size_of::<Head>() == PAGE);

/// `qspin-locks` and the number of the format.
const MAGIC: [u64; 2] = [u64::from_le_bytes(*b"qspin-lo"), u64::from_le_bytes(*b"cks 1\0\0\0")];

static SLOT: Slot = Slot {
    head: Head {
        magic: [const { AtomicU64::new(0) }; 2],
        process: AtomicU64::new(0),
        counts: AtomicU64::new(0),
        lost: AtomicU64::new(0),
        left: [const { AtomicU64::new(0) }; REASONS],
        map_length: AtomicU64::new(0),
        lock: [const { AtomicU8::new(0) }; 32],
        first_map: AtomicU64::new(0),
    },
    rows: [const {
        Row {
            address: AtomicU64::new(0),
            acquisitions: AtomicU64::new(0),
            contended: AtomicU64::new(0),
            wait_ns: AtomicU64::new(0),
            longest_wait_ns: AtomicU64::new(0),
            since: AtomicU64::new(0),
            sites: [const { [const { AtomicU64::new(0) }; 2] }; SITES],
            waits: [const { AtomicU32::new(0) }; BUCKETS],
            holds: [const { AtomicU32::new(0) }; BUCKETS],
        }
    }; ROWS],
    map: UnsafeCell::new([0; MAP]),
};

/// Whether locks are counted.
#[inline(always)]
pub(crate) fn is_on() -> bool {
    generation::counts()
}

/// When a wait begins, or 0 if nobody wants to know.
#[inline]
pub(crate) fn waits() -> u64 {
    if is_on() { now_ns() } else { 0 }
}

/// Something was left to the C library.
pub(crate) fn left_to_libc(why: LeftToLibc) {
    // T2.
    if generation::reports() {
        SLOT.head.left[why as usize].fetch_add(1, Relaxed);
    }
}

/// The row of the lock at `address`.
fn row(address: usize) -> &'static Row {
    &SLOT.rows[place(address)]
}

/// The number of its row; that of the first one if there is no room.
fn place(address: usize) -> usize {
    let address = address as u64;
    let start = (address >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
    for step in 0..16 {
        let place = 1 + (start as usize + step) % (ROWS - 1);
        let row = &SLOT.rows[place];
        match row.address.load(Relaxed) {
            seen if seen == address => return place,
            0 => match row.address.compare_exchange(0, address, Relaxed, Relaxed) {
                Ok(_) => return place,
                Err(other) if other == address => return place,
                Err(_) => {}
            },
            _ => {}
        }
    }
    SLOT.head.lost.fetch_add(1, Relaxed);
    0
}

/// Adds without a locked instruction (T1).
#[inline(always)]
fn add(counter: &AtomicU64, amount: u64) -> u64 {
    let sum = counter.load(Relaxed).wrapping_add(amount);
    counter.store(sum, Relaxed);
    sum
}

/// The bucket of a time: two to a power of two.
fn bucket(nanoseconds: u64) -> usize {
    if nanoseconds < 2 {
        return nanoseconds as usize;
    }
    let power = nanoseconds.ilog2();
    let half = nanoseconds >> (power - 1) & 1;
    (2 * power as usize + half as usize).min(BUCKETS - 1)
}

/// A site that takes the lock, or waits for it: the four that do so most, by an estimate that errs upwards.
fn note_site(row: &Row, site: usize) {
    let site = site as u64;
    let mut least = 0;
    for (place, [address, count]) in row.sites.iter().enumerate() {
        if address.load(Relaxed) == site {
            add(count, 1);
            return;
        }
        if count.load(Relaxed) < row.sites[least][1].load(Relaxed) {
            least = place;
        }
    }
    row.sites[least][0].store(site, Relaxed);
    add(&row.sites[least][1], 1);
}

/// A wait for a lock of which this thread is not the only holder.
fn note_wait(row: &Row, since: u64) {
    let waited = now_ns().saturating_sub(since);
    row.contended.fetch_add(1, Relaxed);
    row.wait_ns.fetch_add(waited, Relaxed);
    row.longest_wait_ns.fetch_max(waited, Relaxed);
    row.waits[bucket(waited)].fetch_add(1, Relaxed);
}

/// What a mutex knows of its row, in its own memory, all zeros in a new one: it need not be searched for each time. Written
/// by who holds the mutex.
#[repr(transparent)]
pub(crate) struct Seat(AtomicU32);

/// This hold is measured.
const MEASURED: u32 = 1 << 31;

impl Seat {
    #[inline]
    fn row(&self, address: usize) -> &'static Row {
        match self.0.load(Relaxed) & !MEASURED {
            0 => self.find(address),
            place => &SLOT.rows[place as usize % ROWS],
        }
    }

    #[cold]
    fn find(&self, address: usize) -> &'static Row {
        let place = place(address);
        // In place 0, the rest, each acquisition is said to be lost.
        self.0.store(self.0.load(Relaxed) & MEASURED | place as u32, Relaxed);
        &SLOT.rows[place]
    }

    /// Measures this hold, from `now` on.
    fn measure(&self, row: &Row, now: u64) {
        row.since.store(now, Relaxed);
        self.0.store(self.0.load(Relaxed) | MEASURED, Relaxed);
    }
}

/// The mutex at `address` was taken by this thread, which did not wait.
#[inline]
pub(crate) fn taken(seat: &Seat, address: usize, site: usize) {
    let row = seat.row(address);
    if is_sampled(add(&row.acquisitions, 1)) {
        sample(seat, row, site);
    }
}

#[cold]
#[inline(never)]
fn sample(seat: &Seat, row: &Row, site: usize) {
    note_site(row, site);
    seat.measure(row, now_ns());
}

/// The same, after a wait since `since`.
#[cold]
#[inline(never)]
pub(crate) fn taken_late(seat: &Seat, address: usize, site: usize, since: u64) {
    let now = now_ns();
    let row = seat.row(address);
    // T1: no locked instruction while others wait.
    let waited = now.saturating_sub(since);
    add(&row.contended, 1);
    add(&row.wait_ns, waited);
    if waited > row.longest_wait_ns.load(Relaxed) {
        row.longest_wait_ns.store(waited, Relaxed);
    }
    let bucket = &row.waits[bucket(waited)];
    bucket.store(bucket.load(Relaxed).wrapping_add(1), Relaxed);
    note_site(row, site);
    if is_sampled(add(&row.acquisitions, 1)) {
        seat.measure(row, now);
    }
}

/// The mutex at `address` is about to be released by this thread.
#[inline]
pub(crate) fn released(seat: &Seat, address: usize) {
    if seat.0.load(Relaxed) & MEASURED != 0 {
        note_hold(seat, address);
    }
}

#[cold]
#[inline(never)]
fn note_hold(seat: &Seat, address: usize) {
    let row = seat.row(address);
    seat.0.store(seat.0.load(Relaxed) & !MEASURED, Relaxed);
    let since = row.since.load(Relaxed);
    if since != 0 {
        row.since.store(0, Relaxed);
        let held = now_ns().saturating_sub(since);
        row.holds[bucket(held)].fetch_add(1, Relaxed);
    }
}

/// A lock that several may hold was taken; how long it is held is not measured.
#[cold]
#[inline(never)]
pub(crate) fn taken_shared(address: usize, site: usize, since: Option<u64>) {
    let row = row(address);
    let acquisitions = row.acquisitions.fetch_add(1, Relaxed);
    if let Some(since) = since {
        note_wait(row, since);
    }
    if since.is_some() || acquisitions.is_multiple_of(SAMPLE) {
        note_site(row, site);
    }
}

/// A path's file, or a new one; and the place of a slot in it that is this process's.
fn open(report: Option<&CStr>) -> Option<(u64, u64)> {
    let size = PAGE as u64 + u64::from(SLOTS) * size_of::<Slot>() as u64;
    let flags = (libc::O_RDWR | libc::O_CLOEXEC) as u64;
    let call = |number, arguments: [u64; 3]| {
        // SAFETY: texts that end with a zero, and numbers.
        u64::try_from(unsafe { system_call(number, arguments) }).ok()
    };
    let file = report
        .and_then(|path| call(libc::SYS_open, [path.as_ptr() as u64, flags, 0]))
        .and_then(|file| {
            // The path is of another process's file, which by now may be any.
            // SAFETY: zeros are a valid value of this plain struct.
            let mut found: libc::stat = unsafe { core::mem::zeroed() };
            call(libc::SYS_fstat, [file, &raw mut found as u64, 0])?;
            if found.st_size as u64 == size {
                return Some(file);
            }
            call(libc::SYS_close, [file, 0, 0]);
            None
        })
        .or_else(|| {
            let name = c"qspin-locks".as_ptr() as u64;
            let file = call(libc::SYS_memfd_create, [name, libc::MFD_CLOEXEC.into(), 0])?;
            call(libc::SYS_ftruncate, [file, size, 0])?;
            Some(file)
        })?;
    let shared = (libc::PROT_READ | libc::PROT_WRITE) as u64;
    let arguments = [0, PAGE as u64, shared, libc::MAP_SHARED as u64, file, 0];
    // SAFETY: a new mapping, wherever the kernel wants it.
    let first = unsafe { system_call(libc::SYS_mmap, arguments) };
    if first < 0 {
        call(libc::SYS_close, [file, 0, 0]);
        return None;
    }
    // SAFETY: a page of zeros or of this form, which stays mapped until it is unmapped below.
    let head = unsafe { &*(first as usize as *const [AtomicU64; 3]) };
    // Others may be just beginning here, too.
    let is_ours = |(word, magic): (&AtomicU64, u64)| [0, magic].contains(&word.load(Relaxed));
    if !head.iter().zip(MAGIC).all(is_ours) {
        // SAFETY: mapped above, and not used after this.
        unsafe { system_call(libc::SYS_munmap, [first as u64, PAGE as u64]) };
        call(libc::SYS_close, [file, 0, 0]);
        return None;
    }
    head[0].store(MAGIC[0], Relaxed);
    head[1].store(MAGIC[1], Relaxed);
    let slot = head[2].fetch_add(1, Relaxed);
    // SAFETY: mapped above, and not used after this.
    unsafe { system_call(libc::SYS_munmap, [first as u64, PAGE as u64]) };
    if slot >= SLOTS.into() {
        call(libc::SYS_close, [file, 0, 0]);
        return None;
    }
    Some((file, PAGE as u64 + slot * size_of::<Slot>() as u64))
}

/// Says in the file that the library is loaded, and counts from now on if `counts`. For the constructor.
pub(crate) fn begin(report: Option<&CStr>, counts: bool) {
    /// File descriptors from here on are not what programs expect to be free.
    const HIGH: u64 = 700;
    let Some((file, place)) = open(report) else { return };
    let arguments = [
        &raw const SLOT as u64,
        size_of::<Slot>() as u64,
        (libc::PROT_READ | libc::PROT_WRITE) as u64,
        (libc::MAP_SHARED | libc::MAP_FIXED) as u64,
        file,
        place,
    ];
    // SAFETY: replaces this library's own static pages, which nothing was written to, by such of a file
    // that are zeros; the file is as long.
    let mapped = unsafe { system_call(libc::SYS_mmap, arguments) };
    if mapped > 0 {
        // SAFETY: a system call without arguments.
        let process = unsafe { system_call(libc::SYS_getpid, []) } as u64;
        SLOT.head.process.store(process, Relaxed);
        SLOT.head.counts.store(counts.into(), Relaxed);
        for (place, byte) in SLOT.head.lock.iter().zip(served::name().bytes()) {
            place.store(byte, Relaxed);
        }
        SLOT.head.magic[1].store(MAGIC[1], Relaxed);
        SLOT.head.magic[0].store(MAGIC[0], Relaxed);
        generation::begin_to_report();
        end_predecessors(file, process, (place - PAGE as u64) / size_of::<Slot>() as u64);
        if counts {
            SLOT.head.first_map.store(write_map() as u64, Relaxed);
            // Open for `qspin stat`, where no program looks for it.
            let high = [file, libc::F_DUPFD_CLOEXEC as u64, HIGH];
            // SAFETY: numbers only.
            unsafe { system_call(libc::SYS_fcntl, high) };
            generation::begin_to_count();
        }
    }
    // SAFETY: this function's own file descriptor.
    unsafe { system_call(libc::SYS_close, [file]) };
}

/// Writes down what lies where in this process's memory, so that addresses can be named when it is gone. Returns
/// how long that is.
fn write_map() -> usize {
    let path = c"/proc/self/maps".as_ptr() as u64;
    let mut length = 0;
    // SAFETY: a path that ends with a zero; a place of the size that is given, which nobody else uses.
    unsafe {
        let file = system_call(libc::SYS_open, [path, libc::O_RDONLY as u64, 0]);
        if file < 0 {
            return 0;
        }
        while length < MAP {
            let rest = SLOT.map.get().cast::<u8>().add(length) as u64;
            let read = system_call(libc::SYS_read, [file as u64, rest, (MAP - length) as u64]);
            if read <= 0 {
                break;
            }
            length += read as usize;
        }
        system_call(libc::SYS_close, [file as u64]);
    }
    length
}

/// The process ends: its map is what holds.
pub(crate) fn end() {
    if is_on() {
        SLOT.head.map_length.store(write_map() as u64, Relaxed);
    }
}

/// A program that executed this one has not ended, and this process's map is not its own: the map with which it
/// began is what holds in its slot.
fn end_predecessors(file: u64, process: u64, slots: u64) {
    let at = |slot: u64, field: usize| PAGE as u64 + slot * size_of::<Slot>() as u64 + field as u64;
    let access = |number, place: u64, value: &mut u64| {
        let arguments = [file, core::ptr::from_mut(value) as u64, 8, place];
        // SAFETY: eight bytes of this frame.
        unsafe { system_call(number, arguments) == 8 }
    };
    for slot in 0..slots {
        let [mut number, mut ended, mut first] = [0; 3];
        if access(libc::SYS_pread64, at(slot, offset_of!(Head, process)), &mut number)
            && number == process
            && access(libc::SYS_pread64, at(slot, offset_of!(Head, map_length)), &mut ended)
            && ended == 0
            && access(libc::SYS_pread64, at(slot, offset_of!(Head, first_map)), &mut first)
        {
            access(libc::SYS_pwrite64, at(slot, offset_of!(Head, map_length)), &mut first);
        }
    }
}
