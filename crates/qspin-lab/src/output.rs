//! A file that appears whole or not at all.

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use tempfile::NamedTempFile;

use crate::failure::Failure;

/// A file to be written at the end of a run. Preparing it at the beginning shows at once whether
/// that will be possible. Nothing lies on the disk until [`Output::finish`]: however the program
/// ends in between, it leaves nothing behind.
#[derive(Debug)]
pub struct Output {
    directory: PathBuf,
    path: PathBuf,
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
        if path == Path::new("-") {
            // Standard output shows the tables; a file that is called so is `./-`.
            return Err(wrong(&"rows and reports go to files only"));
        }
        if let Ok(link) = fs::symlink_metadata(path)
            && link.is_symlink()
            && fs::metadata(path).is_err()
        {
            return Err(wrong(&"it is a link that leads to no file"));
        }
        // A link is followed, as it would be by opening it.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let exists = match fs::metadata(&target) {
            Ok(found) if found.is_dir() => return Err(wrong(&"it is a directory")),
            Ok(found) if !found.is_file() => return Err(wrong(&"it is not a regular file")),
            Ok(_) => {
                drop(fs::OpenOptions::new().append(true).open(&target).map_err(|why| wrong(&why))?);
                true
            }
            Err(_) => false,
        };
        // Paths are compared without what is redundant at their ends.
        let written = path.as_os_str().as_encoded_bytes();
        let Some(name) =
            target.file_name().filter(|_| !written.ends_with(b"/") && !written.ends_with(b"/."))
        else {
            return Err(wrong(&"that is not the name of a file"));
        };
        let directory = match target.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        // One name a file, so that two outputs can be told apart.
        let directory = fs::canonicalize(directory).map_err(|why| wrong(&of_directory(&why)))?;
        drop(temporary(&directory).map_err(|why| wrong(&of_directory(&why)))?);
        let path = directory.join(name);
        if !exists {
            // The name itself may be too long, or not allowed by the file system.
            fs::File::create_new(&path)
                .and_then(|_| fs::remove_file(&path))
                .map_err(|why| wrong(&why))?;
        }
        Ok(Self { directory, path })
    }

    /// The file that will be written.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes `text` and puts the file in its place. A file that was there keeps its mode.
    ///
    /// # Errors
    ///
    /// When the disk is full or the directory has gone.
    pub fn finish(self, text: &str) -> anyhow::Result<()> {
        self.finish_bytes(text.as_bytes())
    }

    /// As [`Self::finish`], of what is no text.
    ///
    /// # Errors
    ///
    /// The same.
    pub fn finish_bytes(self, bytes: &[u8]) -> anyhow::Result<()> {
        let write = || -> io::Result<()> {
            let mut file = temporary(&self.directory)?;
            file.write_all(bytes)?;
            if let Ok(old) = fs::metadata(&self.path) {
                file.as_file().set_permissions(old.permissions())?;
            }
            file.as_file().sync_all()?;
            file.persist(&self.path)?;
            Ok(())
        };
        write().with_context(|| format!("cannot write {}", self.path.display()))
    }
}

/// A file that becomes the one with the right name once it is whole.
fn temporary(directory: &Path) -> io::Result<NamedTempFile> {
    tempfile::Builder::new()
        .prefix(".qspin-")
        // As an ordinary new file: what the umask leaves of it.
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(directory)
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
        let output = Output::prepare(&path).unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "before it is finished");
        output.finish("whole\n").unwrap();
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
    fn a_file_keeps_its_mode() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        Output::prepare(&path).unwrap().finish("new").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    }

    #[test]
    fn names_that_no_file_can_have_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(directory.path().join("gone"), &link).unwrap();
        let at = |name: &str| directory.path().join(name);
        for path in [at(&"x".repeat(300)), at("a/"), at("a/."), link, "-".into()] {
            assert!(matches!(Output::prepare(&path), Err(Failure::Usage(_))), "{path:?}");
        }
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1, "the link alone");
    }

    #[test]
    fn what_cannot_be_written_is_said_at_once() {
        for path in ["/dev/null", "/", "/no/such/directory/file", ".."] {
            assert!(matches!(Output::prepare(Path::new(path)), Err(Failure::Usage(_))), "{path}");
        }
    }
}
