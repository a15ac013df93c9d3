//! Turning a group's counters into a file that other processes find, and what `fork` does to it.
//!
//! # Invariants
//! * **PUBLISH-1** A group is published by the thread that holds the turn, with every signal blocked, so that
//!   neither another thread nor a handler comes in between. Only `fork` waits for the turn: a thread that does
//!   not get it counts in `early`.
//! * **PUBLISH-2** `fork` holds the turn, so no child begins with a half-published group. A fork in a signal
//!   handler that interrupted a fork of the same thread shares its turn: `TURN` names the thread, `NESTED`
//!   counts the forks inside the first. Only the thread that holds the turn changes `NESTED`, and a handler
//!   leaves it as it found it; the last fork to end frees the turn.
//! * **PUBLISH-3** A group is published only once it is in the list (`listed` is `LISTED`). A group that the
//!   child of a fork finds outside the list has at most counted in `early`. Either it was never claimed for
//!   listing, or a thread of the parent that does not exist here claimed it, and the claim bears an older
//!   generation. Then the first thread to count claims it anew, and takes away what the parent had counted.
//! * **PUBLISH-4** A call here leaves `errno` as it was, as counting must.
//! * **PUBLISH-5** The kernel's answer alone decides: after a failed replacement the content of the pages is
//!   unknown, and no thread touches them again.

use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{
    AtomicBool, AtomicI32, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize,
};

use qspin_core::events::Event;

use super::clock::since_boot_ns;
use super::signals::SignalsBlocked;
use super::syscall::syscall;
use super::{load, page};
use crate::events::group::{ASIDE, Group, HEADER, NEW, OWNED, Pages, Record, SHARED};

/// The thread that publishes a group, or forks; 0 if there is none.
static TURN: AtomicUsize = AtomicUsize::new(0);

/// Forks of the thread that holds the turn, inside its first one (PUBLISH-2).
static NESTED: AtomicU32 = AtomicU32::new(0);

/// Every group that was published, and others that have counted (PUBLISH-3).
static GROUPS: AtomicPtr<Group> = AtomicPtr::new(ptr::null_mut());

/// Differs between a process and those that it descends from by `fork`. Neither of the next two.
static GENERATION: AtomicU32 = AtomicU32::new(1);
/// Value of `listed` of a group that no thread has claimed yet.
const UNLISTED: u32 = 0;
/// Value of `listed` of a group in the list. Other values are the generation of the claim.
const LISTED: u32 = u32::MAX;

/// An address that identifies this thread while it lives: the same in the child of its fork.
fn this_thread() -> usize {
    thread_local! {
        // Never used but for its address, which is not 0.
        static PLACE: AtomicU8 = const { AtomicU8::new(0) };
    }
    PLACE.with(|place| ptr::from_ref(place).addr())
}

/// Publishes the group, unless another thread is doing so.
pub(crate) fn try_publish(group: &'static Group) {
    let _signals = SignalsBlocked::new();
    // PUBLISH-1, PUBLISH-3.
    if !list(group) || !try_turn() {
        return;
    }
    if group.is_new() {
        publish(group);
    }
    end_turn();
}

fn try_turn() -> bool {
    // PUBLISH-1. ORDERING: Acquire pairs with the Release of `end_turn`.
    TURN.compare_exchange(0, this_thread(), Acquire, Relaxed).is_ok()
}

fn end_turn() {
    TURN.store(0, Release);
}

/// Puts the group into the list. Returns whether it is there now: not if another thread is listing it.
fn list(group: &'static Group) -> bool {
    load::register();
    let generation = GENERATION.load(Relaxed);
    // ORDERING: Acquire pairs with the Release below: what the parent counted is taken away.
    let seen = group.shown.listed.load(Acquire);
    if seen == LISTED || seen == generation {
        return seen == LISTED;
    }
    // PUBLISH-3: until the group is claimed no thread of this process adds to it, so the thread whose claim
    // succeeds has seen all that the parent had counted.
    let inherited = group.early();
    if group.shown.listed.compare_exchange(seen, generation, Relaxed, Relaxed).is_err() {
        return false;
    }
    if seen != UNLISTED {
        group.take_away(&inherited);
    }
    let this = ptr::from_ref(group).cast_mut();
    let mut first = GROUPS.load(Relaxed);
    loop {
        group.shown.next.store(first, Relaxed);
        // ORDERING: Release pairs with the Acquire of `forked`: the group's link.
        match GROUPS.compare_exchange_weak(first, this, Release, Relaxed) {
            Ok(_) => break,
            Err(now) => first = now,
        }
    }
    group.shown.listed.store(LISTED, Release);
    true
}

/// Whether all that the group has counted is its parent's (PUBLISH-3).
pub(crate) fn is_inherited(group: &Group) -> bool {
    let seen = group.shown.listed.load(Relaxed);
    seen != UNLISTED && seen != LISTED && seen != GENERATION.load(Relaxed)
}

/// Tells the C library what to call around `fork`. For [`load`].
pub(crate) fn register() {
    // SAFETY: valid handlers, which stay loaded as long as this code does.
    unsafe { libc::pthread_atfork(Some(fork_begins), Some(fork_ends), Some(forked)) };
}

/// Before `fork`: keeps groups from being published until it is over (PUBLISH-2).
extern "C" fn fork_begins() {
    // Only this thread stores its own name, so there is nothing to order.
    if TURN.load(Relaxed) == this_thread() {
        NESTED.store(NESTED.load(Relaxed) + 1, Relaxed);
        return;
    }
    while !try_turn() {
        // The thread that holds the turn has all signals blocked, or is forking; so it is soon done.
        // SAFETY: a system call without arguments that touches no memory of ours.
        unsafe { syscall(libc::SYS_sched_yield, []) };
    }
}

/// After `fork`, in the parent.
extern "C" fn fork_ends() {
    match NESTED.load(Relaxed) {
        0 => end_turn(),
        nested => NESTED.store(nested - 1, Relaxed),
    }
}

/// After `fork`, in the child: its groups begin anew. They are published, and so separated from the parent's,
/// when they first count; a child that only executes another program has nothing to do.
extern "C" fn forked() {
    let generation = GENERATION.load(Relaxed);
    GENERATION.store(generation % (LISTED - 1) + 1, Relaxed);
    // ORDERING: Acquire pairs with the Release of `list`.
    let mut next = GROUPS.load(Acquire);
    // SAFETY: PUBLISH-3: the list holds references to statics.
    while let Some(group) = unsafe { next.as_ref() } {
        group.begin_anew();
        // The thread that put it here may not have got to the point of saying so.
        group.shown.listed.store(LISTED, Relaxed);
        next = group.shown.next.load(Relaxed);
    }
    fork_ends();
}

/// What is kept of a group beside its counters.
pub(crate) struct Shown {
    file: File,
    /// Whether it is in the list of groups (PUBLISH-3).
    listed: AtomicU32,
    next: AtomicPtr<Group>,
    /// The pages may hold another process's counts: of the parent of a fork.
    used: AtomicBool,
}

impl Shown {
    /// Not published.
    // The constant is a template: every use makes a new one.
    #[allow(clippy::declare_interior_mutable_const)]
    pub(crate) const NOT_YET: Self = Self {
        file: File::none(),
        listed: AtomicU32::new(UNLISTED),
        next: AtomicPtr::new(ptr::null_mut()),
        used: AtomicBool::new(false),
    };
}

impl Pages {
    /// Where the records begin, the distance from one to the next, and their number.
    const LAYOUT: [usize; 3] = [HEADER, size_of::<Record>(), 1 + SHARED + OWNED];

    /// The description of the file, in words.
    fn header(&self) -> &[AtomicU8; HEADER] {
        &self.0.header
    }
}

impl Group {
    /// The pages cannot be used.
    fn stand_aside(&self) {
        self.state.store(ASIDE, Relaxed);
    }

    /// In the child of a fork: forgets what the parent has counted, without touching it.
    fn begin_anew(&self) {
        self.state.store(NEW, Relaxed);
        for counter in &self.early.0 {
            counter.store(0, Relaxed);
        }
        self.shown.file.close();
    }

    /// What was counted before the pages were ready.
    fn early(&self) -> [u64; Event::ALL.len()] {
        Event::ALL.map(|event| self.early.0[event as usize].load(Relaxed))
    }

    /// In the child of a fork: forgets this much, and not what other threads add meanwhile. A reset that comes
    /// in between has forgotten it already.
    fn take_away(&self, amounts: &[u64; Event::ALL.len()]) {
        for (event, amount) in Event::ALL.into_iter().zip(amounts) {
            let less = |count: u64| Some(count.saturating_sub(*amount));
            let _ = self.early.0[event as usize].fetch_update(Relaxed, Relaxed, less);
        }
    }
}

/// A group's open file.
pub(crate) struct File {
    descriptor: AtomicI32,
    device: AtomicU64,
    inode: AtomicU64,
}

impl File {
    pub(crate) const fn none() -> Self {
        Self { descriptor: AtomicI32::new(-1), device: AtomicU64::new(0), inode: AtomicU64::new(0) }
    }

    /// Remembers which file it is.
    pub(crate) fn keep(&self, descriptor: u64) {
        if let Some((device, inode)) = identity(descriptor) {
            self.device.store(device, Relaxed);
            self.inode.store(inode, Relaxed);
            self.descriptor.store(descriptor as i32, Relaxed);
        }
    }

    /// Closes it, unless the program has closed it and has another of that number.
    pub(crate) fn close(&self) {
        let Ok(descriptor) = u64::try_from(self.descriptor.swap(-1, Relaxed)) else { return };
        let kept = (self.device.load(Relaxed), self.inode.load(Relaxed));
        if identity(descriptor) == Some(kept) {
            close(descriptor);
        }
    }
}

/// Device and inode of an open file.
fn identity(descriptor: u64) -> Option<(u64, u64)> {
    let mut status = core::mem::MaybeUninit::<libc::stat>::zeroed();
    let arguments = [descriptor, status.as_mut_ptr() as u64];
    // SAFETY: a valid place of the size that the kernel fills.
    if unsafe { syscall(libc::SYS_fstat, arguments) } != 0 {
        return None;
    }
    // SAFETY: filled by the kernel; zeroes are a valid value besides.
    let status = unsafe { status.assume_init() };
    Some((status.st_dev, status.st_ino))
}

fn close(descriptor: u64) {
    // SAFETY: touches no memory.
    unsafe { syscall(libc::SYS_close, [descriptor]) };
}

/// Gives the group pages of this process's own, shown to others if that is possible.
fn publish(group: &'static Group) {
    let pages = group.pages;
    let replaced = match make_file(group.file_name, size_of::<Pages>() as u64) {
        Some(descriptor) => {
            let replaced = replace(pages, Some(descriptor));
            if replaced {
                group.shown.file.keep(descriptor);
            } else {
                close(descriptor);
            }
            replaced
        }
        // No other process will see them. Untouched pages are as good as new ones.
        None => !group.shown.used.load(Relaxed) || replace(pages, None),
    };
    group.shown.used.store(true, Relaxed);
    if replaced {
        describe(group);
        group.become_ready();
    } else {
        group.stand_aside();
    }
}

/// Replaces the pages by those of a file, or by new ones, which are zero.
fn replace(pages: &'static Pages, descriptor: Option<u64>) -> bool {
    let flags = libc::MAP_FIXED
        | if descriptor.is_some() {
            libc::MAP_SHARED
        } else {
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS
        };
    if !page::are_whole() {
        return false;
    }
    let place = ptr::from_ref(pages) as u64;
    let arguments = [
        place,
        size_of::<Pages>() as u64,
        (libc::PROT_READ | libc::PROT_WRITE) as u64,
        flags as u64,
        descriptor.unwrap_or(u64::MAX),
        0,
    ];
    // SAFETY: `Pages` is whole pages (PAGE-1 of `page`). They hold only atomics, which no thread touches now
    // (GROUP-1, PUBLISH-1) and which are zero before and after; in the child of a fork its one thread has left
    // the parent's counts behind.
    unsafe { syscall(libc::SYS_mmap, arguments) == place as i64 }
}

/// The lowest number that the file gets: out of the way of programs that rely on the numbers of the files that
/// they open, and of standard streams that are closed.
const LOWEST: u64 = 200;

/// Makes a file in memory, of this size and sealed to it. The name ends with a zero. Async-signal-safe.
pub(crate) fn make_file(name: &'static str, size: u64) -> Option<u64> {
    // The kernel answers a file beyond this limit with a signal, which kills by default.
    if file_size_limit() < size {
        return None;
    }
    let name = name.as_ptr() as u64;
    let create = |flags: libc::c_uint| {
        // SAFETY: the name ends with a zero.
        let made = unsafe { syscall(libc::SYS_memfd_create, [name, u64::from(flags)]) };
        u64::try_from(made).ok()
    };
    // A kernel before 6.3 does not know the first; one after may insist on it.
    let first = create(libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING | libc::MFD_NOEXEC_SEAL)
        .or_else(|| create(libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING))?;
    let descriptor = move_away(first)?;
    // SAFETY: touches no memory.
    if unsafe { syscall(libc::SYS_ftruncate, [descriptor, size]) } != 0 {
        close(descriptor);
        return None;
    }
    // With these seals no writer can truncate it under the counting threads.
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    control(descriptor, libc::F_ADD_SEALS, seals as u64);
    Some(descriptor)
}

/// The same file under a number that is not below [`LOWEST`], or at least no standard stream's.
fn move_away(first: u64) -> Option<u64> {
    let moved = control(first, libc::F_DUPFD_CLOEXEC, LOWEST);
    let moved = moved.or_else(|| (first < 3).then(|| control(first, libc::F_DUPFD_CLOEXEC, 3))?);
    if moved.is_some() || first < 3 {
        close(first);
        return moved;
    }
    Some(first)
}

fn control(descriptor: u64, command: libc::c_int, argument: u64) -> Option<u64> {
    // SAFETY: the commands used here touch no memory.
    let result = unsafe { syscall(libc::SYS_fcntl, [descriptor, command as u64, argument]) };
    u64::try_from(result).ok()
}

/// The largest file that this process may make.
fn file_size_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    let arguments = [0, u64::from(libc::RLIMIT_FSIZE), 0, &raw mut limit as u64];
    // SAFETY: a valid place of the size that the kernel fills.
    unsafe { syscall(libc::SYS_prlimit64, arguments) };
    limit.rlim_cur
}

/// Version of the format that [`describe`] writes. Lines may be added without a new one.
const FORMAT: u64 = 1;

/// Writes what the file holds, as text, on its first page.
fn describe(group: &'static Group) {
    let mut text = Text::after_the_first_byte(group.pages.header());
    text.words(&["spin-stat"]).number(FORMAT).end_line();
    text.words(&["group", group.name()]).end_line();
    // SAFETY: a system call without arguments that touches no memory of ours.
    let process = unsafe { syscall(libc::SYS_getpid, []) };
    text.words(&["pid"]).number(process as u64).end_line();
    text.words(&["started"]).number(since_boot_ns()).end_line();
    text.words(&["records"]);
    for number in Pages::LAYOUT {
        text.number(number as u64);
    }
    text.end_line();
    text.words(&["mark"]).number(0).end_line();
    for event in Event::ALL {
        text.words(&["event", event.name()]);
        if let Some(alias) = event.alias() {
            text.words(&[alias]);
        }
        text.end_line();
    }
    text.words(&["end"]).end_line();
    // ORDERING: Release: a reader that sees the first letter sees the others.
    group.pages.header()[0].store(b'q', Release);
}

/// The longest header: the lines about the file, and a line an event.
const LONGEST: usize = {
    let mut length = 512;
    let mut index = 0;
    while index < Event::ALL.len() {
        let event = Event::ALL[index];
        let alias = match event.alias() {
            Some(alias) => alias.len() + 1,
            None => 0,
        };
        length += "event ".len() + event.name().len() + alias + 2;
        index += 1;
    }
    length
};
const _: () = assert!(LONGEST < HEADER);

/// Text on a page, written without allocation: words with a space between them.
pub(crate) struct Text {
    page: &'static [AtomicU8],
    at: usize,
}

impl Text {
    /// Text on `page`, from its second byte on: the first is written last, so that a reader that sees it sees
    /// the others.
    pub(crate) fn after_the_first_byte(page: &'static [AtomicU8]) -> Self {
        Self { page, at: 1 }
    }

    fn byte(&mut self, byte: u8) {
        // `LONGEST` of each caller guarantees that the page is long enough.
        if let Some(place) = self.page.get(self.at) {
            place.store(byte, Relaxed);
        }
        self.at += 1;
    }

    pub(crate) fn words(&mut self, words: &[&str]) -> &mut Self {
        for word in words {
            word.bytes().for_each(|byte| self.byte(byte));
            self.byte(b' ');
        }
        self
    }

    pub(crate) fn number(&mut self, number: u64) -> &mut Self {
        let mut scale = 1;
        while number / scale >= 10 {
            scale *= 10;
        }
        while scale > 0 {
            self.byte(b'0' + (number / scale % 10) as u8);
            scale /= 10;
        }
        self.byte(b' ');
        self
    }

    /// Ends the line, in the place of the space after its last word.
    pub(crate) fn end_line(&mut self) {
        self.at -= 1;
        self.byte(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{CounterGroup, Events};

    #[test]
    fn a_group_without_pages_counts_all_the_same() {
        crate::counter_group!(Aside = "aside");
        Aside::group().stand_aside();
        Aside.add(Event::HashCount, 5);
        assert_eq!(Aside::count_of(Event::HashCount), 5);
        Aside::reset();
        Aside.count(Event::HashCount);
        assert_eq!(Aside::count_of(Event::HashCount), 1);
        assert_eq!(Aside::group().pages.sum(Event::HashCount), 0, "no thread touches them");
    }
}
