//! Ctrl-C: the finished rounds are kept, so measuring must stop early instead of dying.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// Whether the user asked to stop; the controller sleeps on it.
#[derive(Debug, Clone)]
pub struct Interrupt {
    asked: Arc<AtomicBool>,
    controller: Thread,
}

impl Interrupt {
    /// An interrupt that is never raised, for the calling thread to sleep on.
    pub fn never() -> Self {
        Self { asked: Arc::new(AtomicBool::new(false)), controller: thread::current() }
    }

    /// Raised by SIGINT and SIGTERM; a second signal ends the process at once. The calling thread
    /// is the one that sleeps.
    /// Fails when the signal handler cannot be installed.
    pub fn on_signals() -> anyhow::Result<Self> {
        let interrupt = Self::never();
        let raised = interrupt.clone();
        ctrlc::set_handler(move || {
            if raised.is_raised() {
                std::process::exit(130);
            }
            raised.raise();
        })?;
        Ok(interrupt)
    }

    /// Asks to stop.
    pub fn raise(&self) {
        self.asked.store(true, Ordering::SeqCst);
        self.controller.unpark();
    }

    /// Whether the user asked to stop.
    pub fn is_raised(&self) -> bool {
        self.asked.load(Ordering::SeqCst)
    }

    /// Sleeps for `time`, or until the user asks to stop; says whether that was so.
    pub fn sleep(&self, time: Duration) -> bool {
        let end = Instant::now() + time;
        loop {
            if self.is_raised() {
                return true;
            }
            let now = Instant::now();
            if now >= end {
                return false;
            }
            thread::park_timeout(end - now);
        }
    }
}
