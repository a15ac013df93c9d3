//! Tunables by name: from `defer=always` to a tuning, and from a tuning to what rows say of it.

use std::collections::BTreeMap;

use qspin::tuning::{Tunable, Tuning};
use qspin_table::number::list;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::quantity::parse_duration;

/// A value for one tunable, as `kick_ahead=2` or `defer=always`.
#[derive(Debug, Clone, Copy)]
pub struct Tune {
    tunable: &'static Tunable,
    value: u32,
}

impl Tune {
    /// Name of the tunable.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.tunable.name
    }

    /// The tunable.
    #[must_use]
    pub fn tunable(&self) -> &'static Tunable {
        self.tunable
    }

    /// The value, as a number.
    #[must_use]
    pub fn value(&self) -> u32 {
        self.value
    }

    /// The tunable of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Tunable> {
        Tuning::named(name)
    }

    /// A value that is known to be in range.
    #[must_use]
    pub fn of(name: &str, value: u32) -> Option<Self> {
        let tunable = Self::named(name)?;
        (tunable.min..=tunable.max).contains(&value).then_some(Self { tunable, value })
    }

    /// As it was written, the value by its name where it has one.
    #[must_use]
    pub fn show(&self) -> String {
        format!("{}={}", self.tunable.name, show(self.tunable, self.value))
    }
}

/// `name=value`, where the value is a number or the name of one.
///
/// # Errors
///
/// What is wrong with `text`, and what would be right.
pub fn parse(text: &str) -> Result<Tune, String> {
    let text = text.trim();
    let Some((name, value)) = text.split_once('=') else {
        return Err(match Tuning::named(text) {
            Some(tunable) => format!("`{text}` has no value: {}", right(tunable)),
            None => format!("`{text}` is no tuning: write name=value, as kick_ahead=2"),
        });
    };
    let (name, value) = (name.trim(), value.trim());
    let tunable = Tuning::named(name).ok_or_else(|| unknown(name))?;
    let number = match tunable.names.iter().position(|other| *other == value) {
        Some(place) => Some(place as u32),
        None => value.parse().ok(),
    };
    match number {
        Some(value) if (tunable.min..=tunable.max).contains(&value) => Ok(Tune { tunable, value }),
        _ => Err(format!("`{value}` is out of range for {name}: {}", right(tunable))),
    }
}

/// A value of `numa_threshold_ns` as a time with its unit.
///
/// # Errors
///
/// What is wrong with `text`, and what would be right.
pub fn numa_threshold(text: &str) -> Result<Tune, String> {
    let time = parse_duration(text)?;
    u32::try_from(time.as_nanos()).ok().and_then(|ns| Tune::of("numa_threshold_ns", ns)).ok_or_else(
        || {
            format!(
                "`{text}` is no time to be passed over for: give 1ns to 1s, such as 1ms or 10ms; \
                 its default is 1ms"
            )
        },
    )
}

/// What a tunable takes: `give kick_ahead a number from 0 to 5; its default is 0`.
fn right(tunable: &Tunable) -> String {
    let what = if tunable.names.is_empty() { "a number from " } else { "" };
    format!(
        "give {} {what}{}; its default is {}",
        tunable.name,
        range(tunable),
        show(tunable, (tunable.get)(&Tuning::DEFAULT))
    )
}

fn unknown(name: &str) -> String {
    let near: Vec<String> = Tuning::ALL
        .iter()
        .filter(|tunable| is_near(name, tunable.name))
        .map(|tunable| tunable.name.to_owned())
        .collect();
    if !near.is_empty() {
        return format!(
            "no tunable is called `{name}`: do you mean {}? `qspin locks --tunables` lists all",
            list(&near, "or")
        );
    }
    let all: Vec<&str> = Tuning::ALL.iter().map(|tunable| tunable.name).collect();
    format!("no tunable is called `{name}`: choose from {}", all.join(", "))
}

/// Whether a user that wrote `given` may have meant `name`: a part of it, or a slip or two.
fn is_near(given: &str, name: &str) -> bool {
    let given = given.to_ascii_lowercase().replace('-', "_");
    let part = given.len() >= 4 && (name.contains(&given) || given.contains(name));
    part || slips(&given, name) <= 2
}

/// Letters to change, add or leave out to make `one` of `other`.
fn slips(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, letter) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, same) in other.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *same);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

/// The values of a tunable in words: `0 to 5`, or `never, conditions or always`.
#[must_use]
pub fn range(tunable: &Tunable) -> String {
    if tunable.names.is_empty() {
        return format!("{} to {}", tunable.min, tunable.max);
    }
    let names: Vec<String> = tunable.names.iter().map(|name| (*name).to_owned()).collect();
    list(&names, "or")
}

/// A value of a tunable: its name, or the number.
#[must_use]
pub fn show(tunable: &Tunable, value: u32) -> String {
    match tunable.names.get(value as usize) {
        Some(name) => (*name).to_owned(),
        None => value.to_string(),
    }
}

/// The default with `tunes` applied. It is kept for the rest of the program, as tunings in force
/// must be; a run has few.
#[must_use]
pub fn tuning<'a>(tunes: impl IntoIterator<Item = &'a Tune>) -> &'static Tuning {
    let mut tuning = Tuning::DEFAULT;
    for tune in tunes {
        (tune.tunable.set)(&mut tuning, tune.value);
    }
    keep(tuning)
}

/// The same tuning for the rest of the program.
#[must_use]
pub fn keep(tuning: Tuning) -> &'static Tuning {
    if tuning == Tuning::DEFAULT { &Tuning::DEFAULT } else { Box::leak(Box::new(tuning)) }
}

/// What a row says of a tuning: every tunable that is away from its default.
#[must_use]
pub fn away_from_default(tuning: &Tuning) -> BTreeMap<String, Value> {
    let away = Tuning::ALL.iter().filter_map(|tunable| {
        let value = (tunable.get)(tuning);
        let shown = match tunable.names.get(value as usize) {
            Some(name) => (*name).into(),
            None => value.into(),
        };
        (value != (tunable.get)(&Tuning::DEFAULT)).then(|| (tunable.name.to_owned(), shown))
    });
    away.collect()
}

/// What a row says of a tuning, its tunables as they are called today: rows outlive names.
///
/// # Errors
/// Those of the format.
pub fn by_todays_names<'a, D: Deserializer<'a>>(
    from: D,
) -> Result<BTreeMap<String, Value>, D::Error> {
    let tune = BTreeMap::<String, Value>::deserialize(from)?;
    let today = |name: String| match Tuning::named(&name) {
        Some(tunable) => tunable.name.to_owned(),
        None => name,
    };
    Ok(tune.into_iter().map(|(name, value)| (today(name), value)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tunable_is_set_by_number_and_by_name_and_shown_again() {
        for tunable in Tuning::ALL {
            for value in [tunable.min, tunable.max] {
                let shown = show(tunable, value);
                let by_name = parse(&format!("{}={shown}", tunable.name)).unwrap();
                let by_number = parse(&format!("{}={value}", tunable.name)).unwrap();
                assert_eq!((by_name.value, by_number.value), (value, value), "{}", tunable.name);
                assert_eq!(by_name.show(), format!("{}={shown}", tunable.name));
                let away = away_from_default(tuning([&by_name]));
                let default = (tunable.get)(&Tuning::DEFAULT);
                assert_eq!(away.len(), usize::from(value != default), "{away:?}");
                for (name, said) in away {
                    assert_eq!(name, tunable.name);
                    assert_eq!(said.as_str().map_or(said.to_string(), str::to_owned), shown);
                }
            }
        }
    }

    #[test]
    fn what_is_wrong_is_answered_with_what_would_be_right() {
        for (wrong, right) in [
            ("kick_ahead=6", "a number from 0 to 5; its default is 0"),
            ("kick_ahead=-1", "a number from 0 to 5"),
            ("kick_ahead=", "a number from 0 to 5"),
            ("kick_ahead", "has no value: give kick_ahead"),
            ("kick_ahead=4294967296", "0 to 5"),
            ("defer=allways", "never, conditions or always"),
            ("defer=3", "never, conditions or always"),
            ("pending=yes", "off or on"),
            ("kickahead=2", "do you mean kick_ahead?"),
            ("history=2", "history_increment, history_min, history_max or history_threshold?"),
            ("KICK-AHEAD=2", "do you mean kick_ahead?"),
            ("moon=full", "choose from owner_polls, owner_pauses"),
            ("", "write name=value"),
            ("moon", "write name=value"),
        ] {
            let said = parse(wrong).unwrap_err();
            assert!(said.contains(right), "{wrong}: {said}");
        }
    }

    #[test]
    fn rows_of_before_a_tunable_was_renamed_are_read_by_todays_name() {
        let read = |text: &str| by_todays_names(&mut serde_json::Deserializer::from_str(text));
        let today = BTreeMap::from([
            ("check_polls".to_owned(), 8.into()),
            ("moon".to_owned(), "full".into()),
        ]);
        assert_eq!(read(r#"{"check_looks": 8, "moon": "full"}"#).unwrap(), today);
        assert_eq!(read(r#"{"check_polls": 8, "moon": "full"}"#).unwrap(), today);
        assert!(read("[]").is_err());
        assert_eq!(parse("queue_looks=7").unwrap().show(), "queue_polls=7");
    }

    #[test]
    fn the_threshold_of_the_order_is_a_time_within_the_range_of_its_tunable() {
        for (text, shown) in [
            ("1ms", "numa_threshold_ns=1000000"),
            ("1ns", "numa_threshold_ns=1"),
            ("1s", "numa_threshold_ns=1000000000"),
        ] {
            assert_eq!(numa_threshold(text).map(|tune| tune.show()), Ok(shown.to_owned()));
        }
        // What is said of the default is so.
        let tunable = Tuning::named("numa_threshold_ns").unwrap();
        assert_eq!((tunable.get)(&Tuning::DEFAULT), 1_000_000);
        for (wrong, right) in [
            ("0", "1ns to 1s"),
            ("0ms", "1ns to 1s"),
            ("0.4ns", "1ns to 1s"),
            ("2s", "at most 1s"),
            ("10", "no unit"),
            ("1h", "no unit of time"),
            ("-1ms", "no duration"),
            ("", "no duration"),
        ] {
            let said = numa_threshold(wrong).unwrap_err();
            assert!(said.contains(right), "{wrong}: {said}");
        }
    }

    #[test]
    fn slips_are_letters_changed_added_or_left_out() {
        assert_eq!(slips("defer", "defer"), 0);
        assert_eq!(slips("defre", "defer"), 2);
        assert_eq!(slips("", "defer"), 5);
        assert_eq!(slips("defers", "defer"), 1);
    }
}
