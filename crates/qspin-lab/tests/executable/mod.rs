//! Files that a test writes and then executes.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Makes `path` an executable file of these bytes.
///
/// A process of its own writes it. If this one did, a child that another test forks meanwhile would
/// have the file open for writing, and the kernel executes no such file (`ETXTBSY`).
pub(crate) fn write(path: &Path, bytes: impl AsRef<[u8]>) {
    let mut install = Command::new("install");
    install.args(["-m", "755", "/dev/stdin"]).arg(path).stdin(Stdio::piped());
    let mut writer = install.spawn().unwrap();
    writer.stdin.take().unwrap().write_all(bytes.as_ref()).unwrap();
    assert!(writer.wait().unwrap().success(), "install {}", path.display());
}
