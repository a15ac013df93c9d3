//! The commands in the pages: what they name is there, and what a page promises to be run is run.
//!
//! A block of code that begins with "```sh" is run, line by line, and must succeed. One that begins with "```sh no_run",
//! or with "```" alone, measures, installs, or takes long: it is not run, but each command of qspin in it must have its
//! options, and each file, test and example of this repository that it names must be there. A command in a sentence must
//! name a subcommand and options that there are.

use std::fs;
use std::path::{Path, PathBuf};
use std::process;

use clap::Subcommand;
use clap::error::ErrorKind;
use qspin_lab::command::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn pages() -> Vec<PathBuf> {
    let docs = fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let mut pages: Vec<PathBuf> =
        docs.filter(|path| path.extension().is_some_and(|ending| ending == "md")).collect();
    pages.push(root().join("README.md"));
    pages.sort();
    pages
}

/// A block of commands of a page, and whether it is to be run.
#[derive(Debug, PartialEq)]
struct Block {
    is_run: bool,
    commands: Vec<String>,
}

/// The blocks of commands of a page; those of code and of figures are not among them.
fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(kind) = line.trim_start().strip_prefix("```") else { continue };
        let text: Vec<&str> =
            lines.by_ref().take_while(|line| !line.trim_start().starts_with("```")).collect();
        if matches!(kind, "" | "sh" | "sh no_run") {
            let commands = commands(&text.join("\n"));
            blocks.push(Block { is_run: kind == "sh", commands });
        }
    }
    blocks
}

/// The commands of qspin in the sentences of a page.
fn in_sentences(page: &str) -> Vec<String> {
    let mut is_code = false;
    let lines = page.lines().filter(|line| {
        let fence = line.trim_start().starts_with("```");
        is_code ^= fence;
        !is_code && !fence
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    // A span of code may go on in the next line, but not in the next paragraph.
    let paragraphs = text.split("\n\n");
    let spans = paragraphs.flat_map(|paragraph| paragraph.split('`').skip(1).step_by(2));
    let spans = spans.map(|span| span.split_whitespace().collect::<Vec<_>>().join(" "));
    spans.filter(|span| span.starts_with("qspin ")).collect()
}

/// The simple commands of a text of the shell.
fn commands(text: &str) -> Vec<String> {
    let text = text.replace("\\\n", " ");
    let lines = text.lines().map(|line| line.split(" #").next().unwrap_or_default());
    let lines = lines.flat_map(|line| line.split(['|', ';', '&']));
    let begun = lines.map(|line| {
        let line = line.trim().trim_start_matches("$ ");
        let line =
            [" 2>", " >"].iter().fold(line, |line, to| line.split(to).next().unwrap_or(line));
        let words: Vec<&str> = line.split_whitespace().collect();
        let begin = words.iter().position(|word| !is_before_a_command(word)).unwrap_or(words.len());
        words[begin..].join(" ")
    });
    begun.filter(|command| !command.is_empty() && !command.starts_with('#')).collect()
}

/// A variable that is set for a command, or what a loop begins with.
fn is_before_a_command(word: &str) -> bool {
    let variable = word.split_once('=').map(|(name, _)| name);
    word == "do"
        || word == "sudo"
        || variable.is_some_and(|name| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c == '_')
        })
}

/// The words of a command of qspin behind its name.
fn of_qspin(command: &str) -> Option<Vec<&str>> {
    let names = ["qspin ", "target/release/qspin ", "cargo run --release -- "];
    let words = names.iter().find_map(|name| command.strip_prefix(name))?;
    Some(words.split_whitespace().collect())
}

/// What is wrong with a command, as far as that can be told without running it.
fn wrong(command: &str) -> Option<String> {
    if let Some(words) = of_qspin(command) {
        return refused(&words).map(|said| first_line(&said)).or_else(|| missing(&words));
    }
    let words: Vec<&str> = command.split_whitespace().collect();
    let is_cargo = words[0] == "cargo" && matches!(words.get(1), Some(&"run" | &"test" | &"build"));
    if is_cargo { wrong_target(&words) } else { missing(&words[..1]) }
}

/// What clap says to these words.
fn refused(words: &[&str]) -> Option<clap::Error> {
    // A synopsis names what may be left out, and a page leaves out what does not matter.
    if words.iter().any(|word| word.starts_with('[') || word.contains('…')) {
        return None;
    }
    let words = words.iter().map(|word| match *word {
        "PID" => "1",
        // What a loop of the shell puts there.
        "$pin" => "A",
        "$times" => "2x",
        other => other,
    });
    let parser = Command::augment_subcommands(clap::Command::new("qspin"));
    let said = parser.try_get_matches_from(["qspin"].into_iter().chain(words)).err()?;
    said.use_stderr().then_some(said)
}

/// What is wrong with a command in a sentence, which may name an option and leave out what it belongs to.
fn wrong_in_a_sentence(command: &str) -> Option<String> {
    let said = refused(&of_qspin(command)?)?;
    let is_unknown =
        matches!(said.kind(), ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand);
    is_unknown.then(|| first_line(&said))
}

fn first_line(said: &clap::Error) -> String {
    said.to_string().lines().next().unwrap_or_default().to_owned()
}

/// A file of this repository that is named, and is not there.
fn missing(words: &[&str]) -> Option<String> {
    let ours = ["scenarios/", "crates/", "data/", "docs/", "examples/", "./test"];
    let is_ours = |word: &&&str| ours.iter().any(|begin| word.starts_with(begin));
    let is_missing = |word: &&&str| {
        let file = word.split('*').next().unwrap_or_default();
        !root().join(file).exists()
    };
    let missing = words.iter().filter(is_ours).find(is_missing)?;
    Some(format!("there is no {missing}"))
}

/// A package, test, example or program of cargo that is not there.
fn wrong_target(words: &[&str]) -> Option<String> {
    let after = |option: &str| {
        let at = words.iter().position(|word| *word == option)?;
        words.get(at + 1).copied()
    };
    let package = root().join("crates").join(after("-p")?);
    if !package.join("Cargo.toml").exists() {
        return Some(format!("there is no {}", package.display()));
    }
    [("--test", "tests"), ("--example", "examples")].into_iter().find_map(|(option, folder)| {
        let name = after(option)?;
        let file = package.join(folder).join(format!("{name}.rs"));
        let is_there = file.exists() || package.join(folder).join(name).is_dir();
        (!is_there).then(|| format!("there is no {}", file.display()))
    })
}

#[test]
fn every_command_of_the_pages_has_its_options_and_files() {
    let mut checked = 0;
    let mut wrong = Vec::new();
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        let in_blocks = blocks(&text).into_iter().flat_map(|block| block.commands);
        let in_blocks = in_blocks.map(|command| (self::wrong(&command), command));
        let in_sentences = in_sentences(&text).into_iter();
        let in_sentences = in_sentences.map(|command| (wrong_in_a_sentence(&command), command));
        for (why, command) in in_blocks.chain(in_sentences) {
            checked += 1;
            wrong.extend(why.map(|why| format!("{}: {command}: {why}", page.display())));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked > 30, "{checked}");
}

#[test]
fn what_the_pages_let_run_succeeds() {
    let mut run = 0;
    for page in pages() {
        let blocks = blocks(&fs::read_to_string(&page).unwrap());
        for command in blocks.iter().filter(|block| block.is_run).flat_map(|block| &block.commands)
        {
            let words = of_qspin(command).unwrap_or_else(|| {
                panic!("{}: only commands of qspin are run: {command}", page.display())
            });
            let mut qspin = process::Command::new(env!("CARGO_BIN_EXE_qspin"));
            let output = qspin.args(&words).current_dir(root()).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{}: {command}: {said}", page.display());
            assert!(!output.stdout.is_empty(), "{}: {command} says nothing", page.display());
            run += 1;
        }
    }
    assert!(run > 0);
}

#[test]
fn what_is_wrong_is_found() {
    let page = "```sh\nqspin locks   # all\n```\n```\nX=1 qspin bench \\\n  --locks a > b; ./test | head\n```\n\
                ```rust\nlet x;\n```\n";
    let two = ["qspin bench --locks a", "./test", "head"].map(str::to_owned);
    assert_eq!(
        blocks(page),
        [
            Block { is_run: true, commands: vec!["qspin locks".to_owned()] },
            Block { is_run: false, commands: two.to_vec() },
        ]
    );
    for right in
        ["qspin locks", "qspin stat PID", "ls", "cargo test -p qspin --test mutex", "./test"]
    {
        assert_eq!(wrong(right), None, "{right}");
    }
    assert_eq!(wrong_in_a_sentence("qspin run --stats"), None);
    assert!(wrong_in_a_sentence("qspin bench --no-such-option").is_some());
    for command in [
        "qspin locks --no-such-option",
        "cargo run --release -- no-such-command",
        "qspin simulate scenarios/none.toml",
        "cargo test -p qspin --test none",
        "cargo run -p none",
        "crates/none.sh",
    ] {
        assert!(wrong(command).is_some(), "{command}");
    }
}
