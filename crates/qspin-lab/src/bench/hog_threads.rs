//! Spinning threads beside those that are measured: a program whose other threads compute.
//!
//! The kernel shares CPUs among threads, wherever they belong; but a lock may know of its own
//! process what it cannot know of others, so hogs inside and [outside](super::hogs) are two things.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

use super::cell::STACK;

/// The hogs of a run that are threads of this process.
#[derive(Debug, Default)]
pub struct HogThreads {
    threads: Vec<JoinHandle<()>>,
    /// So many of them spin.
    running: Arc<AtomicUsize>,
}

/// No number of threads: they end.
const END: usize = usize::MAX;

impl HogThreads {
    /// Starts `count` threads, which stand still.
    /// Fails when the machine makes fewer.
    pub fn start(count: usize) -> io::Result<Self> {
        let mut hogs = Self::default();
        for index in 0..count {
            let running = Arc::clone(&hogs.running);
            let hog = thread::Builder::new().stack_size(STACK).spawn(move || spin(index, &running));
            hogs.threads.push(hog?);
        }
        Ok(hogs)
    }

    /// Lets the first `count` spin and the others stand still.
    pub fn run(&self, count: usize) {
        self.tell(count.min(self.threads.len()));
    }

    fn tell(&self, running: usize) {
        self.running.store(running, Ordering::Relaxed);
        for thread in &self.threads {
            thread.thread().unpark();
        }
    }
}

impl Drop for HogThreads {
    fn drop(&mut self) {
        self.tell(END);
        for thread in self.threads.drain(..) {
            // It has nothing to panic with.
            let _ = thread.join();
        }
    }
}

fn spin(index: usize, running: &AtomicUsize) {
    loop {
        match running.load(Ordering::Relaxed) {
            END => return,
            count if index < count => {
                for _ in 0..100_000_u32 {
                    std::hint::black_box(());
                }
            }
            // Told to run before this: the token is there, and it looks again.
            _ => thread::park(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn cpu_time() -> Duration {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` may be written.
        let code = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
        assert_eq!(code, 0);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    }

    #[test]
    fn they_burn_time_when_told_and_end_with_the_run() {
        let hogs = HogThreads::start(2).unwrap();
        hogs.run(2);
        let (began, before) = (Instant::now(), cpu_time());
        while cpu_time() - before < Duration::from_millis(20) {
            assert!(began.elapsed() < Duration::from_secs(60), "no thread spins");
            thread::sleep(Duration::from_millis(1));
        }
        hogs.run(0);
        hogs.run(1);
        drop(hogs);
    }
}
