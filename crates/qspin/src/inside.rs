//! Internals for the library that interposes the C library's locks. Not part of the interface: they change
//! without notice.

pub use crate::platform::environment::Environment;
pub use crate::platform::errno::Errno;
pub use crate::platform::generation::{current as generation, empty_in_a_child};
pub use crate::platform::page::{Whole, pretend_pages_of};
pub use crate::platform::syscall::{be_silent, syscall};
use crate::tuning::Tuning;

/// Sets what `text` says, `NAME=VALUE` with commas between; what is wrong in it sets nothing.
pub fn apply_tunables(tuning: &mut Tuning, text: &[u8]) {
    crate::tuning::apply(tuning, text);
}

/// Lets other processes change the tunables, unless the environment or the kernel refuses.
pub fn share_tunables() {
    // Nobody has asked for it, so nothing is said.
    let _ = crate::tuning::listen();
}

/// Does at once what otherwise the first release and the first wait of the process do: registers handlers and
/// asks the kernel. For a library that runs before the C library has an environment, and before this library's
/// own load-time function.
pub fn begin(environment: &Environment) {
    crate::platform::load::begin(environment);
    crate::platform::sleep::prepare();
}
