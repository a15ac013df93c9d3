//! The lock under check: its type, its tunables, and how many threads use it how often.
//!
//! `qspin-check emit` writes that down, from its catalogue, in a file whose path is in `QSPIN_CLIENT_SUBJECT`. Without
//! it the client is the one of `native.rs`, which is such a file.

// A subject needs some of these.
#![allow(unused_imports)]

use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::{self, *};

use qspin_core::locks::mutex::DefaultLock;
use qspin_core::locks::queued::QueuedLock;
use qspin_core::locks::rwlock::DefaultRwLock;
use qspin_core::order::{Fifo, Numa};
use qspin_core::site::Site;
use qspin_core::tuning::{Adaptive::*, Defer::*, Tuning};
use qspin_core::waiting::{Halt, Spin};

use crate::beside::*;
use crate::contend::{Exclusive, Shared};
use crate::convert::*;
use crate::no_pending::NoPending;

/// What the types of the catalogue are generic over.
pub(crate) struct M;

pub(crate) trait Words {
    type Word;
    type Address;
}

impl Words for M {
    type Word = crate::word::Word;
    type Address = AtomicUsize;
}

type Word<M> = <M as Words>::Word;
#[allow(dead_code)]
type Address<M> = <M as Words>::Address;

/// The lock of the register whose `Id` is set by `--cfg`.
macro_rules! chosen {
    (() $($group:ident { $($id:ident: $module:ident = $lock:path, $about:literal;)* })*) => {
        $($(
            #[cfg($id)]
            use $lock as Lock;
        )*)*
    };
}

qspin_core::for_each_lock!(chosen);

#[cfg(not(chosen))]
use qspin_core::locks::queued::NativeLock as Lock;

#[cfg(chosen)]
include!(env!("QSPIN_CLIENT_SUBJECT"));
#[cfg(not(chosen))]
include!("native.rs");
