//! The stack of this thread, as the return addresses of its calls.
//!
//! # Problem
//! Most programs keep no frame pointers, so the way from a frame to its caller's is in the tables for
//! exceptions (`.eh_frame`), which nearly every object has. Reading them takes microseconds; it must not
//! allocate, nor take the dynamic linker's lock: a thread may be stopped anywhere while it holds that.
//!
//! So the C library finds an object's table by `_dl_find_object`, which takes no lock (from 2.35 on), and what
//! the table says of a place in the code is cached, in one word. Where there is no table (code generated at run
//! time, an older C library) the frame pointer is followed.
//!
//! # Invariants
//! * **UNWIND-1** By a rule of a table, memory is read only between the stack pointer and the end of the stack,
//!   all of which is mapped. A frame pointer may be any number, so the kernel is asked to read there.

use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicPtr, AtomicU64};

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, NativeEndian, Pointer, RegisterRule,
    UnwindContext, UnwindContextStorage, UnwindSection, UnwindTableRow,
};

use qspin::locks_file::FRAMES;

use crate::processor::{FRAME_POINTER, Here, RETURN_ADDRESS, STACK_POINTER, code_address, here};
use crate::sleep::system_call;

/// How many frames are walked through, including this library's own.
const STEPS: usize = 40;

/// The cache of the tables: a place is in one of the entries of its set.
static RULES: [Set; SETS] = [const { Set::EMPTY }; SETS];
const SETS: usize = 1024;
const WAYS: usize = 4;

/// `struct dl_find_object`.
#[repr(C)]
struct Found {
    flags: u64,
    start: *const u8,
    end: *const u8,
    link_map: *mut c_void,
    eh_frame: *const u8,
    reserved: [u64; 7],
}

type Find = unsafe extern "C" fn(*mut c_void, *mut Found) -> c_int;

/// `_dl_find_object`, and where the first thread's stack ends; null where the C library has none.
static FIND: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
static STACK_END: AtomicU64 = AtomicU64::new(0);
/// Where this library lies: its frames are not shown.
static OWN: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// For the constructor.
pub(crate) fn prepare() {
    // SAFETY: texts that end with a zero.
    let [find, stack_end] = unsafe {
        [c"_dl_find_object", c"__libc_stack_end"]
            .map(|name| libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()))
    };
    if !stack_end.is_null() {
        // SAFETY: the dynamic linker's variable, a pointer, which it has set before.
        STACK_END.store(unsafe { *stack_end.cast::<u64>() }, Relaxed);
    }
    FIND.store(find, Relaxed);
    if let Some(own) = object_at(prepare as *const () as u64) {
        OWN[0].store(own.start.addr() as u64, Relaxed);
        OWN[1].store(own.end.addr() as u64, Relaxed);
    }
}

fn object_at(place: u64) -> Option<Found> {
    let find = FIND.load(Relaxed);
    if find.is_null() {
        return None;
    }
    // SAFETY: the function of this name has this type; zeros are a value of the struct that it fills in.
    unsafe {
        let find: Find = core::mem::transmute(find);
        let mut found: Found = core::mem::zeroed();
        (find(place as *mut c_void, &raw mut found) == 0).then_some(found)
    }
}

/// How to get from a frame to its caller's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rule {
    /// Nothing is known: follow the frame pointer.
    Unknown,
    /// There is no caller.
    End,
    /// The caller's stack pointer is one of two registers plus this many words. The return address lies this many
    /// words below it, and so does the saved frame pointer, or that is unchanged (0).
    Step { by_frame_pointer: bool, words: u32, returns: u16, saved: u16 },
}

impl Rule {
    const fn packed(self) -> u64 {
        match self {
            Self::Unknown => 1,
            Self::End => 2,
            Self::Step { by_frame_pointer, words, returns, saved } => {
                let places = (returns as u64) << 32 | (saved as u64) << 48;
                3 | (by_frame_pointer as u64) << 2 | (words as u64) << 3 | places
            }
        }
    }

    const fn unpacked(word: u64) -> Self {
        match word & 3 {
            3 => Self::Step {
                by_frame_pointer: word & 4 != 0,
                words: word as u32 >> 3,
                returns: (word >> 32) as u16,
                saved: (word >> 48) as u16,
            },
            2 => Self::End,
            _ => Self::Unknown,
        }
    }

    /// The rule for this place in the code.
    fn at(place: u64) -> Self {
        let hash = place.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52;
        let set = &RULES[hash as usize % SETS];
        set.rule(place).unwrap_or_else(|| {
            let found = look_up(place).unwrap_or(Self::Unknown);
            set.keep(place, found);
            found
        })
    }
}

/// Some places in the code and their rules. Each entry is a place, combined with its rule, and the rule.
///
/// Where places that are walked through each time have only one entry between them, each walk looks both up, for
/// microseconds each; with a hundred places that is likely even in a large table.
#[repr(align(64))]
struct Set([[AtomicU64; 2]; WAYS]);

impl Set {
    #[allow(clippy::declare_interior_mutable_const)]
    const EMPTY: Self = Self([const { [const { AtomicU64::new(0) }; 2] }; WAYS]);

    fn rule(&self, place: u64) -> Option<Rule> {
        self.0.iter().find_map(|[name, rule]| {
            let kept = rule.load(Relaxed);
            // Both words must be of one place: two threads may write here at once.
            (kept != 0 && name.load(Relaxed) ^ kept == place).then(|| Rule::unpacked(kept))
        })
    }

    /// In a free entry, or in the place of one that chance chooses.
    fn keep(&self, place: u64, found: Rule) {
        let free = self.0.iter().find(|[_, rule]| rule.load(Relaxed) == 0);
        let [name, rule] = free.unwrap_or(&self.0[place as usize % WAYS]);
        rule.store(found.packed(), Relaxed);
        name.store(place ^ found.packed(), Relaxed);
    }
}

/// Room for the result of a table, on the stack.
struct OnStack;

impl UnwindContextStorage<usize> for OnStack {
    type Rules = [(gimli::Register, RegisterRule<usize>); 32];
    type Stack = [UnwindTableRow<usize, Self>; 3];
}

/// The table of the object that this place lies in.
#[cold]
#[inline(never)]
fn look_up(place: u64) -> Option<Rule> {
    let found = object_at(place)?;
    if found.eh_frame.is_null() {
        return None;
    }
    let rest_of = |start: *const u8| {
        let length = found.end.addr().checked_sub(start.addr())?;
        // SAFETY: code of a frame below lies in this object, so it stays; its tables are not written to.
        Some(unsafe { core::slice::from_raw_parts(start, length) })
    };
    let bases = BaseAddresses::default().set_eh_frame_hdr(found.eh_frame.addr() as u64);
    let header = EhFrameHdr::new(rest_of(found.eh_frame)?, NativeEndian).parse(&bases, 8).ok()?;
    let Pointer::Direct(start) = header.eh_frame_ptr() else { return None };
    let bases = bases.set_eh_frame(start);
    let section = EhFrame::new(rest_of(start as *const u8)?, NativeEndian);
    let fde =
        header.table()?.fde_for_address(&section, &bases, place, EhFrame::cie_from_offset).ok()?;
    if fde.is_signal_trampoline() {
        return Some(Rule::End);
    }
    let mut context = UnwindContext::<usize, OnStack>::new_in();
    let row = fde.unwind_info_for_address(&section, &bases, &mut context, place).ok()?;
    let returns = match row.register(RETURN_ADDRESS) {
        Some(RegisterRule::Undefined) => return Some(Rule::End),
        Some(RegisterRule::Offset(below)) => u16::try_from(-below / 8).ok()?,
        _ => return None,
    };
    let CfaRule::RegisterAndOffset { register, offset } = *row.cfa() else { return None };
    let by_frame_pointer = match register {
        STACK_POINTER => false,
        FRAME_POINTER => true,
        _ => return None,
    };
    let saved = match row.register(FRAME_POINTER) {
        Some(RegisterRule::Offset(below)) => u16::try_from(-below / 8).ok()?,
        _ => 0,
    };
    let words = u32::try_from(offset / 8).ok()?;
    // A rule that does not fit in the word, or makes no sense, counts as unknown.
    (offset % 8 == 0 && words > 0 && words < 1 << 29 && returns > 0).then_some(Rule::Step {
        by_frame_pointer,
        words,
        returns,
        saved,
    })
}

/// The end of the stack that `pointer` is on: a thread's handle is the address of its block, which lies there; the
/// dynamic linker knows that of the first thread. Of any other stack at least the page exists.
fn end_of_stack(pointer: u64) -> u64 {
    const LARGEST: u64 = 1 << 30;
    // SAFETY: asks for a number.
    let thread = unsafe { libc::pthread_self() };
    for end in [thread, STACK_END.load(Relaxed)] {
        if pointer < end && end - pointer < LARGEST {
            return end;
        }
    }
    (pointer | 0xfff) + 1
}

/// Two words at `place`, if it is mapped.
fn read_two(place: u64) -> Option<[u64; 2]> {
    let mut words = [0_u64; 2];
    let to = libc::iovec { iov_base: words.as_mut_ptr().cast(), iov_len: 16 };
    let from = libc::iovec { iov_base: place as *mut c_void, iov_len: 16 };
    // SAFETY: a system call without arguments; one that fills in 16 bytes of this frame.
    let read = unsafe {
        let own = system_call(libc::SYS_getpid, []) as u64;
        let arguments = [own, &raw const to as u64, 1, &raw const from as u64, 1, 0];
        system_call(libc::SYS_process_vm_readv, arguments)
    };
    (read == 16).then_some(words)
}

/// Fills in the return addresses of this thread's calls, the latest first, without those of this library.
/// Returns their number.
#[inline(never)]
pub(crate) fn capture(frames: &mut [u64; FRAMES]) -> usize {
    let Here { mut place, stack_pointer: mut pointer, frame_pointer: mut frame } = here();
    let end = end_of_stack(pointer);
    let own = OWN[0].load(Relaxed)..OWN[1].load(Relaxed);
    let mut depth = 0;
    for step in 0..STEPS {
        // A call is before the address that it returns to.
        let (caller, saved) = match Rule::at(if step == 0 { place } else { place - 1 }) {
            Rule::End => break,
            Rule::Step { by_frame_pointer, words, returns, saved } => {
                let base = if by_frame_pointer { frame } else { pointer };
                let after = base.wrapping_add(u64::from(words) * 8);
                // UNWIND-1.
                let is_mapped = |place: u64| place >= pointer && place <= end - 8;
                let below = |words: u16| after.wrapping_sub(u64::from(words) * 8);
                if after > end || after % 8 != 0 || !is_mapped(below(returns)) {
                    break;
                }
                if saved > 0 {
                    let place = below(saved);
                    if !is_mapped(place) {
                        break;
                    }
                    // SAFETY: UNWIND-1.
                    frame = unsafe { (place as *const u64).read_volatile() };
                }
                // SAFETY: UNWIND-1.
                (unsafe { (below(returns) as *const u64).read_volatile() }, after)
            }
            Rule::Unknown => {
                if frame < pointer || frame % 8 != 0 || frame > end - 16 {
                    break;
                }
                let Some([outer, caller]) = read_two(frame) else { break };
                let after = frame + 16;
                frame = outer;
                (caller, after)
            }
        };
        let caller = code_address(caller);
        if caller < 4096 {
            break;
        }
        (place, pointer) = (caller, saved);
        if own.contains(&place) {
            continue;
        }
        frames[depth] = place;
        depth += 1;
        if depth == FRAMES {
            break;
        }
    }
    depth
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(words: u32) -> Rule {
        Rule::Step { by_frame_pointer: words.is_multiple_of(2), words, returns: 1, saved: 2 }
    }

    #[test]
    fn a_set_keeps_the_rules_of_as_many_places_as_it_has_entries() {
        let set = Set::EMPTY;
        let places = [0x1000, 0x2000, 0x3001, 0x4003];
        for (place, words) in places.into_iter().zip(1..) {
            assert_eq!(set.rule(place), None);
            set.keep(place, step(words));
        }
        for (place, words) in places.into_iter().zip(1..) {
            assert_eq!(set.rule(place), Some(step(words)));
        }
        set.keep(0x5001, Rule::End);
        assert_eq!(set.rule(0x5001), Some(Rule::End));
        let kept = places.into_iter().filter(|place| set.rule(*place).is_some()).count();
        assert_eq!(kept, WAYS - 1, "one has gone for it");
    }
}
