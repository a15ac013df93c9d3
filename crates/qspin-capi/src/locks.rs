//! The functions of every lock, made of `lock.rs.in` and `rwlock.rs.in` for those in [`list`](crate::list).

use core::ffi::c_int;

include!(concat!(env!("OUT_DIR"), "/locks.rs"));
