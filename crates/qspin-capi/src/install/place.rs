//! Installs a tree of files: whole, or not at all.
//!
//! ```text
//!  everything is written beside its place, in PREFIX/.qspin-install-PID
//!      └─► each file: what stood there is moved aside, the file is moved in
//!              ├─ one of them fails ──► all of them are moved back, in reverse
//!              └─► what was moved aside is removed
//! ```
//! Signals that end a program are delayed until it is done. `kill -9` or a power failure during the moves
//! leaves the directory, with what was moved aside in `old`.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::Failure;
use crate::tree::{Content, Tree};

/// While this value lives, the signals with which people end a program are blocked.
struct Uninterrupted(libc::sigset_t);

impl Uninterrupted {
    fn begin() -> Self {
        // SAFETY: sets of signals that are valid and initialised before they are used.
        unsafe {
            let (mut set, mut before) = (core::mem::zeroed(), core::mem::zeroed());
            libc::sigemptyset(&raw mut set);
            for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGPIPE]
            {
                libc::sigaddset(&raw mut set, signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, &raw mut before);
            Self(before)
        }
    }
}

impl Drop for Uninterrupted {
    fn drop(&mut self) {
        // SAFETY: the set was written by the call above.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, core::ptr::null_mut())
        };
    }
}

/// Steps that can be undone, the last one first.
#[derive(Default)]
struct Undo(Vec<Step>);

enum Step {
    /// A directory was made.
    Made(PathBuf),
    /// A file was moved from one place to another.
    Moved(PathBuf, PathBuf),
    /// The staging directory was made, with `new` and `old` in it.
    Staged(PathBuf),
}

impl Undo {
    fn make(&mut self, directory: &Path) -> io::Result<()> {
        if directory.is_dir() {
            return Ok(());
        }
        if let Some(parent) = directory.parent() {
            self.make(parent)?;
        }
        fs::create_dir(directory)?;
        self.0.push(Step::Made(directory.to_owned()));
        Ok(())
    }

    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)?;
        self.0.push(Step::Moved(from.to_owned(), to.to_owned()));
        Ok(())
    }

    /// Undoes every step. A step that cannot be undone (another program is at work there) is left.
    fn undo(&mut self) {
        while let Some(step) = self.0.pop() {
            let _ = match step {
                Step::Made(directory) => fs::remove_dir(directory),
                Step::Moved(from, to) => fs::rename(to, from),
                Step::Staged(stage) => {
                    let _ = fs::remove_dir_all(stage.join("new"));
                    // What could not be moved back is still there.
                    let _ = fs::remove_dir(stage.join("old"));
                    fs::remove_dir(stage)
                }
            };
        }
    }
}

fn written(path: &Path, content: &Content) -> io::Result<()> {
    match content {
        Content::Link(target) => symlink(target, path),
        Content::File(bytes, executable) => {
            let mode = if *executable { 0o755 } else { 0o644 };
            let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
            file.write_all(bytes)?;
            file.sync_all()
        }
    }
}

/// Reports what is wrong with `prefix`, as far as that can be seen beforehand.
pub(crate) fn check(prefix: &Path) -> Result<(), Failure> {
    let wrong = |why: &str| {
        let shown = prefix.to_string_lossy().replace(char::is_control, "?");
        Err(Failure::Input(format!(
            "cannot install below '{shown}': {why}; name a directory that you may write to, or that can be made"
        )))
    };
    let nearest = prefix.ancestors().find(|path| path.symlink_metadata().is_ok());
    let Some(nearest) = nearest else { return wrong("there is no such place") };
    if !nearest.is_dir() {
        return wrong("there is something on the way that is not a directory");
    }
    use std::os::unix::ffi::OsStrExt;
    let Ok(path) = std::ffi::CString::new(nearest.as_os_str().as_bytes()) else {
        return wrong("there is a zero in it");
    };
    // SAFETY: text that ends with a zero.
    if unsafe { libc::access(path.as_ptr(), libc::W_OK | libc::X_OK) } != 0 {
        return wrong(&io::Error::last_os_error().to_string());
    }
    Ok(())
}

/// Installs `tree` below `prefix`.
pub(crate) fn install(prefix: &Path, tree: &Tree) -> Result<(), Failure> {
    let _uninterrupted = Uninterrupted::begin();
    let stage = prefix.join(format!(".qspin-install-{}", std::process::id()));
    let mut undo = Undo::default();
    let result = stage_and_move(prefix, &stage, tree, &mut undo);
    if result.is_err() {
        undo.undo();
    } else {
        // It holds only what was replaced.
        let _ = fs::remove_dir_all(&stage);
    }
    result.map_err(|(path, why)| {
        let shown = path.to_string_lossy().replace(char::is_control, "?");
        Failure::Other(format!("cannot install '{shown}': {why}; nothing was changed"))
    })
}

fn stage_and_move(
    prefix: &Path,
    stage: &Path,
    tree: &Tree,
    undo: &mut Undo,
) -> Result<(), (PathBuf, io::Error)> {
    let (new, old) = (stage.join("new"), stage.join("old"));
    let at = |path: &Path| {
        let path = path.to_owned();
        move |why| (path, why)
    };
    undo.make(prefix).map_err(at(prefix))?;
    fs::create_dir(stage).map_err(at(stage))?;
    undo.0.push(Step::Staged(stage.to_owned()));
    for directory in [&new, &old] {
        fs::create_dir(directory).map_err(at(directory))?;
    }
    for (number, (place, content)) in tree.iter().enumerate() {
        written(&new.join(number.to_string()), content).map_err(at(&prefix.join(place)))?;
    }
    for (number, (place, _)) in tree.iter().enumerate() {
        let place = prefix.join(place);
        let number = number.to_string();
        if let Some(directory) = place.parent() {
            undo.make(directory).map_err(at(directory))?;
        }
        match place.symlink_metadata() {
            Ok(there) if there.is_dir() => {
                return Err((place, io::Error::other("there is a directory of this name")));
            }
            Ok(_) => undo.rename(&place, &old.join(&number)).map_err(at(&place))?,
            Err(why) if why.kind() == io::ErrorKind::NotFound => {}
            Err(why) => return Err((place, why)),
        }
        undo.rename(&new.join(&number), &place).map_err(at(&place))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(version: &str) -> Tree {
        vec![
            ("lib/liba.so".into(), Content::File(version.into(), true)),
            ("lib/liba".into(), Content::Link("liba.so".to_owned())),
            ("include/a.h".into(), Content::File(version.into(), false)),
        ]
    }

    /// Every path below `directory`, with what the files hold.
    fn seen(directory: &Path) -> Vec<String> {
        let mut found = Vec::new();
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                found.extend(seen(&path));
            }
            found.push(format!("{} {:?}", path.display(), fs::read_to_string(&path).ok()));
        }
        found.sort();
        found
    }

    #[test]
    fn all_of_it_is_installed_and_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let prefix = directory.path().join("not/yet there");
        check(&prefix).unwrap();
        for version in ["1", "2"] {
            install(&prefix, &tree(version)).unwrap();
            assert_eq!(fs::read_to_string(prefix.join("lib/liba")).unwrap(), version);
            assert_eq!(fs::read_to_string(prefix.join("include/a.h")).unwrap(), version);
            assert_eq!(seen(&prefix).len(), 5, "and nothing else: {:?}", seen(&prefix));
        }
    }

    #[test]
    fn none_of_it_is_if_one_file_cannot_be() {
        let directory = tempfile::tempdir().unwrap();
        let prefix = directory.path();
        install(prefix, &tree("1")).unwrap();
        fs::remove_file(prefix.join("include/a.h")).unwrap();
        fs::create_dir(prefix.join("include/a.h")).unwrap();
        let before = seen(prefix);
        let Err(Failure::Other(problem)) = install(prefix, &tree("2")) else { panic!("it cannot") };
        assert!(problem.contains("include/a.h") && problem.contains("nothing was changed"));
        assert_eq!(seen(prefix), before);
    }

    #[test]
    fn a_prefix_that_was_made_for_nothing_is_gone_again() {
        let directory = tempfile::tempdir().unwrap();
        let prefix = directory.path().join("made/for");
        let mut tree = tree("1");
        tree.push(("lib/liba.so/below a file".into(), Content::Link(String::from("a"))));
        install(&prefix, &tree).unwrap_err();
        assert_eq!(seen(directory.path()), [""; 0]);
    }

    #[test]
    fn a_prefix_that_cannot_be_is_told_beforehand() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        fs::write(&file, "").unwrap();
        for wrong in [&file, &file.join("below"), Path::new("/proc/self/below")] {
            let Err(Failure::Input(problem)) = check(wrong) else { panic!("{wrong:?}") };
            assert!(problem.contains("name a directory"), "{problem}");
        }
    }
}
