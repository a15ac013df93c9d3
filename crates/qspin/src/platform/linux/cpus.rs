//! The CPUs of this thread.

/// Those on which it may run at this moment; none if the kernel does not say.
pub(crate) fn allowed() -> Vec<usize> {
    /// More CPUs than any kernel is built for.
    const MAX: usize = 1 << 20;
    let bits = u64::BITS as usize;
    // The kernel refuses a set that is smaller than its own, and does not say how big that is.
    let mut set = vec![0u64; 1024 / bits];
    loop {
        // SAFETY: the set may be written and its size is given.
        let code =
            unsafe { libc::sched_getaffinity(0, size_of_val(&*set), set.as_mut_ptr().cast()) };
        if code == 0 {
            break;
        }
        if set.len() * bits >= MAX {
            return Vec::new();
        }
        set.resize(set.len() * 2, 0);
    }
    (0..set.len() * bits).filter(|cpu| set[cpu / bits] >> (cpu % bits) & 1 != 0).collect()
}
