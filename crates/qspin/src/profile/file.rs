//! The file in memory: that of `qspin run`, or one of this process's own, where `qspin stat` finds it.

use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::mem::offset_of;
use core::ptr::null_mut;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

use crate::platform::system::environment::Environment;
use crate::platform::system::errno::Errno;
use crate::platform::system::generation;

use super::rows::{ROWS, Row};
use super::stacks::{STACKS, Stack};
use super::{COUNTED, GENERATION, SLOT};

/// What lies before the slots, and of what each begins at a multiple: the largest page that any kernel has.
const BLOCK: usize = 1 << 16;
/// How far the slots are from each other.
const SLOT_BYTES: usize = size_of::<Slot>().next_multiple_of(BLOCK);
/// How many bytes of the process's memory map are kept, and for how many threads there would be records.
const MAP: usize = 1 << 17;
const THREADS: usize = 1024;
/// How many processes find a slot.
const SLOTS: u64 = 64;
/// `qspin-locks` and the number of the format.
const MAGIC: [u64; 2] = [u64::from_le_bytes(*b"qspin-lo"), u64::from_le_bytes(*b"cks 4\0\0\0")];
/// What is said of the lock that serves.
const NAME: &str = "crate qspin";

#[repr(C, align(4096))]
pub(super) struct Head {
    magic: [AtomicU64; 2],
    process: AtomicU64,
    counts: AtomicU64,
    lost: AtomicU64,
    left: [AtomicU64; 6],
    map_length: AtomicU64,
    lock: [AtomicU8; 32],
    first_map: AtomicU64,
    rest: [AtomicU64; 8],
    pub(super) stacks_lost: AtomicU64,
    more: [AtomicU64; 38],
    pub(super) mode: AtomicU32,
    /// How many want it counted: the last command switches it off.
    wanted: AtomicU32,
}

const _: () = assert!(offset_of!(Head, stacks_lost) == 200 && offset_of!(Head, mode) == 512);

#[repr(C)]
pub(super) struct Slot {
    pub(super) head: Head,
    rows: [Row; ROWS],
    map: UnsafeCell<[u8; MAP]>,
    pub(super) stacks: [Stack; STACKS],
    threads: [[AtomicU64; 128]; THREADS],
}

const _: () = assert!(size_of::<Slot>().is_multiple_of(4096) && size_of::<Head>() == 4096);

// SAFETY: `map` is written at load and at the end of the process, by one thread.
unsafe impl Sync for Slot {}

impl Slot {
    /// The row of the lock at `address`; the first one if there is no room.
    pub(super) fn row(&self, address: usize) -> &Row {
        let address = address as u64;
        let start = (address >> 2).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
        for step in 0..16 {
            let row = &self.rows[1 + (start as usize + step) % (ROWS - 1)];
            match row.address.load(Relaxed) {
                seen if seen == address => return row,
                0 => match row.address.compare_exchange(0, address, Relaxed, Relaxed) {
                    Ok(_) => return row,
                    Err(other) if other == address => return row,
                    Err(_) => {}
                },
                _ => {}
            }
        }
        self.head.lost.fetch_add(1, Relaxed);
        &self.rows[0]
    }

    /// Writes this process's memory map, so that addresses can be named when the process is gone.
    fn write_map(&self) -> u64 {
        let mut length = 0;
        // SAFETY: a path that ends with a zero; a place of the given size, which nothing else writes.
        unsafe {
            let file = libc::open(c"/proc/self/maps".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
            while file >= 0 && length < MAP {
                let rest = self.map.get().cast::<u8>().add(length);
                let read = libc::read(file, rest.cast(), MAP - length);
                if read <= 0 {
                    break;
                }
                length += read as usize;
            }
            libc::close(file);
        }
        length as u64
    }
}

/// Opens the file of a path, or a new one.
fn open(report: Option<&CStr>) -> Option<i32> {
    let size = (BLOCK as u64 + SLOTS * SLOT_BYTES as u64) as libc::off_t;
    if let Some(path) = report {
        // By now the path may name anything: no terminal is to become this process's controlling one.
        let flags = libc::O_RDWR | libc::O_CLOEXEC | libc::O_NOCTTY | libc::O_NONBLOCK;
        // SAFETY: a text that ends with a zero; zeros are a valid value of this plain struct.
        unsafe {
            let file = libc::open(path.as_ptr(), flags);
            let mut found: libc::stat = core::mem::zeroed();
            if file >= 0 && libc::fstat(file, &raw mut found) == 0 {
                if found.st_mode & libc::S_IFMT == libc::S_IFREG && found.st_size == size {
                    return Some(file);
                }
                libc::close(file);
            }
        }
    }
    // SAFETY: a text that ends with a zero, and numbers.
    unsafe {
        let file = libc::memfd_create(c"qspin-locks".as_ptr(), libc::MFD_CLOEXEC);
        (file >= 0 && libc::ftruncate(file, size) == 0).then_some(file)
    }
}

/// A new mapping of part of the file.
fn mapped(file: i32, place: u64, length: usize) -> Option<*mut libc::c_void> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: wherever the kernel wants it.
    let place = unsafe {
        libc::mmap(null_mut(), length, access, libc::MAP_SHARED, file, place as libc::off_t)
    };
    (place != libc::MAP_FAILED).then_some(place)
}

/// Finds the place of this process's slot, and maps it.
fn take_slot(file: i32) -> Option<&'static Slot> {
    let first = mapped(file, 0, BLOCK)?;
    // SAFETY: a block that is zeros or has this layout, and stays mapped until it is unmapped below.
    let head = unsafe { &*first.cast::<[AtomicU64; 3]>() };
    // Other processes, and the library for programs that cannot be changed, may be beginning here, too.
    let is_ours = |(word, magic): (&AtomicU64, u64)| [0, magic].contains(&word.load(Relaxed));
    let mut number = SLOTS;
    if head.iter().zip(MAGIC).all(is_ours) {
        head[0].store(MAGIC[0], Relaxed);
        head[1].store(MAGIC[1], Relaxed);
        number = head[2].fetch_add(1, Relaxed);
    }
    // SAFETY: mapped above, and not used after this.
    unsafe { libc::munmap(first, BLOCK) };
    if number >= SLOTS {
        return None;
    }
    let place = BLOCK as u64 + number * SLOT_BYTES as u64;
    let slot = mapped(file, place, size_of::<Slot>())?;
    // SAFETY: as long as a slot, made of zeros, for which its atomics are valid; never unmapped (PROFILE-1).
    Some(unsafe { &*slot.cast::<Slot>() })
}

/// At load: maps the slot, and counts from now on if the environment says so.
pub(crate) fn begin(environment: &Environment) {
    /// File descriptors from here on: programs do not expect these to be free.
    const HIGH: libc::c_int = 700;
    if !SLOT.load(Relaxed).is_null() {
        return;
    }
    let errno = Errno::keep();
    let counts = [c"QSPIN_PROFILE", c"QSPIN_PRELOAD_STATS"]
        .iter()
        .any(|name| environment.value_of(name).is_some_and(|value| value.to_bytes() == b"1"));
    if let Some(file) = open(environment.value_of(c"QSPIN_PRELOAD_REPORT")) {
        if let Some(slot) = take_slot(file) {
            let head = &slot.head;
            head.process.store(u64::from(std::process::id()), Relaxed);
            head.counts.store(counts.into(), Relaxed);
            for (place, byte) in head.lock.iter().zip(NAME.bytes()) {
                place.store(byte, Relaxed);
            }
            head.magic[1].store(MAGIC[1], Relaxed);
            head.magic[0].store(MAGIC[0], Relaxed);
            if counts {
                head.first_map.store(slot.write_map(), Relaxed);
                head.wanted.store(1, Relaxed);
                head.mode.store(COUNTED, Relaxed);
            }
            GENERATION.store(generation::current(), Relaxed);
            SLOT.store(core::ptr::from_ref(slot).cast_mut(), Relaxed);
            // Stays open for the command.
            // SAFETY: numbers only.
            unsafe { libc::fcntl(file, libc::F_DUPFD_CLOEXEC, HIGH) };
        }
        // SAFETY: this function's own file descriptor.
        unsafe { libc::close(file) };
    }
    errno.restore();
}

extern "C" fn at_end() {
    if let Some(slot) = super::slot()
        && slot.head.counts.load(Relaxed) != 0
        && generation::current() == GENERATION.load(Relaxed)
    {
        slot.head.map_length.store(slot.write_map(), Relaxed);
    }
}

#[used]
#[unsafe(link_section = ".fini_array")]
static AT_END: extern "C" fn() = at_end;
