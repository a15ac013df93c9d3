//! What differs between processors: a thread's own words, the way into an interposed function, and a stack.
//!
//! One file a processor, all with the same names:
//! * `own_word!(load | store | increment "symbol")`: a word in this thread's share of the library's memory
//!   (the initial-exec model), read and written whole by one instruction each;
//! * `call_with_site!(n, function)`: the body of a naked function of `n` arguments, which calls `function` with
//!   its return address as one more;
//! * `here()`: where the running function is in the code, its stack pointer and its frame pointer;
//! * `code_address()`: a return address from the stack, as an address;
//! * the numbers that the tables for exceptions have for registers.

#[cfg(target_arch = "aarch64")]
#[path = "processor/aarch64.rs"]
mod this;
#[cfg(target_arch = "x86_64")]
#[path = "processor/x86_64.rs"]
mod this;

pub(crate) use this::*;

/// A place in the code, with the stack of the function that is there.
#[derive(Clone, Copy)]
pub(crate) struct Here {
    pub(crate) place: u64,
    pub(crate) stack_pointer: u64,
    pub(crate) frame_pointer: u64,
}
