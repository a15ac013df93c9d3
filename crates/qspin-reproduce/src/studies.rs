//! Which constants are fitted to which rows, and what is simulated for each cell: the files of `studies/`.
//!
//! A file holds *studies*, each a set of constants that are fitted together, and *rules*. A rule says for which
//! cells it holds (`of`: table, column, and the labels of the row), and what is simulated there: fields of a
//! [`Scenario`], and how the figure follows from it. Every rule that holds for a cell applies, a later one over an
//! earlier one; a cell to which none gives a `value` is not simulated. In the place of a figure may stand a constant
//! or a label: see [`Stead`]. Machines and hypervisors are named by `like`, and what is other about them follows.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use qspin_sim::catalog::Named;
use qspin_sim::{Hypervisor, Machine, Scenario};
use serde::{Deserialize, Serialize};
use toml::{Table as Fields, Value as Field};

use crate::published::Table;
use crate::{CellPlan, Claim, Constants, Role, Value};

/// A constant that is searched for.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Knob {
    /// Its name.
    pub name: String,
    /// The least that it can be.
    pub low: f64,
    /// The most.
    pub high: f64,
    /// Where the search begins: what manuals and sources say.
    pub start: f64,
    /// Whether the search goes in equal factors instead of equal steps: where the order of magnitude is not known.
    #[serde(default)]
    pub logarithmic: bool,
}

impl Knob {
    /// The value at a place from 0 to 1 of its range.
    #[must_use]
    pub fn at(&self, place: f64) -> f64 {
        if self.logarithmic {
            self.low * (self.high / self.low).powf(place)
        } else {
            self.low + place * (self.high - self.low)
        }
    }

    /// The place of a value in its range.
    #[must_use]
    pub fn place(&self, value: f64) -> f64 {
        let place = if self.logarithmic {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        place.clamp(0.0, 1.0)
    }
}

/// Constants that are fitted together.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Study {
    /// Its name.
    pub name: String,
    /// The tables that it simulates.
    pub tables: Vec<String>,
    /// What the constants are, for people.
    pub about: String,
    /// Whether a factor between simulated and published unit is fitted as well.
    #[serde(default)]
    pub scaled: bool,
    /// The constants.
    #[serde(default)]
    pub knobs: Vec<Knob>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    studies: Vec<Study>,
    rules: Vec<Fields>,
}

static FILES: LazyLock<Vec<File>> = LazyLock::new(|| {
    let texts = [
        include_str!("../studies/002.toml"),
        include_str!("../studies/003.toml"),
        include_str!("../studies/001.toml"),
        include_str!("../studies/000.toml"),
        include_str!("../studies/stated.toml"),
        include_str!("../studies/004.toml"),
    ];
    texts.map(|text| toml::from_str(text).expect("they come with the program")).into()
});

/// All of them, each after those whose constants it uses.
pub fn studies() -> impl Iterator<Item = &'static Study> {
    FILES.iter().flat_map(|file| &file.studies)
}

/// The study that a table belongs to.
#[must_use]
pub fn study_of(table: &str) -> Option<&'static Study> {
    studies().find(|study| study.tables.iter().any(|it| it == table))
}

/// What stands for a figure that is not known before.
#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Stead {
    /// `times` the constant `knob` of a study, over `over`; or how many pieces of it make `pieces_of`.
    Knob { knob: String, times: Option<f64>, over: Option<f64>, pieces_of: Option<f64> },
    /// What the row has in the column of that name, at `most` so much; `column`: the name of the cell's column.
    Label { label: String, most: Option<i64> },
}

/// A cell, by what rules can be about.
struct Cell<'a> {
    labels: BTreeMap<&'a str, &'a str>,
    constants: &'a Constants,
}

impl Cell<'_> {
    /// Whether a rule holds for it.
    fn is_of(&self, rule: &Fields) -> bool {
        let is = |name: &str, wanted: &Field| match (self.labels.get(name), wanted) {
            (None, _) => false,
            (Some(label), Field::String(wanted)) => label == wanted,
            (Some(label), wanted) => *label == wanted.to_string(),
        };
        let holds = |(name, wanted): (&String, &Field)| match wanted {
            Field::Array(any) => any.iter().any(|wanted| is(name, wanted)),
            wanted => is(name, wanted),
        };
        rule.get("of").and_then(Field::as_table).is_none_or(|of| of.iter().all(holds))
    }

    /// Puts constants and labels in their places.
    fn fill(&self, field: &mut Field) -> Result<(), String> {
        if let Ok(stead) = field.clone().try_into::<Stead>() {
            *field = self.figure(&stead)?;
            return Ok(());
        }
        match field {
            Field::Table(fields) => fields.iter_mut().try_for_each(|(_, field)| self.fill(field)),
            Field::Array(fields) => fields.iter_mut().try_for_each(|field| self.fill(field)),
            _ => Ok(()),
        }
    }

    fn figure(&self, stead: &Stead) -> Result<Field, String> {
        match stead {
            Stead::Knob { knob, times, over, pieces_of } => {
                let (study, name) = knob.split_once('.').unwrap_or_default();
                let found = studies().find(|it| it.name == study);
                let found = found.and_then(|it| it.knobs.iter().find(|it| it.name == name));
                let start = found.ok_or_else(|| format!("there is no constant {knob}"))?.start;
                let constant = self.constants.get(study, name, start);
                Ok(match pieces_of {
                    Some(whole) => Field::Integer((whole / constant) as i64),
                    None => (times.unwrap_or(1.0) * (constant / over.unwrap_or(1.0))).into(),
                })
            }
            Stead::Label { label, most } => {
                let said = self.labels.get(label.as_str());
                let said = said.ok_or_else(|| format!("there is no label {label}"))?;
                match said.parse::<i64>() {
                    Ok(number) => Ok(number.min(most.unwrap_or(i64::MAX)).into()),
                    Err(_) => Ok((*said).into()),
                }
            }
        }
    }

    /// What all rules together say.
    fn planned(&self, row: usize, column: usize, mut whole: Field) -> Result<CellPlan, String> {
        self.fill(&mut whole)?;
        let wrong = |error: toml::de::Error| error.to_string();
        let whole: Whole = whole.try_into().map_err(wrong)?;
        let scenario = |run: &Fields| {
            let mut fields = whole.scenario.clone();
            overlay(&mut fields, run);
            described::<Machine>(&mut fields, "machine")?;
            described::<Hypervisor>(&mut fields, "hypervisor")?;
            fields.try_into::<Scenario>().map_err(wrong)
        };
        Ok(CellPlan {
            row,
            column,
            role: match (whole.given, whole.fitted) {
                (true, _) => Role::Given,
                (false, true) => Role::Calibrated,
                (false, false) => Role::Predicted,
            },
            scenarios: whole.runs.iter().map(scenario).collect::<Result<_, _>>()?,
            value: whole.value,
            scaled: whole.scaled,
            claim: whole.claim,
        })
    }
}

/// Puts `over` over `under`, table by table. What is of one kind or another does not mix with another kind.
fn overlay(under: &mut Fields, over: &Fields) {
    for (name, field) in over {
        match (under.get_mut(name), field) {
            (Some(Field::Table(under)), Field::Table(over)) => {
                if ["workload", "value"].contains(&name.as_str()) {
                    under.retain(|kind, _| over.contains_key(kind));
                }
                overlay(under, over);
            }
            _ => drop(under.insert(name.clone(), field.clone())),
        }
    }
}

/// A description from the catalog, with what is other about it.
fn described<T: Named + Serialize>(scenario: &mut Fields, name: &str) -> Result<(), String> {
    let Some(Field::Table(mut changes)) = scenario.remove(name) else { return Ok(()) };
    let like = changes.remove("like").unwrap_or_else(|| "".into());
    let known = T::named(like.as_str().unwrap_or_default())?;
    let mut known = Fields::try_from(known).map_err(|error| error.to_string())?;
    overlay(&mut known, &changes);
    scenario.insert(name.to_owned(), known.into());
    Ok(())
}

/// All rules that hold for a cell, as one.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Whole {
    scenario: Fields,
    #[serde(default = "one")]
    runs: Vec<Fields>,
    value: Value,
    #[serde(default)]
    fitted: bool,
    #[serde(default)]
    given: bool,
    #[serde(default)]
    scaled: bool,
    claim: Option<Claim>,
}

fn one() -> Vec<Fields> {
    vec![Fields::new()]
}

/// The cells of a table that are simulated.
///
/// # Errors
/// A table that is not known; constants that make a scenario impossible.
pub fn cells(table: &Table, constants: &Constants) -> Result<Vec<CellPlan>, String> {
    let has = |file: &&File| file.studies.iter().any(|study| study.tables.contains(&table.name));
    let unknown = || format!("{} is no table that can be reproduced", table.name);
    let rules = &FILES.iter().find(has).ok_or_else(unknown)?.rules;
    let mut cells = Vec::new();
    for (row, published) in table.rows.iter().enumerate() {
        for &column in &table.values {
            let labels = table.labels.iter().zip(&published.labels);
            let mut labels: BTreeMap<&str, &str> =
                labels.map(|(name, label)| (name.as_str(), label.as_str())).collect();
            labels.extend([("table", table.name.as_str()), ("column", &table.columns[column])]);
            let cell = Cell { labels, constants };
            let mut whole = Fields::new();
            rules.iter().filter(|rule| cell.is_of(rule)).for_each(|rule| overlay(&mut whole, rule));
            whole.remove("of");
            if whole.contains_key("value") {
                cells.push(cell.planned(row, column, whole.into())?);
            }
        }
    }
    Ok(cells)
}
