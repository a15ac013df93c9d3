//! `--name value` pairs.

use std::collections::BTreeMap;
use std::str::FromStr;

use crate::planted::lookup;
use crate::subject::{Subject, variants};

/// The options of a subcommand, taken one by one.
pub(super) struct Arguments(BTreeMap<String, String>);

impl Arguments {
    pub(super) fn parse(words: &[String]) -> Result<Self, String> {
        let mut pairs = BTreeMap::new();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let name = word.strip_prefix("--").ok_or(format!("`{word}` is not an option"))?;
            let value = words.next().ok_or(format!("--{name} needs a value"))?;
            if pairs.insert(name.to_owned(), value.clone()).is_some() {
                return Err(format!("--{name} is given twice"));
            }
        }
        Ok(Self(pairs))
    }

    pub(super) fn take(&mut self, name: &str) -> Option<String> {
        self.0.remove(name)
    }

    pub(super) fn need(&mut self, name: &str) -> Result<String, String> {
        self.take(name).ok_or(format!("--{name} is missing"))
    }

    pub(super) fn number<T: FromStr>(&mut self, name: &str, default: T) -> Result<T, String> {
        Ok(self.some_number(name)?.unwrap_or(default))
    }

    pub(super) fn some_number<T: FromStr>(&mut self, name: &str) -> Result<Option<T>, String> {
        self.take(name)
            .map(|text| text.parse().map_err(|_| format!("--{name} `{text}` is not a number")))
            .transpose()
    }

    /// The locks to run: the one that is named, or all.
    pub(super) fn subjects(&mut self) -> Result<Vec<Subject>, String> {
        match self.take("lock") {
            None => Ok(variants()),
            Some(name) => Ok(vec![subject(&name)?]),
        }
    }

    pub(super) fn nothing_else(self) -> Result<(), String> {
        match self.0.into_keys().next() {
            None => Ok(()),
            Some(name) => Err(format!("unknown option --{name}")),
        }
    }
}

pub(super) fn subject(name: &str) -> Result<Subject, String> {
    lookup(name).ok_or_else(|| {
        let names: Vec<_> = variants().iter().map(|subject| subject.name).collect();
        format!("unknown lock `{name}`; there are {}", names.join(", "))
    })
}
