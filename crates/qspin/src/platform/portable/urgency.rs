//! Which threads must not be passed over: signal handlers that say so
//! ([`interrupt`](crate::platform::interrupt)). Policies and priorities are not asked for.

/// A thread asks for its policy once in so many of its waits: here it does not ask.
pub const ASKS_EVERY: u32 = 64;

/// Makes this thread ask for its policy at its next wait: nothing to do.
pub fn policy_changed() {}

/// The priority by which waiters are ordered: 0 for all.
#[must_use]
pub fn priority() -> u32 {
    0
}

/// Whether this thread has a real-time policy, as far as is known.
#[inline]
pub(crate) fn has_real_time_policy() -> bool {
    false
}
