//! A file that appears whole or not at all.

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use tempfile::NamedTempFile;

use crate::failure::Failure;

/// A file to be written at the end of a run. Opening it at the beginning shows at once whether
/// that will be possible; dropping it leaves nothing behind.
#[derive(Debug)]
pub struct Output {
    path: PathBuf,
    file: NamedTempFile,
}

impl Output {
    /// Prepares to write `path`.
    ///
    /// # Errors
    ///
    /// Wrong input, when `path` cannot be written.
    pub fn prepare(path: &Path) -> Result<Self, Failure> {
        let wrong = |why: &dyn std::fmt::Display| {
            Failure::usage(format!(
                "cannot write {}: {why}; name a file in a directory that exists and is writable",
                path.display()
            ))
        };
        // A link is followed, as it would be by opening it.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        match fs::metadata(&target) {
            Ok(found) if found.is_dir() => return Err(wrong(&"it is a directory")),
            Ok(found) if !found.is_file() => return Err(wrong(&"it is not a regular file")),
            Ok(_) => {
                drop(fs::OpenOptions::new().append(true).open(&target).map_err(|why| wrong(&why))?)
            }
            Err(_) => {}
        }
        let Some(name) = target.file_name() else {
            return Err(wrong(&"that is not the name of a file"));
        };
        let directory = match target.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        // One name a file, so that two outputs can be told apart.
        let directory = fs::canonicalize(directory).map_err(|why| wrong(&of_directory(&why)))?;
        let file = tempfile::Builder::new()
            .prefix(".qspin-")
            // As an ordinary new file: what the umask leaves of it.
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(&directory)
            .map_err(|why| wrong(&of_directory(&why)))?;
        Ok(Self { path: directory.join(name), file })
    }

    /// The file that will be written.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes `text` and puts the file in its place.
    ///
    /// # Errors
    ///
    /// When the disk is full or the directory has gone.
    pub fn finish(mut self, text: &str) -> anyhow::Result<()> {
        let path = self.path;
        self.file
            .write_all(text.as_bytes())
            .and_then(|()| self.file.as_file().sync_all())
            .and_then(|()| Ok(self.file.persist(&path).map(drop)?))
            .with_context(|| format!("cannot write {}", path.display()))
    }
}

/// Why nothing can be written into a directory, without the name of a temporary file.
fn of_directory(why: &io::Error) -> String {
    match why.kind() {
        io::ErrorKind::NotFound => "its directory does not exist".to_owned(),
        io::ErrorKind::PermissionDenied => "its directory is not writable".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_of_a_file_that_was_not_finished() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rows.jsonl");
        drop(Output::prepare(&path).unwrap());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        Output::prepare(&path).unwrap().finish("whole\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "whole\n");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_stays_a_link() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        Output::prepare(&link).unwrap().finish("new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
    }

    #[test]
    fn what_cannot_be_written_is_said_at_once() {
        for path in ["/dev/null", "/", "/no/such/directory/file", ".."] {
            assert!(matches!(Output::prepare(Path::new(path)), Err(Failure::Usage(_))), "{path}");
        }
    }
}
