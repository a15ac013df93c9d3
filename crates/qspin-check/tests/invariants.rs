//! Invariants have names that are found: each `PREFIX-n` is defined once, at the head of a file, and what cites one
//! cites one that exists.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            sources(&path, found);
        } else if path.extension().is_some_and(|ext| ["rs", "in", "md"].iter().any(|&e| ext == e)) {
            found.push(path);
        }
    }
}

/// The names of the form `PREFIX-n` in a text, and whether it defines them: `**PREFIX-n**`.
fn names(text: &str) -> impl Iterator<Item = (&str, bool)> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_').filter_map(
        move |word| {
            let (prefix, number) = word.rsplit_once('-')?;
            let is_name = prefix.len() > 2
                && prefix.chars().all(|c| c.is_ascii_uppercase())
                && number.len() == 1
                && number.chars().all(|c| c.is_ascii_digit());
            let at = word.as_ptr() as usize - text.as_ptr() as usize;
            let defines = text[..at].ends_with("**") && text[at + word.len()..].starts_with("**");
            is_name.then_some((word, defines))
        },
    )
}

#[test]
fn every_invariant_is_defined_once_and_every_citation_finds_it() {
    let mut files = Vec::new();
    for folder in ["crates", "docs"] {
        sources(&Path::new(ROOT).join(folder), &mut files);
    }
    let texts: Vec<_> =
        files.iter().map(|file| (file, fs::read_to_string(file).unwrap())).collect();
    let mut defined: BTreeMap<&str, &Path> = BTreeMap::new();
    for (file, text) in &texts {
        for (name, _) in names(text).filter(|&(_, defines)| defines) {
            if let Some(first) = defined.insert(name, file) {
                panic!("{name} is defined in {} and in {}", first.display(), file.display());
            }
        }
    }
    assert!(defined.len() > 150, "only {} invariants were found", defined.len());
    let prefixes: Vec<_> = defined.keys().map(|name| name.rsplit_once('-').unwrap().0).collect();
    for (file, text) in &texts {
        for (name, _) in names(text) {
            let prefix = name.rsplit_once('-').unwrap().0;
            if prefixes.contains(&prefix) {
                assert!(defined.contains_key(name), "{}: {name} is not defined", file.display());
            }
        }
    }
}
