//! How far two CPUs are from each other, now and then during a run.
//!
//! The CPUs of a virtual machine are threads of the host. It may run two of them on one cache now, and on two sockets
//! a second later: then a line takes several times as long from one to the other, and locks that were compared in
//! different seconds were compared on different machines.

use qspin::select;

use super::transfers::between;

/// The lines are loaded so often each time, which takes less than a millisecond.
const ROUNDS: u32 = 9;
/// Times that differ by less than this factor are noise.
const MOVED: f64 = 2.0;

/// What a line took from CPU to CPU each time, in nanoseconds.
#[derive(Debug, Default)]
pub struct Distances {
    ns: Vec<f64>,
    /// The CPUs did not answer each other: they are not asked again, since each time may take seconds.
    silent: bool,
}

impl Distances {
    /// Measures between the first two of these CPUs, where a hypervisor could have moved them and both answer.
    pub fn measure(&mut self, cpus: &[usize]) {
        if let &[from, to, ..] = cpus
            && !self.silent
            && select::hypervisor(&select::Processor).is_some()
        {
            match between(from, to, ROUNDS) {
                Ok(ns) => self.ns.push(ns),
                Err(_) => self.silent = true,
            }
        }
    }

    /// Takes over what another run has measured.
    pub fn append(&mut self, mut other: Self) {
        self.ns.append(&mut other.ns);
    }

    /// What is to be said of that, if anything.
    pub fn warning(&self) -> Option<String> {
        let shortest = self.ns.iter().copied().reduce(f64::min)?;
        let longest = self.ns.iter().copied().fold(shortest, f64::max);
        let far = self.ns.iter().filter(|&&ns| ns >= MOVED * shortest).count();
        (longest >= MOVED * shortest).then(|| {
            format!(
                "A cache line took {shortest:.0} to {longest:.0} ns from one CPU to another, twice the least or more \
                 in {far} of {} measurements: it seems that the host has moved this machine's CPUs during the run. Locks are \
                 best compared within rounds, as the verdict does.",
                self.ns.len()
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_that_were_moved_are_told_from_noise() {
        let warning = |times: &[f64]| Distances { ns: times.to_vec(), silent: false }.warning();
        assert_eq!(warning(&[]), None);
        assert_eq!(warning(&[21.0, 40.0, 25.0]), None);
        let moved = warning(&[21.0, 102.3, 25.0, 43.0]).unwrap();
        assert!(
            moved.contains("21 to 102 ns") && moved.contains("in 2 of 4 measurements"),
            "{moved}"
        );
    }

    #[test]
    fn one_cpu_has_no_distance() {
        let mut distances = Distances::default();
        distances.measure(&[0]);
        distances.append(Distances { ns: vec![20.0], silent: false });
        assert_eq!(distances.ns, [20.0]);
    }
}
