//! Writes the functions of every lock from one text a kind of lock.
//!
//! A macro of the language would do, but the header is generated from source text, by a program that does
//! not expand macros. So the texts are plain Rust with `{name}` in the place of the lock's name.

#[allow(unreachable_pub, reason = "it is the module of the crate")]
#[path = "src/list.rs"]
mod list;

use std::path::Path;
use std::{env, fs};

fn main() {
    for file in ["build.rs", "src/list.rs", "src/any.rs.in", "src/lock.rs.in", "src/rwlock.rs.in"] {
        println!("cargo::rerun-if-changed={file}");
    }
    let functions = |lock: qspin_core::locks::Lock| {
        let own = if lock.shared {
            include_str!("src/rwlock.rs.in")
        } else {
            include_str!("src/lock.rs.in")
        };
        list::fill(&(include_str!("src/any.rs.in").to_owned() + own), &lock)
    };
    let text: String = list::locks().map(functions).collect();
    let directory = env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    fs::write(Path::new(&directory).join("locks.rs"), text).expect("cargo's OUT_DIR is writable");
}
