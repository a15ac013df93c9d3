//! Writing a file whole or not at all.

use std::fs;
use std::io::Write;
use std::path::Path;

use super::BadInput;

/// Writes `text` to a temporary file beside `path` and renames it, so that nobody ever sees half
/// a report and a failed write leaves the older one as it was.
///
/// # Errors
/// When the directory can not be written or the disk is full.
pub fn write_atomically(path: &Path, text: &str) -> Result<(), BadInput> {
    let bad = |why: &dyn std::fmt::Display| {
        BadInput(format!(
            "cannot write {}: {why}; name a file in a directory that exists and can be written",
            path.display()
        ))
    };
    let name = path
        .file_name()
        .ok_or_else(|| bad(&"that is not the name of a file"))?;
    if path.is_dir() {
        return Err(bad(&"it is a directory"));
    }
    let mut temp_name = std::ffi::OsString::from(".");
    temp_name.push(name);
    temp_name.push(format!(".{}.tmp", std::process::id()));
    let temp = path.with_file_name(temp_name);
    let written = fs::File::create(&temp)
        .and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&temp, path));
    if let Err(error) = written {
        let _ = fs::remove_file(&temp);
        return Err(bad(&error));
    }
    Ok(())
}
