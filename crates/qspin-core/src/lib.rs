//! Linux's family of queued spinlocks, free of any platform.
//!
//! A lock here is an algorithm over a [`platform::Platform`]: it names no atomic, clock, thread
//! or CPU of its own. The crate `qspin` gives it threads; a checker, a simulator and a guest
//! give it theirs.
//!
//! A queued lock answers three independent questions, and there is one place for each:
//!
//! | axis | question | answers |
//! |---|---|---|
//! | [`waiting`] | how does a waiter wait? | [`waiting::Spin`], [`waiting::Halt`] |
//! | [`order`] | who of the queue gets the lock next? | [`order::Fifo`] |
//! | [`admission`] | who may compete for it at all? | [`admission::Queued`], [`admission::Stealing`], [`admission::Culled`] |
//!
//! [`queued::QueuedLock`] is generic over the three, and its slow path exists once. The other
//! locks are small files beside it: [`ticket`], [`mcs`], [`rwlock`], and the manners of one
//! [`flag`]: [`backoff`], [`yielding`], [`simple`].

#![no_std]
#![warn(missing_docs)]

#[cfg(test)]
extern crate std;

pub mod admission;
pub mod backoff;
pub mod condvar;
pub mod events;
pub mod flag;
pub mod lock;
pub mod mcs;
pub mod mutex;
pub mod node;
pub mod once;
pub mod order;
pub mod paravirt_ticket;
pub mod platform;
pub mod queued;
pub mod raw;
pub mod rwlock;
pub mod rwlock_default;
pub mod simple;
pub mod site;
pub mod sleepers;
mod slowpath;
pub mod ticket;
pub mod tuning;
pub mod waiting;
pub mod word;
pub mod yielding;
