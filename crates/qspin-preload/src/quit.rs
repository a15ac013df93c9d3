//! SIGQUIT in a program that is watched for deadlocks and has no handler of its own: first the watching command
//! reports what the threads wait for, then the signal takes its default action.

use core::sync::atomic::Ordering::Relaxed;

use libc::c_int;

use crate::sleep::{pause, system_call};
use crate::statistics;

/// How long the command may take: if no command is watching, there is no answer.
const LOOKS: u32 = 200;
const LOOK_NS: u64 = 10_000_000;

const ASKED: u32 = 1;
const ANSWERED: u32 = 2;

extern "C" fn asks(signal: c_int) {
    let quit = statistics::quit();
    quit.store(ASKED, Relaxed);
    for _ in 0..LOOKS {
        if quit.load(Relaxed) == ANSWERED {
            break;
        }
        pause(LOOK_NS);
    }
    // SAFETY: async-signal-safe; zeros are the default action.
    unsafe {
        let action: libc::sigaction = core::mem::zeroed();
        libc::sigaction(signal, &raw const action, core::ptr::null_mut());
        // The signal is delivered when this handler returns.
        let process = system_call(libc::SYS_getpid, []) as u64;
        let thread = system_call(libc::SYS_gettid, []) as u64;
        system_call(libc::SYS_tgkill, [process, thread, signal as u64]);
    }
}

/// For the constructor.
pub(crate) fn begin() {
    // SAFETY: zeros are valid in both structs; the handler is async-signal-safe.
    unsafe {
        let mut before: libc::sigaction = core::mem::zeroed();
        libc::sigaction(libc::SIGQUIT, core::ptr::null(), &raw mut before);
        if before.sa_sigaction == libc::SIG_DFL {
            let handler: extern "C" fn(c_int) = asks;
            let mut action: libc::sigaction = core::mem::zeroed();
            action.sa_sigaction = handler as *const () as libc::sighandler_t;
            action.sa_flags = libc::SA_RESTART;
            libc::sigaction(libc::SIGQUIT, &raw const action, core::ptr::null_mut());
        }
    }
}
