//! Which threads are running, published by the scheduler: remedy (c) of document 001, with privileges.
//!
//! # Problem
//! Without privileges a thread sees only that another one is not running on *its* CPU ([`super::run_status`]).
//! The scheduler knows it of every thread, at every switch.
//!
//! # How
//! [`load`] gives the kernel a program of 23 instructions, which it runs at every switch of every CPU, and a
//! table that this process maps. The program marks the outgoing thread as off and the incoming one as on. The
//! cheapest key is no key at all: the table is an array of one entry, whose value has a byte for every thread
//! number that the kernel gives. So a switch costs two stores of a byte, without a lookup or a list of the
//! threads that matter; and a question costs one load.
//!
//! # Source
//! bpf(2); Linux, `include/uapi/linux/bpf.h`, `include/trace/events/sched.h`, `Documentation/bpf/btf.rst`.
//! Written by hand, so that it needs no compiler and no library. `bpf_probe_read_kernel` is for programs under
//! a licence that the kernel accepts; these 23 instructions are under the MIT licence or the GPL, at the user's
//! choice.
//!
//! # Invariants
//! * **EBPF-1** `TABLE` is null, or maps `LENGTH` bytes for the rest of the program's life, which only the
//!   kernel writes.
//! * **EBPF-2** `tid` of a number's slot is the kernel's number of the thread that has it, or 0.
//!
//! # Limits
//! Needs CAP_BPF and CAP_PERFMON (or root), the kernel's type information, and the initial PID namespace:
//! elsewhere the numbers of threads are not those that the scheduler knows. Every switch of the machine runs
//! the program, as long as this process lives. Nothing is known of a thread that has not been switched since it
//! was loaded. A child of `fork` knows nothing until it calls [`load`] itself.

use core::fmt;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32};
use std::io;
use std::sync::{Mutex, PoisonError};

use qspin_core::platform::CpuId;

use super::run_status::{slot, used};
use super::syscall::syscall;

static TABLE: AtomicPtr<AtomicU8> = AtomicPtr::new(core::ptr::null_mut());
static LENGTH: AtomicU32 = AtomicU32::new(0);

const ON: u8 = 1;
const OFF: u8 = 2;

/// Whether the thread of this number is known not to be running, or to be running; `None` if neither is known.
#[inline]
pub(crate) fn known_not_to_run(cpu: CpuId) -> Option<bool> {
    // ORDERING: Acquire pairs with the Release of `load`.
    let table = TABLE.load(Acquire);
    let tid = slot(cpu.number())?.tid.load(Relaxed);
    // EBPF-2: no thread has this number; what the table has at 0 is of the kernel's idle threads.
    if table.is_null() || tid == 0 || tid >= LENGTH.load(Relaxed) {
        return None;
    }
    // SAFETY: EBPF-1, and the number is within the length.
    match unsafe { (*table.add(tid as usize)).load(Relaxed) } {
        ON => Some(false),
        OFF => Some(true),
        _ => None,
    }
}

/// This thread has got `number`.
pub(crate) fn enter(number: u32) {
    if let Some(slot) = slot(number) {
        // SAFETY: takes no arguments and touches no memory.
        slot.tid.store(unsafe { syscall(libc::SYS_gettid, []) } as u32, Relaxed);
    }
}

/// This thread is about to give `number` back.
pub(crate) fn leave(number: u32) {
    if let Some(slot) = slot(number) {
        slot.tid.store(0, Relaxed);
    }
}

/// In the child of `fork`, whose one thread has the number `own`, which may be no number at all. It
/// may be in another PID namespace than its parent, so that the table is of other threads.
pub(crate) fn child_begins(own: u32) {
    TABLE.store(core::ptr::null_mut(), Relaxed);
    for (_, slot) in used() {
        if slot.tid.load(Relaxed) != 0 {
            slot.tid.store(0, Relaxed);
        }
    }
    enter(own);
}

/// Whether the kernel publishes for this process which threads are running.
#[must_use]
pub fn loaded() -> bool {
    !TABLE.load(Relaxed).is_null()
}

/// Why nothing is published.
#[derive(Debug)]
pub enum NotPublished {
    /// The kernel has no such system call.
    NoSystemCall,
    /// This process may not.
    NotPermitted,
    /// The kernel's numbers of threads are not those of this process.
    PidNamespace,
    /// The kernel does not tell where the number of a thread is.
    NoTypes(io::Error),
    /// A step fails otherwise.
    Failed(&'static str, io::Error),
}

impl fmt::Display for NotPublished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the run status of threads cannot be published: ")?;
        match self {
            Self::NoSystemCall => {
                f.write_str("this kernel has no bpf system call (CONFIG_BPF_SYSCALL)")
            }
            Self::NotPermitted => f.write_str(
                "not permitted; it takes CAP_BPF and CAP_PERFMON, or root, and a container that \
                 allows the bpf system call",
            ),
            Self::PidNamespace => f.write_str(
                "this process is in a PID namespace; it takes the initial one (in a container: \
                 --pid=host)",
            ),
            Self::NoTypes(error) => {
                write!(f, "{TYPES}: {error}; it takes a kernel with CONFIG_DEBUG_INFO_BTF")
            }
            Self::Failed(step, error) => write!(f, "{step}: {error}"),
        }
    }
}

impl core::error::Error for NotPublished {}

/// Makes the kernel publish which threads are running, from now on.
///
/// ```no_run
/// if let Err(why) = qspin::platform::ebpf::load() {
///     eprintln!("{why}");
/// }
/// ```
///
/// # Errors
/// Why it cannot. Nothing is changed then: what threads see of each other's CPUs stays.
pub fn load() -> Result<(), NotPublished> {
    static ONCE: Mutex<()> = Mutex::new(());
    let _once = ONCE.lock().unwrap_or_else(PoisonError::into_inner);
    if loaded() {
        return Ok(());
    }
    in_initial_namespace()?;
    let types = std::fs::read(TYPES).map_err(NotPublished::NoTypes)?;
    let pid = offset_of_pid(&types).ok_or_else(|| {
        NotPublished::NoTypes(io::Error::new(io::ErrorKind::InvalidData, "no task_struct in it"))
    })?;
    let length = most_threads();

    let map = Descriptor(bpf(MAP_CREATE, "its table", |attribute| {
        attribute.put(0, MAP_TYPE_ARRAY);
        attribute.put(4, 4);
        attribute.put(8, length);
        attribute.put(12, 1);
        attribute.put(16, MAP_MMAPABLE);
    })?);
    let code = program(map.0, length, pid);
    let program = Descriptor(bpf(PROG_LOAD, "its program", |attribute| {
        attribute.put(0, PROG_TYPE_RAW_TRACEPOINT);
        attribute.put(4, code.len() as u32);
        attribute.point(8, code.as_ptr().cast());
        attribute.point(16, c"Dual MIT/GPL".as_ptr().cast());
    })?);
    // SAFETY: a new mapping.
    let table = unsafe {
        let (size, shared) = (length as usize, libc::MAP_SHARED);
        libc::mmap(core::ptr::null_mut(), size, libc::PROT_READ, shared, map.0, 0)
    };
    if table == libc::MAP_FAILED {
        return Err(NotPublished::Failed("mapping its table", io::Error::last_os_error()));
    }
    let attached = bpf(RAW_TRACEPOINT_OPEN, "attaching to sched_switch", |attribute| {
        attribute.point(0, c"sched_switch".as_ptr().cast());
        attribute.put(8, program.0 as u32);
    });
    if let Err(why) = attached {
        // SAFETY: mapped above, and no other thread knows of it.
        unsafe { libc::munmap(table, length as usize) };
        return Err(why);
    }
    // `attached` stays open as long as the process lives, and keeps the program; EBPF-1.
    LENGTH.store(length, Relaxed);
    // ORDERING: Release pairs with the Acquire of `known_not_to_run`.
    TABLE.store(table.cast(), Release);
    Ok(())
}

fn in_initial_namespace() -> Result<(), NotPublished> {
    // `PROC_PID_INIT_INO`: the number of the initial namespace, on every machine.
    match std::fs::read_link("/proc/self/ns/pid") {
        Ok(namespace) if namespace.as_os_str() != "pid:[4026531836]" => {
            Err(NotPublished::PidNamespace)
        }
        _ => Ok(()),
    }
}

/// A bound of the kernel's thread numbers, at most the size that one entry of a table may have.
fn most_threads() -> u32 {
    let most = std::fs::read_to_string("/proc/sys/kernel/pid_max").ok();
    most.and_then(|most| most.trim().parse().ok()).unwrap_or(1 << 22).clamp(1 << 12, 1 << 22)
}

const TYPES: &str = "/sys/kernel/btf/vmlinux";

const MAP_CREATE: u64 = 0;
const PROG_LOAD: u64 = 5;
const RAW_TRACEPOINT_OPEN: u64 = 17;
const MAP_TYPE_ARRAY: u32 = 2;
const MAP_MMAPABLE: u32 = 1 << 10;
const PROG_TYPE_RAW_TRACEPOINT: u32 = 17;

/// `union bpf_attr`: what is not filled in is 0.
#[repr(C, align(8))]
struct Attribute([u8; 128]);

impl Attribute {
    fn put(&mut self, place: usize, value: u32) {
        self.0[place..place + 4].copy_from_slice(&value.to_ne_bytes());
    }

    fn point(&mut self, place: usize, pointer: *const u8) {
        self.0[place..place + 8].copy_from_slice(&(pointer as u64).to_ne_bytes());
    }
}

fn bpf(
    command: u64,
    step: &'static str,
    fill: impl FnOnce(&mut Attribute),
) -> Result<i32, NotPublished> {
    let mut attribute = Attribute([0; 128]);
    fill(&mut attribute);
    let arguments = [command, attribute.0.as_ptr() as u64, attribute.0.len() as u64];
    // SAFETY: `fill` has set what the command takes; the kernel copies it.
    let result = unsafe { syscall(libc::SYS_bpf, arguments) };
    if result >= 0 { Ok(result as i32) } else { Err(failed(step, -result as i32)) }
}

fn failed(step: &'static str, error: i32) -> NotPublished {
    match error {
        libc::ENOSYS => NotPublished::NoSystemCall,
        libc::EPERM | libc::EACCES => NotPublished::NotPermitted,
        _ => NotPublished::Failed(step, io::Error::from_raw_os_error(error)),
    }
}

/// Closed when dropped: a map lives on in its mapping, a program where it is attached.
struct Descriptor(i32);

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: opened for this value alone.
        unsafe { libc::close(self.0) };
    }
}

/// One instruction: its code, its target and source registers, an offset and a number.
fn instruction(code: u8, to: u8, from: u8, offset: i16, number: i32) -> [u8; 8] {
    let mut all = [0; 8];
    (all[0], all[1]) = (code, to | from << 4);
    all[2..4].copy_from_slice(&offset.to_ne_bytes());
    all[4..8].copy_from_slice(&number.to_ne_bytes());
    all
}

/// The program that runs at each switch. Its arguments are those of the trace point: whether it is a
/// preemption, the `task_struct` of the outgoing thread, and that of the incoming one. The outgoing thread is
/// still the current one.
fn program(map: i32, length: u32, pid: u32) -> [[u8; 8]; 23] {
    const CURRENT_PID_TGID: i32 = 14;
    const PROBE_READ_KERNEL: i32 = 113;
    const MAP_VALUE: u8 = 2;
    let (copy, add, add_number, set) = (0xbf, 0x0f, 0x07, 0xb7);
    let (call, at_least, exit) = (0x85, 0x35, 0x95);
    let (length, pid) = (length as i32, pid as i32);
    [
        instruction(copy, 6, 1, 0, 0),
        // Register 7: the number of the outgoing thread, the lower half of what this returns.
        instruction(call, 0, 0, 0, CURRENT_PID_TGID),
        instruction(0xbc, 7, 0, 0, 0),
        // Register 8: the table. An instruction of double length.
        instruction(0x18, 8, MAP_VALUE, 0, map),
        instruction(0, 0, 0, 0, 0),
        instruction(at_least, 7, 0, 3, length),
        instruction(copy, 1, 8, 0, 0),
        instruction(add, 1, 7, 0, 0),
        instruction(0x72, 1, 0, 0, OFF.into()),
        // Register 7: the number of the incoming thread, read by way of the stack.
        instruction(0x79, 3, 6, 16, 0),
        instruction(add_number, 3, 0, 0, pid),
        instruction(copy, 1, 10, 0, 0),
        instruction(add_number, 1, 0, 0, -8),
        instruction(set, 2, 0, 0, 4),
        instruction(0x7a, 10, 0, -8, 0),
        instruction(call, 0, 0, 0, PROBE_READ_KERNEL),
        instruction(0x61, 7, 10, -8, 0),
        instruction(at_least, 7, 0, 3, length),
        instruction(copy, 1, 8, 0, 0),
        instruction(add, 1, 7, 0, 0),
        instruction(0x72, 1, 0, 0, ON.into()),
        instruction(set, 0, 0, 0, 0),
        instruction(exit, 0, 0, 0, 0),
    ]
}

/// The offset of `pid`, the number of a thread, in `task_struct`, by the kernel's type information.
fn offset_of_pid(types: &[u8]) -> Option<u32> {
    let short = |at: usize| Some(u16::from_ne_bytes(*types.get(at..)?.first_chunk()?));
    let word = |at: usize| Some(u32::from_ne_bytes(*types.get(at..)?.first_chunk()?));
    if short(0)? != 0xeb9f {
        return None;
    }
    let header = word(4)? as usize;
    let mut at = header + word(8)? as usize;
    let end = at + word(12)? as usize;
    let names = header + word(16)? as usize;
    let named = |name: u32, expected: &str| {
        let name = types.get(names + name as usize..)?;
        name.strip_prefix(expected.as_bytes()).filter(|rest| rest.first() == Some(&0))
    };
    while at < end {
        let (name, info) = (word(at)?, word(at + 4)?);
        let (kind, count, bit_fields) = (info >> 24 & 0x1f, info as u16 as usize, info >> 31 != 0);
        at += 12;
        // What follows the header of a type, by its kind.
        let (each, times) = match kind {
            1 | 14 | 17 => (4, 1),
            3 => (12, 1),
            4 | 5 | 15 | 19 => (12, count),
            6 | 13 => (8, count),
            2 | 7..=12 | 16 | 18 => (0, 0),
            _ => return None,
        };
        if kind == 4 && count > 0 && named(name, "task_struct").is_some() {
            for member in (at..).step_by(12).take(count) {
                if named(word(member)?, "pid").is_some() {
                    let bits = word(member + 8)?;
                    return Some(if bit_fields { bits & 0xff_ffff } else { bits } / 8);
                }
            }
        }
        at += each * times;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Type information with an integer, and a `task_struct` with these members.
    fn types(members: &[(&str, u32)], bit_fields: bool) -> Vec<u8> {
        let mut names = b"\0int\0task_struct\0".to_vec();
        let mut types = Vec::new();
        let mut put =
            |words: &[u32]| types.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        put(&[1, 1 << 24, 4, 32]);
        put(&[5, u32::from(bit_fields) << 31 | 4 << 24 | members.len() as u32, 64]);
        for (name, bits) in members {
            put(&[names.len() as u32, 1, *bits]);
            names.extend(name.bytes().chain([0]));
        }
        let mut all = 0xeb9fu16.to_ne_bytes().to_vec();
        all.extend([1, 0]);
        let sizes = [24, 0, types.len() as u32, types.len() as u32, names.len() as u32];
        all.extend(sizes.iter().flat_map(|word| word.to_ne_bytes()));
        all.extend(types);
        all.extend(names);
        all
    }

    #[test]
    fn the_place_of_a_threads_number_is_found_in_type_information() {
        let members = [("pids", 32), ("pid", 96), ("tgid", 128)];
        assert_eq!(offset_of_pid(&types(&members, false)), Some(12));
        let in_bits = [("pid", 4 << 24 | 64)];
        assert_eq!(offset_of_pid(&types(&in_bits, true)), Some(8));
        assert_eq!(offset_of_pid(&types(&[("tgid", 0)], false)), None);
        let whole = types(&members, false);
        for length in 0..whole.len() - 9 {
            // Cutting it off before the names gives an answer, never a panic.
            let _ = offset_of_pid(&whole[..length]);
        }
        assert_eq!(offset_of_pid(b"no type information"), None);
    }

    #[test]
    fn every_failure_says_what_it_takes() {
        let says = |error: i32| failed("its program", error).to_string();
        assert!(says(libc::EPERM).contains("CAP_BPF"), "{}", says(libc::EPERM));
        assert!(says(libc::ENOSYS).contains("CONFIG_BPF_SYSCALL"));
        assert!(says(libc::EINVAL).contains("its program: Invalid argument"));
        let missing = NotPublished::NoTypes(io::Error::from_raw_os_error(libc::ENOENT));
        assert!(missing.to_string().contains("CONFIG_DEBUG_INFO_BTF"), "{missing}");
        assert!(NotPublished::PidNamespace.to_string().contains("initial"));
    }
}
