//! A copy of the source in which every plant is, each behind a switch: built once, run once for each.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Plant, find};

/// The environment variable that says which plant is on, by its place in the list.
pub const SWITCH: &str = "QSPIN_PLANTED";

/// What is added to the copy of the crate: the switch.
const LOOKS: &str = r#"
extern crate std;

/// Whether the bug of this number is on.
pub(crate) fn planted(number: u32) -> bool {
    static CHOSEN: std::sync::OnceLock<Option<u32>> = std::sync::OnceLock::new();
    let chosen = || std::env::var("QSPIN_PLANTED").ok()?.parse().ok();
    *CHOSEN.get_or_init(chosen) == Some(number)
}
"#;

const CORE: &str = "crates/qspin-core";
const CHECK: &str = "crates/qspin-check";
const CLIENT: &str = "crates/qspin-check/client";

fn root() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", ".."].iter().collect()
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// What is replaced in a file, by what, and the name of the plant.
type Place<'a> = (std::ops::Range<usize>, String, &'a str);

/// The files that are edited, below the sources of the crate, with every plant in them.
///
/// # Errors
/// A text is not in its file, or more than once, or two of them overlap.
pub fn patched(plants: &[Plant]) -> Result<BTreeMap<String, String>, String> {
    let mut places: BTreeMap<&str, Vec<Place<'_>>> = BTreeMap::new();
    let mut sources = BTreeMap::new();
    for (number, plant) in plants.iter().enumerate() {
        for edit in &plant.edits {
            let source = match sources.get(edit.file.as_str()) {
                Some(source) => source,
                None => {
                    let source = read(&root().join(CORE).join("src").join(&edit.file))?;
                    sources.entry(edit.file.as_str()).or_insert(source)
                }
            };
            let range = find(source, &edit.text).ok_or_else(|| {
                let (name, file) = (&plant.name, &edit.file);
                format!("{name}: its text does not stand once in {file}:\n{}", edit.text)
            })?;
            let (text, instead) = (&source[range.clone()], &edit.instead);
            let both =
                format!("{{ if crate::planted({number}) {{ {instead} }} else {{ {text} }} }}");
            places.entry(&edit.file).or_default().push((range, both, &plant.name));
        }
    }
    let mut files = BTreeMap::new();
    for (file, mut places) in places {
        places.sort_by_key(|(range, ..)| range.start);
        if let Some(pair) = places.windows(2).find(|pair| pair[0].0.end > pair[1].0.start) {
            return Err(format!("{} and {} overlap in {file}", pair[0].2, pair[1].2));
        }
        let mut source = sources[file].clone();
        for (range, both, _) in places.into_iter().rev() {
            source.replace_range(range, &both);
        }
        files.insert(file.to_owned(), source);
    }
    Ok(files)
}

/// Copies the sources to `folder`, with the plants in them, and builds the checkers there. Returns their path.
///
/// # Errors
/// Says what cannot be read, written or compiled.
pub fn build(plants: &[Plant], folder: &Path) -> Result<PathBuf, String> {
    let mut files = BTreeMap::new();
    for part in [CORE, CHECK, CLIENT] {
        files.insert(
            PathBuf::from(part).join("Cargo.toml"),
            read(&root().join(part).join("Cargo.toml"))?,
        );
        collect(&PathBuf::from(part).join("src"), &mut files)?;
    }
    files.insert(
        PathBuf::from(CHECK).join("plants.txt"),
        read(&root().join(CHECK).join("plants.txt"))?,
    );
    files.insert("Cargo.lock".into(), read(&root().join("Cargo.lock"))?);
    files.insert("Cargo.toml".into(), workspace(&read(&root().join("Cargo.toml"))?)?);
    let sources = PathBuf::from(CORE).join("src");
    for (file, source) in patched(plants)? {
        files.insert(sources.join(file), source);
    }
    let lib = files.get_mut(&sources.join("lib.rs")).ok_or("the crate has no lib.rs")?;
    lib.push_str(LOOKS);
    for (file, text) in &files {
        write(&folder.join(file), text)?;
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "--quiet", "--profile", "checked", "--offline", "--package", "qspin-check"])
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", folder.join("target"))
        .env("RUSTFLAGS", "--cap-lints allow")
        .output()
        .map_err(|error| format!("cargo: {error}"))?;
    if !output.status.success() {
        return Err(format!("it does not compile:\n{}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(folder.join("target/checked/qspin-check"))
}

/// The manifest of the workspace, with the crates that are copied.
fn workspace(manifest: &str) -> Result<String, String> {
    let (before, rest) =
        manifest.split_once("members = [").ok_or("the workspace has no members")?;
    let (_, after) = rest.split_once("\n\n").ok_or("the workspace has nothing but members")?;
    Ok(format!("{before}members = [\"{CORE}\", \"{CHECK}\", \"{CLIENT}\"]\n\n{after}"))
}

fn collect(folder: &Path, files: &mut BTreeMap<PathBuf, String>) -> Result<(), String> {
    let from = root().join(folder);
    let wrong = |error| format!("{}: {error}", from.display());
    for entry in fs::read_dir(&from).map_err(wrong)? {
        let entry = entry.map_err(wrong)?;
        let name = folder.join(entry.file_name());
        if entry.path().is_dir() {
            collect(&name, files)?;
        } else {
            files.insert(name, read(&entry.path())?);
        }
    }
    Ok(())
}

/// Writes what is not there already: what has not changed is not compiled again.
fn write(path: &Path, text: &str) -> Result<(), String> {
    if fs::read_to_string(path).is_ok_and(|now| now == text) {
        return Ok(());
    }
    let wrong = |error| format!("{}: {error}", path.display());
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(wrong)?;
    }
    fs::write(path, text).map_err(wrong)
}
