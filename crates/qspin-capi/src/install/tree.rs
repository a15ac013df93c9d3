//! The tree of installed files.

use std::fs;
use std::path::{Path, PathBuf};

use qspin_capi::list::locks;

use crate::arguments::Arguments;
use crate::library::{NEEDS, SONAME};

/// The content of a place.
#[derive(Debug)]
pub(crate) enum Content {
    /// A file with this content, executable or not.
    File(Vec<u8>, bool),
    /// A link to a neighbour.
    Link(String),
}

/// Places below the prefix, and their content.
pub(crate) type Tree = Vec<(PathBuf, Content)>;

const PAGES: &[(&str, &str)] = &[
    ("qspin.3", include_str!("../../man/qspin.3")),
    ("qspin_cond_wait.3", include_str!("../../man/qspin_cond_wait.3")),
    ("qspin_holder_enter.3", include_str!("../../man/qspin_holder_enter.3")),
    ("qspin_lock.3", include_str!("../../man/qspin_lock.3")),
    ("qspin_rdlock.3", include_str!("../../man/qspin_rdlock.3")),
    ("qspin_select.3", include_str!("../../man/qspin_select.3")),
    ("qspin_statistics.3", include_str!("../../man/qspin_statistics.3")),
    ("qspin_tunables.3", include_str!("../../man/qspin_tunables.3")),
    ("qspin_version.3", include_str!("../../man/qspin_version.3")),
];

const HEADERS: &[(&str, &str)] = &[
    ("qspin.h", include_str!("../../include/qspin.h")),
    ("qspin.hpp", include_str!("../../include/qspin.hpp")),
    ("qspin_inline.h", include_str!("../../include/qspin_inline.h")),
];

/// The names under which a manual page is found: those of its section NAME, where LOCK stands for every
/// exclusive lock, and RWLOCK for every reader-writer lock.
fn names(page: &str) -> Vec<String> {
    let name_section = page.split("\n.Sh ").find(|section| section.starts_with("NAME\n"));
    let lines = name_section.unwrap_or("").lines().filter_map(|line| line.strip_prefix(".Nm "));
    let mut names = Vec::new();
    for name in lines.map(|line| line.trim_end_matches([' ', ','].as_slice())) {
        match [("RWLOCK", true), ("LOCK", false)]
            .into_iter()
            .find(|(stands, _)| name.contains(stands))
        {
            Some((stands, shared)) => {
                let locks = locks().filter(|lock| lock.shared == shared);
                names.extend(locks.map(|lock| name.replace(stands, lock.module)));
            }
            None => names.push(name.to_owned()),
        }
    }
    names
}

/// Everything that is to be installed, with the libraries from the directory `libraries`.
pub(crate) fn tree(arguments: &Arguments, libraries: &Path) -> Result<Tree, String> {
    let read = |name: &str| {
        let path = libraries.join(name);
        fs::read(&path).map_err(|why| format!("cannot read {}: {why}", path.display()))
    };
    let libdir = &arguments.libdir;
    let up = |levels: usize| vec![".."; libdir.components().count() + levels].join("/");
    let version = env!("CARGO_PKG_VERSION");
    let fill = |template: &str| {
        let text = template
            .replace("@VERSION@", version)
            .replace("@SONAME@", SONAME)
            .replace("@LIBDIR@", &libdir.to_string_lossy())
            .replace("@NEEDS@", &NEEDS.join(" "))
            .replace("@PC_UP@", &up(1))
            .replace("@CMAKE_UP@", &up(2));
        Content::File(text.into_bytes(), false)
    };

    let shared = format!("libqspin.so.{version}");
    let cmake = libdir.join("cmake/qspin");
    let mut tree: Tree = vec![
        (libdir.join("libqspin.a"), Content::File(read("libqspin.a")?, false)),
        (libdir.join(&shared), Content::File(read("libqspin.so")?, true)),
        (libdir.join(SONAME), Content::Link(shared)),
        (libdir.join("libqspin.so"), Content::Link(SONAME.to_owned())),
        (libdir.join("pkgconfig/qspin.pc"), fill(include_str!("../../package/qspin.pc.in"))),
        (
            cmake.join("qspin-config.cmake"),
            fill(include_str!("../../package/qspin-config.cmake.in")),
        ),
        (
            cmake.join("qspin-config-version.cmake"),
            fill(include_str!("../../package/qspin-config-version.cmake.in")),
        ),
    ];
    for (name, text) in HEADERS {
        tree.push((Path::new("include").join(name), Content::File((*text).into(), false)));
    }
    let manual = Path::new("share/man/man3");
    for (name, text) in PAGES {
        tree.push((manual.join(name), Content::File((*text).into(), false)));
        let others = names(text).into_iter().map(|other| format!("{other}.3"));
        let others = others.filter(|other| other != name);
        tree.extend(others.map(|other| (manual.join(other), Content::Link((*name).to_owned()))));
    }
    Ok(tree)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_of_the_header_has_a_page() {
        let documented: Vec<String> = PAGES.iter().flat_map(|(_, text)| names(text)).collect();
        let mut functions = 0;
        for line in include_str!("../../include/qspin.h").lines() {
            let Some((before, _)) = line.split_once('(') else { continue };
            let name = before.rsplit([' ', '*']).next().unwrap_or_default();
            let declares = line.starts_with(|first: char| first.is_ascii_lowercase());
            if declares && name.starts_with("qspin_") {
                functions += 1;
                assert!(
                    documented.iter().any(|other| other == name),
                    "{name} is in no page's NAME"
                );
            }
        }
        assert!(functions > 80, "{functions} functions");
        let mut once = documented.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), documented.len(), "a name is in two pages");
    }
}
