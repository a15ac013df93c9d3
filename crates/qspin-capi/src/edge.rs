//! The edge of the library: what must not cross it.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Returns what `run` returns, or `otherwise` if it panics (CAPI-3). Nothing that is called here is known to
/// panic.
///
/// The standard library's panic hook still prints to stderr, as in any program.
pub fn guarded<R>(otherwise: R, run: impl FnOnce() -> R) -> R {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|payload| {
        // Dropping the payload could panic once more.
        core::mem::forget(payload);
        otherwise
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_value() {
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                panic!("dropped");
            }
        }
        assert_eq!(guarded(1, || 2), 2);
        assert_eq!(guarded(1, || std::panic::resume_unwind(Box::new(Bomb))), 1);
    }
}
