//! On which CPUs threads run.

use std::fmt;
use std::mem;

/// Pinning scenarios, as in the document that introduced paravirt spinlocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "verbatim")]
pub enum Pin {
    /// Each thread has its CPU.
    A,
    /// No pinning.
    B,
    /// All threads run on half of the CPUs.
    C,
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::A => "A",
            Self::B => "B",
            Self::C => "C",
        })
    }
}

/// The CPUs of a run and how threads are laid on them.
#[derive(Debug, Clone)]
pub struct Placement {
    pin: Pin,
    cpus: Vec<usize>,
}

impl Placement {
    /// Lays threads on `cpus`, which must not be empty, in scenario `pin`.
    pub fn new(pin: Pin, cpus: Vec<usize>) -> Self {
        Self { pin, cpus }
    }

    /// Whether threads may run on all CPUs.
    pub fn is_free(&self) -> bool {
        self.pin == Pin::B
    }

    /// The CPUs of the run.
    pub fn all(&self) -> &[usize] {
        &self.cpus
    }

    /// How many CPUs the threads share.
    pub fn cpus(&self) -> usize {
        match self.pin {
            Pin::A | Pin::B => self.cpus.len(),
            Pin::C => self.cpus.len().div_ceil(2),
        }
        .max(1)
    }

    /// The CPUs of thread `index`; `None` when it may run on all.
    fn set(&self, index: usize) -> Option<&[usize]> {
        match self.pin {
            Pin::A => {
                let at = index % self.cpus.len();
                Some(&self.cpus[at..=at])
            }
            Pin::B => None,
            Pin::C => Some(&self.cpus[..self.cpus()]),
        }
    }

    /// Moves the calling thread, number `index`, to its CPUs.
    pub fn settle(&self, index: usize) {
        self.settle_other(0, index);
    }

    /// Moves a thread, number `index`, to its CPUs.
    pub fn settle_other(&self, thread: libc::pid_t, index: usize) {
        let Some(cpus) = self.set(index) else {
            return;
        };
        // SAFETY: a CPU set is plain bits; all zero is the empty set.
        let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
        for &cpu in cpus {
            // SAFETY: the CPUs came from such a set, so they are within its size.
            unsafe { libc::CPU_SET(cpu, &mut set) };
        }
        // SAFETY: the set is initialised and its size is given. A refusal leaves the thread
        // unpinned, which only a CPU taken away during the run can cause.
        unsafe { libc::sched_setaffinity(thread, size_of_val(&set), &raw const set) };
    }
}

/// The CPUs that this process may use, in order, as far as the C library's sets name them.
pub fn allowed_cpus() -> Vec<usize> {
    let mut cpus = qspin::select::allowed_cpus();
    cpus.retain(|&cpu| cpu < libc::CPU_SETSIZE as usize);
    if cpus.is_empty() { vec![0] } else { cpus }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenarios_lay_threads_as_their_names_say() {
        let on = |pin| Placement::new(pin, vec![0, 2, 4, 6]);
        assert_eq!(on(Pin::A).set(5), Some(&[2][..]));
        assert_eq!(on(Pin::B).set(5), None);
        assert_eq!(on(Pin::C).set(5), Some(&[0, 2][..]));
        assert_eq!(on(Pin::C).cpus(), 2);
        assert_eq!(on(Pin::A).cpus(), 4);
        assert_eq!(Placement::new(Pin::C, vec![3]).cpus(), 1);
        assert!(!allowed_cpus().is_empty());
    }
}
