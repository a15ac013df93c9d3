//! Memory that a guest has and that this process sees: a file without a name, so that another monitor may
//! map it as well, and nothing is left behind.
//!
//! # Invariants
//! * **VMMEMORY-1** The mapping is there, `size` bytes long, as long as this value.
//! * **VMMEMORY-2** The guest writes whenever it wants. So nothing here makes a reference to plain bytes of
//!   it: they are copied through pointers, and what both sides change is atomic.

use std::ffi::c_void;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;

use qspin_guest::shared_page::{MAGIC, SharedPage};

/// A guest's memory, from its physical address 0 on.
#[derive(Debug)]
pub struct Memory {
    start: NonNull<u8>,
    size: usize,
    file: OwnedFd,
}

// SAFETY: VMMEMORY-2: it is used as memory that others write at any moment.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// So many bytes, all zero.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn new(size: usize) -> io::Result<Self> {
        // SAFETY: makes a file; the name is only for people.
        let file = unsafe { libc::memfd_create(c"qspin-guest".as_ptr(), libc::MFD_CLOEXEC) };
        if file < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the file has no other user.
        let file = unsafe { OwnedFd::from_raw_fd(file) };
        let length = libc::off_t::try_from(size).map_err(io::Error::other)?;
        // SAFETY: sets the length of our own file.
        if unsafe { libc::ftruncate(file.as_raw_fd(), length) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new mapping, somewhere.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_NORESERVE,
                file.as_raw_fd(),
                0,
            )
        };
        match NonNull::new(start.cast::<u8>()) {
            Some(at) if start != libc::MAP_FAILED => Ok(Self { start: at, size, file }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Its size.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// Its address in this process.
    #[must_use]
    pub fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Its file. Children do not inherit it by themselves.
    #[must_use]
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Its file, as this process and a child that inherits it find it.
    #[must_use]
    pub fn path(&self) -> String {
        format!("/proc/self/fd/{}", self.file.as_raw_fd())
    }

    /// Where `length` bytes at `address` are, if all of them are there.
    fn at(&self, address: u64, length: usize) -> Option<*mut u8> {
        let address = usize::try_from(address).ok()?;
        let end = address.checked_add(length)?;
        // SAFETY: VMMEMORY-1: within the mapping.
        (end <= self.size).then(|| unsafe { self.start().add(address) })
    }

    /// Copies `bytes` to `address`; `None` if there is no such memory.
    #[must_use]
    pub fn write(&self, address: u64, bytes: &[u8]) -> Option<()> {
        let to = self.at(address, bytes.len())?;
        // SAFETY: VMMEMORY-1, VMMEMORY-2; there is no reference to what is copied to.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        Some(())
    }

    /// Copies what is at `address`; `None` if there is no such memory.
    #[must_use]
    pub fn read(&self, address: u64, length: usize) -> Option<Vec<u8>> {
        let from = self.at(address, length)?;
        let mut bytes = vec![0; length];
        // SAFETY: VMMEMORY-1, VMMEMORY-2.
        unsafe { std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), length) };
        Some(bytes)
    }

    /// The shared page that a guest has at `address`; `None` if none is there.
    #[must_use]
    pub fn shared(&self, address: u64) -> Option<&SharedPage> {
        if !address.is_multiple_of(align_of::<SharedPage>() as u64) {
            return None;
        }
        let shared = self.at(address, size_of::<SharedPage>())?.cast::<SharedPage>();
        // SAFETY: VMMEMORY-1, aligned as a page is; all of it is atomic words, for which any bits are right
        // (VMMEMORY-2).
        let shared = unsafe { &*shared };
        (shared.magic.load(std::sync::atomic::Ordering::Acquire) == MAGIC).then_some(shared)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: VMMEMORY-1 ends.
        unsafe { libc::munmap(self.start().cast::<c_void>(), self.size) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_there_and_nothing_lies_outside() {
        let memory = Memory::new(8192).unwrap();
        assert_eq!(memory.read(0, 8192).unwrap(), vec![0; 8192]);
        assert_eq!(memory.write(8190, b"ab"), Some(()));
        assert_eq!(memory.read(8189, 3).unwrap(), b"\0ab");
        for (address, length) in [(8191, 2), (8192, 1), (u64::MAX, 1), (0, 8193)] {
            assert_eq!(memory.write(address, &vec![1; length]), None);
            assert_eq!(memory.read(address, length), None);
        }
        assert_eq!(memory.read(8189, 3).unwrap(), b"\0ab");
    }

    #[test]
    fn a_shared_page_is_one_that_lies_right_and_begins_as_one() {
        let memory = Memory::new(4 * 4096).unwrap();
        assert!(memory.shared(4096).is_none(), "zeros are none");
        memory.write(4096, &MAGIC.to_le_bytes()).unwrap();
        let shared = memory.shared(4096).unwrap();
        shared.seats[63].stopped.store(7, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(memory.read(4096 + 64 + 63 * 64 + 20, 1).unwrap(), [7]);
        for wrong in [0, 4097, 3 * 4096, u64::MAX - 4095] {
            memory.write(3 * 4096, &MAGIC.to_le_bytes()).unwrap();
            assert!(memory.shared(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn another_mapping_of_its_file_is_the_same_memory() {
        let memory = Memory::new(4096).unwrap();
        let mut file = std::fs::OpenOptions::new().write(true).open(memory.path()).unwrap();
        std::io::Write::write_all(&mut file, b"from outside").unwrap();
        assert_eq!(memory.read(0, 12).unwrap(), b"from outside");
    }
}
