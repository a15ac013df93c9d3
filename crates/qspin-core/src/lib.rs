//! Linux's family of queued spinlocks, free of any platform.
//!
//! A lock here is an algorithm over a [`platform::Platform`]: it names no atomic, clock, thread or CPU of its
//! own. The crate `qspin` gives it threads; a checker, a simulator and a guest give it theirs.
//!
//! There are two families. [`locks`] is the register of every lock in them, and of what is known about it.
//!
//! # The queued family
//! The word holds the tail of a queue of waiters. Such a lock answers three independent questions, and there is
//! one place for each:
//!
//! | axis | question | answers |
//! |---|---|---|
//! | [`waiting`] | how does a waiter wait? | [`waiting::Spin`], [`waiting::Halt`] |
//! | [`order`] | which waiter acquires the lock next? | [`order::Fifo`], [`order::Numa`] |
//! | [`admission`] | which threads may compete for it at all? | [`admission::Queued`], [`admission::Stealing`], [`admission::Culled`] |
//!
//! [`locks::queued::QueuedLock`] is generic over the three, and its slow path exists once. The queued
//! reader-writer lock, [`locks::queued_rw`], lines its waiters up with it.
//!
//! # The sleeping family
//! One word, released by a plain store; waiters sleep beside it, in buckets that are found by its address:
//! [`sleepers`]. The default mutex ([`locks::mutex`]), the default reader-writer lock ([`locks::rwlock`]), the
//! condition variable ([`condvar`]) and [`once`].
//!
//! # What they share
//! Nodes, kicks, events, tunables, and culling: a CPU that has used up its barging quantum past waiters lets a
//! waiter in. Beside both stand the small locks: [`locks::ticket`], [`locks::mcs`], and the manners of one
//! [`flag`].

//!
//! # Stability
//! Programs take the crate `qspin`. Here the lock types in [`locks`], the adaptors in [`raw`], and the traits of
//! [`platform`] and [`lock`] follow semver. **Everything else is unstable and may change in a minor release**: the axes
//! ([`waiting`], [`order`], [`admission`]), [`sleepers`], [`condvar`] and [`once`] below their adaptors, [`word`],
//! [`node`], [`site`], [`events`], [`tuning`], [`flag`], [`atomic`] and [`processor`] are public for the platforms and
//! checkers of this repository. A platform of your own implements a trait with provided methods, of which a minor
//! release may add more.

#![no_std]
#![warn(missing_docs)]

#[cfg(test)]
extern crate std;

pub mod admission;
pub mod atomic;
pub mod condvar;
mod counting;
pub mod events;
pub mod flag;
mod kick;
pub mod lock;
pub mod locks;
mod nesting;
pub mod node;
pub mod observer;
pub mod once;
pub mod order;
pub mod platform;
pub mod processor;
mod quantum;
pub mod raw;
#[cfg(test)]
mod scripted;
pub mod site;
pub mod sleepers;
mod slowpath;
pub mod tuning;
pub mod waiting;
pub mod word;
