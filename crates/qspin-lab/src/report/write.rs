//! Writing a file whole or not at all.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::failure::Failure;

/// Writes `text` to a temporary file beside `path` and renames it, so that nobody ever sees half
/// a report and a failed write leaves the older one as it was.
///
/// # Errors
///
/// When the directory can not be written or the disk is full.
pub fn write_atomically(path: &Path, text: &str) -> Result<(), Failure> {
    let bad = |why: &dyn std::fmt::Display| {
        Failure::usage(format!(
            "cannot write {}: {why}; name a file in a directory that can be written",
            path.display()
        ))
    };
    if path.is_dir() {
        return Err(bad(&"it is a directory"));
    }
    let directory = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    // A temporary file is private by default; a report is as public as the umask lets it be.
    let mut temp = tempfile::Builder::new()
        .prefix(".qspin-")
        .permissions(std::fs::Permissions::from_mode(0o666))
        .tempfile_in(directory)
        .map_err(|error| bad(&error.kind()))?;
    temp.write_all(text.as_bytes())
        .and_then(|()| temp.as_file().sync_all())
        .map_err(|error| bad(&error))?;
    temp.persist(path).map_err(|error| bad(&error.error))?;
    Ok(())
}
