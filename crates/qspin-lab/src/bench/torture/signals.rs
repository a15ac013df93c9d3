//! Signals whose handler does something in the name of the thread that it interrupts.

use std::io;
use std::mem;
use std::os::unix::thread::RawPthread;
use std::ptr;
use std::sync::Once;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering, compiler_fence};

use qspin::platform::interrupt::Interrupt;

/// The signal; sent to the process from outside, it interrupts no thread.
const SIGNAL: libc::c_int = libc::SIGUSR1;

/// A thread that may be interrupted.
pub trait Interruptible {
    /// What the handler does; it must be async-signal-safe. A further signal may interrupt it.
    fn interrupted(&self);
}

thread_local! {
    // No destructor: a handler may look at it in any moment of the thread's life. What it points
    // to is a reference on the stack of `while_interruptible`.
    static WHO: AtomicPtr<&'static dyn Interruptible> = const { AtomicPtr::new(ptr::null_mut()) };
}

/// Runs `body`, in which signals interrupt `who`; before and after it they do nothing.
pub fn while_interruptible(who: &dyn Interruptible, body: impl FnOnce()) {
    struct Ends;
    impl Drop for Ends {
        fn drop(&mut self) {
            // ORDERING: for the compiler alone, since the handler runs on this thread. Nothing that it uses may be taken
            // apart before this, and nothing before it is told so.
            compiler_fence(Ordering::SeqCst);
            WHO.with(|current| current.store(ptr::null_mut(), Relaxed));
            compiler_fence(Ordering::SeqCst);
        }
    }
    let who: *const &dyn Interruptible = &raw const who;
    WHO.with(|current| current.store(who.cast_mut().cast(), Relaxed));
    // ORDERING: as above: the handler knows from here on.
    compiler_fence(Ordering::SeqCst);
    let _ends = Ends;
    body();
}

extern "C" fn handle(_: libc::c_int) {
    let _interrupt = Interrupt::enter();
    // SAFETY: the C library has a place for this thread's error number. A handler leaves it as it
    // was, whatever the call that it interrupted was about to say.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *errno };
    let who = WHO.with(|current| current.load(Relaxed));
    // SAFETY: what is there is on the stack that this handler interrupts, and is taken away
    // before it ends.
    if let Some(who) = unsafe { who.as_ref() } {
        who.interrupted();
    }
    // SAFETY: as above.
    unsafe { *errno = before };
}

/// Installs the handler, once and for the life of the process: a signal that is still under way
/// when a torture ends must meet it. It interrupts itself.
/// Fails when the system refuses the handler.
pub fn listen() -> io::Result<()> {
    static ONCE: Once = Once::new();
    static REFUSED: AtomicI32 = AtomicI32::new(0);
    ONCE.call_once(|| {
        // SAFETY: a `sigaction` is plain data; all zero is an empty mask and no flags. Without
        // SA_RESTART on purpose: a wait in the kernel is to be interrupted.
        let mut action: libc::sigaction = unsafe { mem::zeroed() };
        action.sa_sigaction = handle as extern "C" fn(libc::c_int) as usize;
        action.sa_flags = libc::SA_NODEFER;
        // SAFETY: the handler does nothing that a handler must not, see `Interruptible`.
        if unsafe { libc::sigaction(SIGNAL, &raw const action, ptr::null_mut()) } != 0 {
            let why = io::Error::last_os_error();
            REFUSED.store(why.raw_os_error().unwrap_or(libc::EINVAL), Relaxed);
        }
    });
    match REFUSED.load(Relaxed) {
        0 => Ok(()),
        why => Err(io::Error::from_raw_os_error(why)),
    }
}

/// Interrupts `thread`, which must not have been joined or detached. One that has ended already
/// takes no notice.
pub(super) fn interrupt(thread: RawPthread) {
    // SAFETY: the thread was neither joined nor detached, so its handle is valid.
    unsafe { libc::pthread_kill(thread, SIGNAL) };
}

/// Interrupts the calling thread: the handler has run when this returns. Async-signal-safe.
pub(super) fn interrupt_myself() {
    // SAFETY: raises a signal in this thread.
    unsafe { libc::raise(SIGNAL) };
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    struct Counts(Cell<u32>);

    impl Interruptible for Counts {
        fn interrupted(&self) {
            self.0.set(self.0.get() + 1);
            if self.0.get() < 4 {
                interrupt_myself();
            }
        }
    }

    #[test]
    fn a_handler_knows_the_context_that_it_interrupts_and_nests() {
        listen().unwrap();
        listen().unwrap();
        let counts = Counts(Cell::new(0));
        interrupt_myself();
        while_interruptible(&counts, interrupt_myself);
        interrupt_myself();
        assert_eq!(counts.0.get(), 4);
    }
}
