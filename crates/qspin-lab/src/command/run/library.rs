//! Where the library is.

use std::env;
use std::path::PathBuf;

use crate::failure::Failure;

pub(super) const NAME: &str = "libqspin_preload.so";
/// Says where it is, before every other place.
const VARIABLE: &str = "QSPIN_PRELOAD";

/// The library: where `QSPIN_PRELOAD` says, or beside this command, or in `../lib` of it.
pub(super) fn find() -> Result<PathBuf, Failure> {
    if let Some(said) = env::var_os(VARIABLE).filter(|said| !said.is_empty()) {
        let path = PathBuf::from(said);
        return match path.canonicalize() {
            Ok(path) if path.is_file() => loadable(path),
            _ => Err(Failure::usage(format!(
                "{VARIABLE} is `{}`, where no file is: name {NAME}",
                path.display()
            ))),
        };
    }
    let own = env::current_exe().and_then(|path| path.canonicalize())?;
    let beside = own.parent().map(PathBuf::from).unwrap_or_default();
    let places = [
        beside.join(NAME),
        beside.join("../lib").join(NAME),
        beside.join("../lib/qspin").join(NAME),
    ];
    match places.iter().find_map(|path| path.canonicalize().ok().filter(|path| path.is_file())) {
        Some(path) => loadable(path),
        None => Err(Failure::usage(format!(
            "there is no {NAME} beside {}, nor in ../lib: build it (cargo build --release), or say in \
             {VARIABLE} where it is",
            own.display()
        ))),
    }
}

/// The dynamic linker divides its list at blanks and colons.
fn loadable(path: PathBuf) -> Result<PathBuf, Failure> {
    if path.as_os_str().to_string_lossy().contains([' ', ':', '\t', '\n']) {
        return Err(Failure::usage(format!(
            "the dynamic linker cannot load `{}`: put the library where the path has no blank and no colon",
            path.display()
        )));
    }
    Ok(path)
}
