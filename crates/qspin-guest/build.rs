//! Builds the guest's image with the flags that it needs, and hands it to the library.
//!
//! Cargo has no code flags for one binary of a package, so this script calls cargo again, for the
//! same package with the feature `image`, with flags and a target directory of its own. That inner
//! build comes here too, and only learns how to link.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// No relocation, since there is no loader to do it; no red zone, since interrupts come on the same stack.
/// (Precompiled `core` has one all the same: see the guest's interrupt entries.) No vectors: some nested
/// hypervisors execute a guest instruction by instruction, and know few of them.
const CODE: [&str; 4] =
    ["-Crelocation-model=static", "-Cno-redzone=yes", "-Cno-vectorize-loops", "-Cno-vectorize-slp"];

const LINK: [&str; 8] = [
    "-nostartfiles",
    "-nostdlib",
    "-static",
    "-no-pie",
    "-Wl,--build-id=none",
    "-Wl,--no-eh-frame-hdr",
    "-Wl,-z,norelro",
    "-Wl,-z,max-page-size=4096",
];

fn main() {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    for path in ["build.rs", "link.ld", "src", "Cargo.toml", "../qspin-core/src"] {
        println!("cargo::rerun-if-changed={path}");
    }
    if env::var_os("CARGO_FEATURE_IMAGE").is_some() {
        for argument in LINK {
            println!("cargo::rustc-link-arg-bin=qspin-guest={argument}");
        }
        println!("cargo::rustc-link-arg-bin=qspin-guest=-Wl,-T,{}", here.join("link.ld").display());
        return;
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let image = out.join("qspin-guest.elf");
    let bytes = match env::var("CARGO_CFG_TARGET_ARCH").as_deref() {
        Ok("x86_64") => fs::read(build(&here, &out)).expect("the image was just built"),
        // Elsewhere there is none, and a command that boots it says so.
        _ => Vec::new(),
    };
    fs::write(&image, bytes).expect("the output directory is writable");
    println!("cargo::rustc-env=QSPIN_GUEST_IMAGE={}", image.display());
}

/// Calls cargo for the image; returns its path.
fn build(here: &Path, out: &Path) -> PathBuf {
    let target = out.join("image");
    let mut cargo = Command::new(env::var_os("CARGO").expect("cargo sets it"));
    // What the outer build was asked for is none of the inner one's business: its wrappers (lints),
    // flags, profiles and features.
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        let foreign = ["RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "RUSTDOCFLAGS", "RUSTFLAGS"];
        let keeps = ["CARGO_HOME", "CARGO_NET_OFFLINE"];
        if foreign.contains(&&*text)
            || text.starts_with("CARGO")
                && !keeps.contains(&&*text)
                && !text.starts_with("CARGO_NET")
            || text.starts_with("CLIPPY")
        {
            cargo.env_remove(&name);
        }
    }
    cargo
        .current_dir(here)
        .env("CARGO_ENCODED_RUSTFLAGS", CODE.join("\u{1f}"))
        .env("CARGO_TARGET_DIR", &target)
        .args(["build", "--locked", "--quiet", "--profile", "guest", "--target", TARGET])
        .args(["--package", "qspin-guest", "--bin", "qspin-guest", "--features", "image"]);
    let status = cargo.status().expect("cargo can be started");
    assert!(status.success(), "the image of the guest was not built: {status}");
    target.join(TARGET).join("guest").join("qspin-guest")
}
