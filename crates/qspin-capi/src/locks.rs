//! The functions of every lock, generated from `any.rs.in`, and `lock.rs.in` or `rwlock.rs.in`: see `build.rs`.

use core::ffi::c_int;

use lock_api::{RawMutex, RawRwLock};
use qspin_core::lock::Guard;

use crate::pointer::{busy_unless, raw};

include!(concat!(env!("OUT_DIR"), "/locks.rs"));
