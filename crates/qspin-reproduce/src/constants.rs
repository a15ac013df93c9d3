//! The calibrated constants: which, on which rows, by what search. A file under version control.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The file that comes with the program.
const FROZEN: &str = include_str!("../../../data/calibrated/constants.toml");

/// Constants of one study.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibrated {
    /// The cells that they were fitted to.
    pub cells: Vec<String>,
    /// How they were found.
    pub search: String,
    /// The seed of the search.
    pub seed: u64,
    /// Mean error of those cells, as a fraction, with the constants.
    pub error: f64,
    /// What a simulated figure is multiplied with, where the table's unit is no property of the lock.
    pub scale: f64,
    /// The constants.
    pub values: BTreeMap<String, f64>,
}

/// The constants of all studies, by the study's name.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Constants(pub BTreeMap<String, Calibrated>);

impl Constants {
    /// Those that come with the program.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub fn frozen() -> Result<Self, String> {
        Self::from_toml(FROZEN)
    }

    /// Those of a file.
    ///
    /// # Errors
    /// What is wrong with it, with line and column.
    pub fn from_toml(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    /// The file.
    ///
    /// # Errors
    /// Where a constant is no number that TOML can say.
    pub fn to_toml(&self) -> Result<String, String> {
        let head = "# Written by `qspin calibrate --out`: not to be edited. What each study is, and what its\n\
                    # constants mean: docs/reproduction.md.\n\n";
        toml::to_string(&self)
            .map(|text| format!("{head}{text}"))
            .map_err(|error| error.to_string())
    }

    /// A constant of a study; `start` where it has not been calibrated.
    #[must_use]
    pub fn get(&self, study: &str, name: &str, start: f64) -> f64 {
        let value = self.0.get(study).and_then(|it| it.values.get(name));
        value.copied().unwrap_or(start)
    }

    /// The scale of a study.
    #[must_use]
    pub fn scale(&self, study: &str) -> f64 {
        self.0.get(study).map_or(1.0, |it| it.scale)
    }
}
