//! Linker arguments of the shared library.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Its constructor runs before every other's, so that no lock is taken before one is chosen.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,initfirst");
    // Every symbol that it needs is found when it is loaded, none on the path of a lock; and a lock
    // never goes away under its users.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,now,-z,nodelete");
}
