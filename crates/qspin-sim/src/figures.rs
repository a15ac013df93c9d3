//! Whether the figures of a description are possible: each has a range, by its name.

use serde::Serialize;
use toml::Value;

/// The least and the most that a figure may be.
pub(crate) type Range = (f64, f64);

/// Checks every figure of a description. A figure that is named has a range of its own; other fractions have
/// the `usual` range, other whole numbers none.
///
/// # Errors
/// One line that says what is wrong and what would be right.
pub(crate) fn check(
    of: &str,
    description: &impl Serialize,
    usual: Range,
    named: &[(&str, Range)],
) -> Result<(), String> {
    let fields = Value::try_from(description).map_err(|error| format!("{of}: {error}"))?;
    walk(of, "", &fields, &|name, is_whole| {
        let own = named.iter().find(|(known, _)| *known == name).map(|(_, range)| *range);
        own.or((!is_whole).then_some(usual))
    })
}

fn walk(
    of: &str,
    name: &str,
    field: &Value,
    range: &dyn Fn(&str, bool) -> Option<Range>,
) -> Result<(), String> {
    let (figure, range) = match field {
        Value::Table(fields) => {
            return fields.iter().try_for_each(|(name, field)| walk(of, name, field, range));
        }
        Value::Array(fields) => {
            return fields.iter().try_for_each(|field| walk(of, name, field, range));
        }
        Value::Float(figure) => (*figure, range(name, false)),
        Value::Integer(figure) => (*figure as f64, range(name, true)),
        _ => return Ok(()),
    };
    match range {
        Some((least, most)) if !(least..=most).contains(&figure) => {
            Err(format!("{of}.{name} is {figure}: it must be from {least} to {most}"))
        }
        _ => Ok(()),
    }
}
