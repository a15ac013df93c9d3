//! The page as a document: well formed, self-contained, for light and dark, accessible.

use std::collections::BTreeSet;
use std::path::Path;

use qspin_lab::report::{Format, read};
use roxmltree::{Document, Node, ParsingOptions};

fn page(fixture: &str) -> String {
    made(fixture, Format::Html)
}

fn made(fixture: &str, format: Format) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(fixture);
    format.render(&read(&[path]).unwrap())
}

/// The page as XML: HTML's unclosed `meta` closed, style and script (which are no XML) left out.
fn as_xml(page: &str) -> String {
    let mut xml = String::new();
    let mut rest = page;
    while let Some(start) = ["<style>", "<script>"].iter().filter_map(|tag| rest.find(tag)).min() {
        let end = start + rest[start..].find("</s").unwrap();
        xml += &rest[..start];
        rest = &rest[end + rest[end..].find('>').unwrap() + 1..];
    }
    xml += rest;
    let mut closed = String::new();
    for (index, part) in xml.split("<meta").enumerate() {
        closed += &if index == 0 {
            part.to_owned()
        } else {
            format!("<meta{}", part.replacen('>', "/>", 1))
        };
    }
    closed
}

fn parse(xml: &str) -> Document<'_> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    Document::parse_with_options(xml, options).unwrap()
}

fn named<'a>(document: &'a Document<'_>, name: &str) -> Vec<Node<'a, 'a>> {
    document.descendants().filter(|node| node.tag_name().name() == name).collect()
}

const FIXTURES: [&str; 3] = ["two-cpus.jsonl", "mixed.jsonl", "overcommit.jsonl"];

#[test]
fn the_page_is_well_formed_and_every_id_is_there_once() {
    for fixture in FIXTURES {
        let xml = as_xml(&page(fixture));
        let document = parse(&xml);
        let mut ids = BTreeSet::new();
        for node in document.descendants() {
            if let Some(id) = node.attribute("id") {
                assert!(ids.insert(id), "{id} twice in {fixture}");
            }
        }
        for node in document.descendants() {
            if let Some(target) = node.attribute("href") {
                let id = target.strip_prefix('#').expect("a link leads nowhere but into the page");
                assert!(ids.contains(id), "{id} in {fixture}");
            }
        }
    }
}

#[test]
fn nothing_is_fetched() {
    for text in FIXTURES.map(page).into_iter().chain([made(FIXTURES[0], Format::Svg)]) {
        let own = text.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
        for outside in
            ["http:", "https:", "//www", "url(", "@import", "src=", "<link", "<img", "<base"]
        {
            assert!(!own.contains(outside), "{outside}");
        }
    }
    assert!(page(FIXTURES[0]).contains("default-src 'none'"));
}

#[test]
fn both_colour_schemes_define_the_same_colours() {
    let text = page(FIXTURES[0]);
    let style = &text[text.find("<style>").unwrap()..text.find("</style>").unwrap()];
    assert!(style.contains("color-scheme: light dark"));
    let (light, dark) = style.split_once("prefers-color-scheme: dark").unwrap();
    let dark = &dark[..dark.find(".f-queue").unwrap()];
    let colours = |part: &str| -> BTreeSet<String> {
        part.split("--").skip(1).map(|rest| rest.split(':').next().unwrap().to_owned()).collect()
    };
    assert_eq!(colours(light), colours(dark));
    for used in style.split("var(--").skip(1) {
        let name = used.split([')', ',']).next().unwrap();
        assert!(
            colours(light).contains(name) || ["c", "heat"].contains(&name),
            "--{name} has no colour"
        );
    }
}

#[test]
fn every_picture_has_words() {
    for fixture in FIXTURES {
        let xml = as_xml(&page(fixture));
        let document = parse(&xml);
        assert_eq!(named(&document, "html")[0].attribute("lang"), Some("en"));
        for picture in named(&document, "svg") {
            let hidden = picture.attribute("aria-hidden") == Some("true");
            let titled = picture.children().any(|child| child.tag_name().name() == "title");
            let role = picture.attribute("role") == Some("img");
            assert!(hidden || titled && role, "a picture without words in {fixture}");
        }
        for table in named(&document, "table") {
            let heads = table.descendants().filter(|node| node.tag_name().name() == "th");
            assert!(heads.into_iter().all(|head| head.attribute("scope").is_some()));
        }
    }
}

#[test]
fn the_verdict_comes_first() {
    let text = page(FIXTURES[0]);
    let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what} is missing"));
    assert!(at("Not sure how many threads") < at("Collapse:"));
    assert!(at("Collapse:") < at("class=\"chart lines"));
    assert!(at("class=\"chart lines") < at("All figures"));
    assert!(text.contains("This is a virtual machine"), "the machine's warning");
}

#[test]
fn what_was_not_measured_on_threads_says_so() {
    let text = page("mixed.jsonl");
    for mark in ["SIMULATED", "GUEST", "PARTIAL"] {
        assert!(text.contains(mark), "{mark}");
    }
    let picture = made("mixed.jsonl", Format::Svg);
    for mark in ["SIMULATED", "GUEST", "PARTIAL"] {
        assert!(picture.contains(mark), "{mark}");
    }
    let plain = page("two-cpus.jsonl");
    for mark in ["SIMULATED", "GUEST", "PARTIAL"] {
        assert!(!plain.contains(mark), "{mark}");
    }
}

#[test]
fn the_picture_stands_alone() {
    for fixture in FIXTURES {
        let picture = made(fixture, Format::Svg);
        let document = Document::parse(&picture).unwrap();
        assert_eq!(document.root_element().tag_name().name(), "svg");
    }
}

#[test]
fn names_from_a_file_do_no_harm() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/two-cpus.jsonl");
    let evil = "{\"a\":\"<script>alert(1)</script>|`*\\u0000\"}";
    let rows =
        std::fs::read_to_string(path).unwrap().replace("\"tune\":{}", &format!("\"tune\":{evil}"));
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("run.jsonl");
    std::fs::write(&file, rows.replace("Example CPU", "<b>CPU</b>")).unwrap();
    let runs = read(&[file]).unwrap();
    for format in [Format::Html, Format::Svg, Format::Md] {
        let text = format.render(&runs);
        // Between backticks Markdown takes nothing for HTML.
        let text = text.split('`').step_by(2).collect::<String>();
        assert!(!text.contains("<script>alert"), "{format:?}");
        assert!(!text.contains('\0'), "{format:?}");
        assert!(!text.contains("<b>CPU"), "{format:?}");
    }
}
