//! The pages: the book names all of them, no link and no file's name leads nowhere, statements have a subject, and tunables are current.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use qspin_core::tuning::Tuning;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files below `folder` with this ending, without what is built or fetched.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = entry.file_name().unwrap().to_string_lossy().into_owned();
        if entry.is_dir() && !name.starts_with('.') && name != "target" {
            found.extend(files(&entry, ending));
        } else if name.ends_with(ending) {
            found.push(entry);
        }
    }
    found.sort();
    found
}

/// The lines of a page outside its blocks of code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        is_code ^= fence;
        !is_code && !fence
    })
}

/// The targets of a page's links, but for those of the web.
fn links(text: &str) -> Vec<String> {
    let text: Vec<&str> = prose(text).collect();
    let text = text.join("\n");
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    targets.map(|(target, _)| target.to_owned()).filter(|target| !target.contains("://")).collect()
}

/// The anchors of a page: its headings as they appear in addresses.
fn anchors(text: &str) -> BTreeSet<String> {
    let plain = |heading: &str| -> String {
        let kept = heading.trim().to_lowercase();
        let kept = kept.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    prose(text)
        .filter_map(|line| line.strip_prefix('#'))
        .map(|line| plain(line.trim_start_matches('#')))
        .collect()
}

/// What is wrong with the links of a page.
fn broken(page: &Path) -> Vec<String> {
    let text = fs::read_to_string(page).unwrap();
    let wrong = |target: &String| {
        let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
        let to = if file.is_empty() { page.to_owned() } else { page.parent().unwrap().join(file) };
        let is_there = to.exists()
            && (anchor.is_empty() || anchors(&fs::read_to_string(&to).unwrap()).contains(anchor));
        !is_there
    };
    links(&text).into_iter().filter(wrong).collect()
}

#[test]
fn every_link_of_every_page_leads_somewhere() {
    let pages = files(&root(), ".md");
    assert!(pages.len() > 40, "{pages:?}");
    let broken: Vec<String> = pages
        .iter()
        .flat_map(|page| {
            broken(page).into_iter().map(move |link| format!("{}: {link}", page.display()))
        })
        .collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    // And one that does not is found.
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.md");
    fs::write(&page, "# A `b`, c\n[x](#a-b-c) [y](#d) [z](none.md)\n```\n[code](nowhere)\n```\n")
        .unwrap();
    assert_eq!(self::broken(&page), ["#d", "none.md"]);
}

/// The files of source that a text names and that are not among these; `but` is named as an example.
fn not_there<'a>(text: &'a str, sources: &[PathBuf], but: &str) -> Vec<&'a str> {
    let is_name = |c: char| c.is_alphanumeric() || "_./-".contains(c);
    let names = text.split(|c| !is_name(c)).filter(|name| name.ends_with(".rs") && *name != ".rs");
    // The map leaves out folders that say nothing.
    let is_there = |name: &str| {
        let name = Path::new(name).file_name();
        sources.iter().any(|file| file.file_name() == name)
    };
    names.filter(|name| !name.ends_with(but) && !is_there(name)).collect()
}

#[test]
fn the_map_names_files_that_are_there() {
    let sources = files(&root().join("crates"), ".rs");
    let map = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let missing = not_there(&map, &sources, "locks/stolen.rs");
    assert!(missing.is_empty(), "{missing:?}");
    assert_eq!(not_there("lib.rs `word.rs` (none.rs)", &sources, "word.rs"), ["none.rs"]);
}

#[test]
fn the_book_names_every_page_once() {
    let docs = root().join("docs");
    let mut named = links(&fs::read_to_string(docs.join("SUMMARY.md")).unwrap());
    named.sort();
    let name = |page: PathBuf| page.strip_prefix(&docs).unwrap().to_string_lossy().into_owned();
    let mut pages: Vec<String> = files(&docs, ".md").into_iter().map(name).collect();
    pages.retain(|name| name != "SUMMARY.md");
    pages.sort();
    assert_eq!(named, pages);
}

/// mdBook makes a page of each `.md` that the book names, and a link to any other leads nowhere. What lies outside
/// of the book is there as it is, beside the folder into which the book is built.
#[test]
fn no_link_of_the_book_leads_to_a_page_outside() {
    let docs = root().join("docs");
    let leads_outside = |page: &PathBuf| {
        let up = page.strip_prefix(&docs).unwrap().components().count();
        let links = links(&fs::read_to_string(page).unwrap()).into_iter();
        let outside = links.filter(move |link| {
            link.starts_with(&"../".repeat(up)) && link.split('#').next().unwrap().ends_with(".md")
        });
        outside.map(|link| format!("{}: {link}", page.display())).collect::<Vec<_>>()
    };
    let wrong: Vec<String> = files(&docs, ".md").iter().flat_map(leads_outside).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let config = fs::read_to_string(root().join("book.toml")).unwrap();
    assert!(
        config.contains("build-dir = \"book\""),
        "from there `../crates` is what it is from docs/"
    );
}

/// The statements of a text that have no subject: "Who acquires the lock waits", or a "whoever". Questions and
/// headings may.
fn without_subject(text: &str) -> Vec<String> {
    let paragraphs =
        text.split("\n\n").filter(|paragraph| !paragraph.trim_start().starts_with('#'));
    let sentences = paragraphs.flat_map(|paragraph| {
        let plain = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
        let ends = plain.replace(['.', ';', ':'], "\u{0}").replace('?', "?\u{0}");
        ends.split('\u{0}').map(|sentence| sentence.trim().to_owned()).collect::<Vec<_>>()
    });
    let is_wrong = |sentence: &String| {
        let begin = sentence.trim_start_matches(|c: char| !c.is_alphabetic());
        (begin.starts_with("Who ") && !sentence.ends_with('?'))
            || sentence.to_lowercase().contains("whoever")
    };
    sentences.filter(is_wrong).collect()
}

/// The comments of a source file, as paragraphs.
fn comments(source: &str) -> String {
    let line = |line: &str| {
        let line = line.trim_start();
        let comment = line.strip_prefix("//")?;
        Some(comment.trim_start_matches(['/', '!']).trim().to_owned())
    };
    // Code between two comments ends a paragraph.
    let lines: Vec<String> = source.lines().map(|each| line(each).unwrap_or_default()).collect();
    lines.join("\n")
}

#[test]
fn statements_have_a_subject() {
    let root = root();
    let of_page = |page: PathBuf| {
        let text = fs::read_to_string(&page).unwrap();
        (page, prose(&text).collect::<Vec<_>>().join("\n"))
    };
    let of_source = |page: PathBuf| {
        let text = comments(&fs::read_to_string(&page).unwrap());
        (page, text)
    };
    let pages = files(&root, ".md").into_iter().map(of_page);
    let sources = files(&root.join("crates"), ".rs").into_iter().map(of_source);
    let wrong: Vec<String> = pages
        .chain(sources.filter(|(path, _)| !path.ends_with("qspin-lab/tests/book.rs")))
        .flat_map(|(path, text)| {
            let wrong = without_subject(&text).into_iter();
            wrong.map(|sentence| format!("{}: {sentence}", path.display())).collect::<Vec<_>>()
        })
        .collect();
    assert!(wrong.is_empty(), "{} statements:\n{}", wrong.len(), wrong.join("\n"));
    let text = "# Who waits\n\nWho waits? A thread.\nWho takes the lock waits. `Whoever` has it: who knows.";
    assert_eq!(without_subject(text), ["Who takes the lock waits", "`Whoever` has it"]);
    assert_eq!(comments("x\n// Who has\n//! it.\ny"), "\nWho has\nit.\n");
}

#[test]
fn the_page_of_tunables_has_each_with_its_default() {
    let page = fs::read_to_string(root().join("docs/tuning.md")).unwrap();
    for tunable in Tuning::ALL {
        let default = (tunable.get)(&Tuning::DEFAULT);
        let default = match tunable.names.get(default as usize) {
            Some(name) => (*name).to_owned(),
            None => default.to_string(),
        };
        let begin = format!("`{}`, {default}", tunable.name);
        // No further digit may follow.
        let is_there = ["|", ";"].iter().any(|end| page.contains(&format!("{begin}{end}")));
        assert!(is_there, "docs/tuning.md lacks {begin}");
    }
}
