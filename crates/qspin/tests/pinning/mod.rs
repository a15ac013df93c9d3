//! Which CPUs there are, and staying on one.

/// The CPUs that this process may use.
pub(super) fn cpus() -> Vec<usize> {
    // SAFETY: plain calls on a valid place.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        assert_eq!(libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set), 0);
        (0..libc::CPU_SETSIZE as usize).filter(|cpu| libc::CPU_ISSET(*cpu, &set)).collect()
    }
}

/// Keeps this thread on one CPU.
pub(super) fn pin(cpu: usize) {
    // SAFETY: plain calls on a valid place.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        assert_eq!(libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set), 0);
    }
}
