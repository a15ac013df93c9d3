//! How much of its time a program waits in the kernel for words of memory: the locks that are not the C library's, too.
//!
//! Rust's and Go's locks call the kernel by themselves, where nothing can be interposed. What is seen of them is the call
//! that each thread is in, now and then.

use std::fs;

/// What was seen so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Futexes {
    /// Threads that were looked at, and of these those that waited in a futex.
    samples: u64,
    waits: u64,
}

impl Futexes {
    /// Looks at every thread of a process once.
    pub(super) fn look(&mut self, process: u32) {
        let tasks = fs::read_dir(format!("/proc/{process}/task"));
        for task in tasks.into_iter().flatten().flatten() {
            if let Ok(call) = fs::read_to_string(task.path().join("syscall")) {
                self.note(&call);
            }
        }
    }

    fn note(&mut self, call: &str) {
        self.samples += 1;
        let number = call.split(' ').next().and_then(|number| number.parse::<libc::c_long>().ok());
        self.waits += u64::from(number == Some(libc::SYS_futex));
    }

    /// What there is to say of it.
    pub(super) fn text(self) -> String {
        match (self.samples, self.waits) {
            (0, _) => String::new(),
            (samples, 0) => format!("; in {samples} samples no thread of it waited in a futex"),
            (samples, waits) => format!(
                "; its threads spent {:.0} % of their time in futexes, by {samples} samples: locks of its own, or \
                 waits for work",
                100.0 * waits as f64 / samples as f64
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_in_a_futex_are_counted_among_all() {
        let mut seen = Futexes::default();
        assert_eq!(seen.text(), "");
        seen.note("running");
        assert!(seen.text().contains("in 1 samples no thread"), "{}", seen.text());
        seen.note("202 0x7f 0x80 0x0 0x0 0x0 0x0 0x7ffe 0x7f");
        seen.note("2022 0x7f");
        seen.note("0 0x3");
        assert!(
            seen.text().contains("25 % of their time in futexes, by 4 samples"),
            "{}",
            seen.text()
        );
    }
}
