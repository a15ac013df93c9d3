//! Queued spinlocks for C and C++: what `qspin.h` declares.
//!
//! # Problem
//! A C program wants a lock in its own memory: of a known size, initialised by the compiler, and the same with
//! the shared library as with the static one. It cannot see a Rust type, cannot catch a panic, and has no
//! borrow checker to keep promises for it.
//!
//! So every lock is a type of fixed size whose initial state is all zeros; its functions are the locks of the
//! crate [`qspin`] behind a pointer. The header is generated from this crate's text and committed:
//! `tests/header.rs` fails when it is not current, and can write it.
//!
//! # Invariants
//! * **CAPI-1** A pointer to a lock that a caller passes is valid and aligned for the C type for as long as the
//!   call lasts. The C type has the size and the alignment of the Rust lock, whose words are atomics: so a
//!   shared reference to the lock may be made of it. A lock that is all zeros is a free lock.
//! * **CAPI-2** The thread that unlocks holds the lock. Nothing checks it; a broken promise breaks that lock,
//!   and no other.
//! * **CAPI-3** No panic leaves the library. Lock functions do not panic (and if one did, the process would
//!   abort at the edge of its `extern "C"` function, rather than unwind into C). Code that allocates or
//!   acquires a lock of the standard library goes through [`edge::guarded`].
//! * **CAPI-4** A returned pointer to text is valid for the life of the process. A passed pointer to text is
//!   null, or points to bytes that end with a zero.
//!
//! # Limits
//! Locks are for the threads of one process: waiters halt on memory of that process. They count events only
//! while [`statistics::qspin_statistics_start`] says so, one switch for the process.

#![allow(non_camel_case_types, reason = "the names are C's")]

mod counting;
pub mod defaults;
pub mod edge;
pub mod general;
pub mod locks;
mod pointer;
pub mod remedies;
pub mod select;
pub mod statistics;
mod text;
pub mod tunables;

/// The list of the locks, for the installer and the tests.
#[doc(hidden)]
pub mod list;
