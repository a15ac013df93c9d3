//! The file in memory: that of `qspin run`, or one of this process's own, where `qspin stat` finds it.

use core::ffi::CStr;
use core::ptr::null_mut;
use core::sync::atomic::Ordering::Relaxed;

use crate::locks_file::{BLOCK, COUNTED, First, LENGTH, MAP, Slot, place_of};
use crate::platform::system::environment::Environment;
use crate::platform::system::errno::Errno;
use crate::platform::system::generation;

use super::{GENERATION, SLOT};

/// What is said of the lock that serves.
const NAME: &str = "crate qspin";

impl Slot {
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
    let size = LENGTH as libc::off_t;
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
    let number = unsafe { &*first.cast::<First>() }.claim();
    // SAFETY: mapped above, and not used after this.
    unsafe { libc::munmap(first, BLOCK) };
    let slot = mapped(file, place_of(number?), size_of::<Slot>())?;
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
            head.begin(std::process::id().into(), counts, NAME, "");
            if counts {
                head.first_map.store(slot.write_map(), Relaxed);
                head.wanted[0].store(1, Relaxed);
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
