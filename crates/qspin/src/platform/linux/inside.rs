//! Internals for the library that interposes the C library's locks. Not part of the interface: they change
//! without notice.

pub use super::environment::Environment;
pub use super::errno::Errno;
pub use super::generation::{current as generation, empty_in_a_child};
pub use super::page::{Whole, pretend_pages_of};
pub use super::syscall::{be_silent, syscall};

/// Does at once what otherwise the first release and the first wait of the process do: registers handlers and
/// asks the kernel. For a library that runs before the C library has an environment, and before this library's
/// own load-time function.
pub fn begin(environment: &Environment) {
    super::load::begin(environment);
    crate::platform::sleep::prepare();
}
