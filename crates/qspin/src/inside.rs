//! What the library that interposes the C library's locks needs of the inside of this one. No part of the interface: it
//! changes without notice.

pub use crate::platform::environment::Environment;
pub use crate::platform::errno::Errno;
pub use crate::platform::generation::{current as generation, empty_in_a_child};
pub use crate::platform::page::{Whole, pretend_pages_of};
pub use crate::platform::syscall::{be_silent, syscall};

/// Registers and asks at once what otherwise the first release and the first wait of the process do. For a library that
/// comes before the C library has an environment, and before this one's function that runs at load time.
pub fn begin(environment: &Environment) {
    crate::platform::load::begin(environment);
    crate::platform::sleep::prepare();
}
