//! The file to which a process writes its table: that of `qspin run`, or one of its own.

use core::ffi::CStr;
use core::mem::offset_of;
use core::sync::atomic::Ordering::Relaxed;

use qspin::locks_file::{BLOCK, First, Head, LENGTH, MAP, Slot, place_of};

use super::{SLOT, is_on, print, shared, tally};
use crate::sleep::system_call;
use crate::{generation, rwlock, served};

/// To `openat`: a path that is relative is so to the current directory.
const HERE: u64 = libc::AT_FDCWD as u64;

/// Opens the file of a path, or a new one, and finds this process's slot in it.
fn open(report: Option<&CStr>) -> Option<(u64, u64)> {
    // By now the path may name anything: a terminal must not become this process's controlling one, and no
    // thread may wait for the other end of a pipe.
    let flags = (libc::O_RDWR | libc::O_CLOEXEC | libc::O_NOCTTY | libc::O_NONBLOCK) as u64;
    let call = |number, arguments: [u64; 3]| {
        // SAFETY: texts that end with a zero, and numbers.
        u64::try_from(unsafe { system_call(number, arguments) }).ok()
    };
    let file = report
        .and_then(|path| call(libc::SYS_openat, [HERE, path.as_ptr() as u64, flags]))
        .and_then(|file| {
            // The path is that of another process's file, and by now may name any file.
            // SAFETY: zeros are a valid value of this plain struct.
            let mut found: libc::stat = unsafe { core::mem::zeroed() };
            call(libc::SYS_fstat, [file, &raw mut found as u64, 0])?;
            if found.st_mode & libc::S_IFMT == libc::S_IFREG && found.st_size as u64 == LENGTH {
                return Some(file);
            }
            call(libc::SYS_close, [file, 0, 0]);
            None
        })
        .or_else(|| {
            let name = c"qspin-locks".as_ptr() as u64;
            let file = call(libc::SYS_memfd_create, [name, libc::MFD_CLOEXEC.into(), 0])?;
            call(libc::SYS_ftruncate, [file, LENGTH, 0])?;
            Some(file)
        })?;
    let shared = (libc::PROT_READ | libc::PROT_WRITE) as u64;
    let arguments = [0, BLOCK as u64, shared, libc::MAP_SHARED as u64, file, 0];
    // SAFETY: a new mapping, wherever the kernel wants it.
    let first = unsafe { system_call(libc::SYS_mmap, arguments) };
    if first < 0 {
        call(libc::SYS_close, [file, 0, 0]);
        return None;
    }
    // SAFETY: a block that is zeros or has this layout, and stays mapped until it is unmapped below.
    let slot = unsafe { &*(first as usize as *const First) }.claim();
    // SAFETY: mapped above, and not used after this.
    unsafe { system_call(libc::SYS_munmap, [first as u64, BLOCK as u64]) };
    if slot.is_none() {
        call(libc::SYS_close, [file, 0, 0]);
    }
    Some((file, slot?))
}

/// Records in the file that the library is loaded, and whether it counts from now on. For the constructor.
pub(crate) fn begin(report: Option<&CStr>, counts: bool) {
    /// File descriptors from here on: programs do not expect these to be free.
    const HIGH: u64 = 700;
    // Else the kernel would replace more than the slot.
    if !qspin::inside::are_whole() {
        return;
    }
    let Some((file, slot)) = open(report) else { return };
    let arguments = [
        &raw const *SLOT as u64,
        size_of::<Slot>() as u64,
        (libc::PROT_READ | libc::PROT_WRITE) as u64,
        (libc::MAP_SHARED | libc::MAP_FIXED) as u64,
        file,
        place_of(slot),
    ];
    // SAFETY: replaces this library's own static pages, which were never written, by zero pages of a file that
    // is as long.
    let mapped = unsafe { system_call(libc::SYS_mmap, arguments) };
    if mapped > 0 {
        // SAFETY: a system call without arguments.
        let process = unsafe { system_call(libc::SYS_getpid, []) } as u64;
        SLOT.head.begin(process, counts, served::name(), rwlock::name().unwrap_or_default());
        generation::begin_to_report();
        end_predecessors(file, process, slot);
        // Stays open for `qspin stat`, under a number that programs do not use: the command may switch counting
        // on.
        let high = [file, libc::F_DUPFD_CLOEXEC as u64, HIGH];
        // SAFETY: numbers only.
        unsafe { system_call(libc::SYS_fcntl, high) };
        generation::begin_to_count();
        if counts {
            SLOT.head.first_map.store(write_map() as u64, Relaxed);
            if report.is_none() {
                print::at_the_end();
            }
        }
    }
    // SAFETY: this function's own file descriptor.
    unsafe { system_call(libc::SYS_close, [file]) };
}

/// Writes this process's memory map, so that addresses can be named when the process is gone. Returns its
/// length.
fn write_map() -> usize {
    let path = c"/proc/self/maps".as_ptr() as u64;
    let mut length = 0;
    // SAFETY: a path that ends with a zero; a place of the given size, which nothing else uses.
    unsafe {
        let file = system_call(libc::SYS_openat, [HERE, path, libc::O_RDONLY as u64]);
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

/// The process ends: writes its final memory map, and collects the counts that its locks still keep.
pub(crate) fn end() {
    // Not for a child of `vfork`, which shares this memory.
    // SAFETY: a system call without arguments.
    let process = || unsafe { system_call(libc::SYS_getpid, []) } as u64;
    if is_on() && SLOT.head.process.load(Relaxed) == process() {
        generation::end_to_count();
        fetch_the_rest();
        let length = write_map();
        SLOT.head.map_length.store(length as u64, Relaxed);
        // SAFETY: written above, by this thread alone.
        print::table(unsafe { (*SLOT.map.get()).get(..length).unwrap_or_default() });
    }
}

/// Adds to the rows the counts in the locks' own memory. That memory may be gone, so the kernel is asked to
/// read it.
fn fetch_the_rest() {
    let path = c"/proc/self/mem".as_ptr() as u64;
    let flags = (libc::O_RDONLY | libc::O_CLOEXEC) as u64;
    // SAFETY: a path that ends with a zero.
    let file = unsafe { system_call(libc::SYS_openat, [HERE, path, flags]) };
    if file < 0 {
        return;
    }
    for (place, row) in SLOT.rows.iter().enumerate().skip(1) {
        let address = row.address.load(Relaxed);
        if address == 0 {
            continue;
        }
        let mut words = [0_u32; tally::WORDS];
        let size = size_of_val(&words);
        let arguments = [file as u64, words.as_mut_ptr() as u64, size as u64, address];
        // SAFETY: a place of that size; the call fails for an address where nothing is mapped.
        if unsafe { system_call(libc::SYS_pread64, arguments) } == size as i64 {
            tally::add_rest(row, place, &words);
            shared::add_rest(row, place, &words);
        }
    }
    // SAFETY: this function's own file descriptor.
    unsafe { system_call(libc::SYS_close, [file as u64]) };
}

/// A program that executed this one has not ended, and its map is not this process's: in its slot the map with
/// which it began is valid.
fn end_predecessors(file: u64, process: u64, slots: u64) {
    let at = |slot: u64, field: usize| place_of(slot) + field as u64;
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
