//! Bugs planted in the source of the locks, as text: for what is a step of the real code, and no axis or small lock of
//! its own. The list is `plants.txt`; [`tree`] makes a copy of the source that has them all, each behind a switch.

pub mod tree;

use std::ops::Range;

use crate::failure::Kind;

/// The list.
const LIST: &str = include_str!("../../plants.txt");

/// A bug, as edits of the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plant {
    /// Its name.
    pub name: String,
    /// What is wrong, in a line.
    pub about: String,
    /// What is edited.
    pub edits: Vec<Edit>,
    /// The checks that must catch it.
    pub catchers: Vec<Catcher>,
    /// Which checker does not see it, and why.
    pub blind: Vec<(String, String)>,
}

/// One edit of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Edit {
    /// The file, below the sources of `qspin-core`.
    pub file: String,
    /// What stands there, exactly once.
    pub text: String,
    /// What is to stand there.
    pub instead: String,
}

/// A check that must fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Catcher {
    /// `loom` or `shuttle`.
    pub tool: String,
    /// The lock that is run.
    pub lock: String,
    /// How it fails.
    pub sign: Sign,
}

/// How a check fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sign {
    /// This scenario has a counterexample of one of these kinds: which comes first is for the schedule to say.
    Counterexample(String, Vec<Kind>),
    /// All scenarios of the lock together do not come to something that they must come to.
    MissedGoal,
}

impl std::fmt::Display for Sign {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Counterexample(scenario, kinds) => write!(f, "{scenario} {}", named(kinds)),
            Self::MissedGoal => f.write_str(MISSED_GOAL),
        }
    }
}

/// The kinds as the list names them.
#[must_use]
pub fn named(kinds: &[Kind]) -> String {
    kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(OR)
}

/// What the list says in place of a scenario and a kind.
const MISSED_GOAL: &str = "missed goal";
/// Between two kinds.
const OR: &str = " or ";

/// Every plant of the list.
///
/// # Errors
/// Names the line that makes no sense.
pub fn all() -> Result<Vec<Plant>, String> {
    parse(LIST)
}

/// Where the next indented lines of a list go.
#[derive(Clone, Copy)]
enum Block {
    Text,
    Instead,
}

fn parse(list: &str) -> Result<Vec<Plant>, String> {
    let mut plants: Vec<Plant> = Vec::new();
    let mut block = None;
    for (number, line) in (1..).zip(list.lines()) {
        let wrong = |what: &str| format!("plants.txt:{number}: {what}: `{line}`");
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        if line.starts_with(' ') {
            let edit = plants.last_mut().and_then(|plant| plant.edits.last_mut());
            let edit = edit.ok_or_else(|| wrong("there is no `in:` before it"))?;
            let target = match block {
                Some(Block::Text) => &mut edit.text,
                Some(Block::Instead) => &mut edit.instead,
                None => return Err(wrong("there is no `text:` or `instead:` before it")),
            };
            target.push_str(line.trim());
            target.push('\n');
            continue;
        }
        block = None;
        let (key, value) = line.split_once(':').ok_or_else(|| wrong("no `:`"))?;
        let value = value.trim();
        if key == "plant" {
            let (name, about) = value.split_once(' ').ok_or_else(|| wrong("nothing about it"))?;
            plants.push(Plant {
                name: name.to_owned(),
                about: about.trim().to_owned(),
                edits: Vec::new(),
                catchers: Vec::new(),
                blind: Vec::new(),
            });
            continue;
        }
        let plant = plants.last_mut().ok_or_else(|| wrong("there is no `plant:` before it"))?;
        match key {
            "in" => plant.edits.push(Edit { file: value.to_owned(), ..Edit::default() }),
            "text" => block = Some(Block::Text),
            "instead" => block = Some(Block::Instead),
            "loom" | "shuttle" => {
                let catcher = catcher(key, value);
                plant.catchers.push(
                    catcher.ok_or_else(|| wrong("not LOCK SCENARIO KIND, or LOCK missed goal"))?,
                );
            }
            "not by loom" | "not by shuttle" => {
                plant.blind.push((key["not by ".len()..].to_owned(), value.to_owned()));
            }
            _ => return Err(wrong("no such line")),
        }
    }
    Ok(plants)
}

fn catcher(tool: &str, value: &str) -> Option<Catcher> {
    let (lock, sign) = value.split_once(' ')?;
    let sign = if sign == MISSED_GOAL {
        Sign::MissedGoal
    } else {
        let (scenario, kinds) = sign.split_once(' ')?;
        let kinds: Option<_> = kinds.split(OR).map(Kind::named).collect();
        Sign::Counterexample(scenario.to_owned(), kinds?)
    };
    Some(Catcher { tool: tool.to_owned(), lock: lock.to_owned(), sign })
}

/// Where `text` stands in `source`, if that is exactly one place. Any blanks are equal to any others.
fn find(source: &str, text: &str) -> Option<Range<usize>> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let first = words.first()?;
    let mut found = source.match_indices(first).filter_map(|(start, _)| {
        let mut end = start + first.len();
        for word in &words[1..] {
            let rest = &source[end..];
            let next = rest.trim_start();
            if next.len() == rest.len() || !next.starts_with(word) {
                return None;
            }
            end += rest.len() - next.len() + word.len();
        }
        Some(start..end)
    });
    let only = found.next()?;
    found.next().is_none().then_some(only)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_plant_stands_once_in_the_source_and_is_caught_or_its_blind_spot_is_named() {
        let plants = all().unwrap();
        assert!(plants.len() >= 18, "{}", plants.len());
        for (index, plant) in plants.iter().enumerate() {
            assert!(plants[..index].iter().all(|other| other.name != plant.name), "{}", plant.name);
            assert!(!plant.edits.is_empty(), "{}", plant.name);
            assert!(!plant.catchers.is_empty(), "{}: nothing catches it", plant.name);
            for tool in ["loom", "shuttle"] {
                let catches = plant.catchers.iter().any(|catcher| catcher.tool == tool);
                let blind = plant.blind.iter().any(|(blind, _)| blind == tool);
                assert!(catches != blind, "{}: {tool} catches it, or does not", plant.name);
            }
        }
        tree::patched(&plants).unwrap();
    }

    #[test]
    fn blanks_do_not_count_and_a_text_that_stands_twice_is_not_found() {
        assert_eq!(find("let a =\n    b; c", "a = b;"), Some(4..14));
        assert_eq!(find("ab a b", "a b"), Some(3..6));
        assert_eq!(find("a b a  b", "a b"), None);
        assert_eq!(find("a b", "c"), None);
    }

    #[test]
    fn a_check_may_find_one_of_several_kinds() {
        let of = |line| catcher("shuttle", line).map(|catcher| catcher.sign);
        let kinds = |kinds| Some(Sign::Counterexample("four".to_owned(), kinds));
        assert_eq!(of("mutex four lost wake-up"), kinds(vec![Kind::LostWakeup]));
        let both = of("mutex four lost wake-up or illegal step");
        assert_eq!(both, kinds(vec![Kind::LostWakeup, Kind::State]));
        assert_eq!(
            both.map(|sign| sign.to_string()).as_deref(),
            Some("four lost wake-up or illegal step")
        );
        assert_eq!(of("mutex four lost wake-up or bad luck"), None);
    }

    #[test]
    fn a_list_that_makes_no_sense_is_refused_by_its_line() {
        for (list, hint) in [
            ("in: x", "no `plant:`"),
            ("plant: x", "nothing about it"),
            ("plant: x y\n  z", "no `in:`"),
            ("plant: x y\nin: z\n  a", "no `text:`"),
            ("plant: x y\nloom: a b c", "LOCK SCENARIO KIND"),
            ("plant: x y\ncolour: red", "no such line"),
        ] {
            let message = parse(list).unwrap_err();
            assert!(message.contains(hint) && message.starts_with("plants.txt:"), "{message}");
        }
    }
}
