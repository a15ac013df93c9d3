//! The layout of the backoff patch's tables: one grid a non-critical length, a line a number of
//! threads, a column a critical length.

use std::fmt::Write;

/// A value at a non-critical length, a number of threads and a critical length.
pub type Value<'a> = dyn Fn(u32, usize, u32) -> f64 + 'a;

/// All grids, one below the other, each value with two decimals.
pub fn grids(
    non_criticals: &[u32],
    threads: &[usize],
    criticals: &[u32],
    value: &Value<'_>,
) -> String {
    let first = threads.iter().map(|n| n.to_string().len()).max().unwrap_or(0).max(2);
    let mut out = String::new();
    for (index, &non_critical) in non_criticals.iter().enumerate() {
        if index > 0 {
            out.push('\n');
        }
        let _ = writeln!(out, "non-critical-length: {non_critical}");
        let _ = write!(out, "{:first$}", "");
        for critical in criticals {
            let _ = write!(out, "{critical:>6}");
        }
        out.push('\n');
        for &threads in threads {
            let _ = write!(out, "{threads:<first$}");
            for &critical in criticals {
                let _ = write!(out, "{:>6}", show(value(non_critical, threads, critical)));
            }
            out.push('\n');
        }
    }
    out
}

/// At most five characters: a lock that stood still must not push the columns apart.
fn show(value: f64) -> String {
    match value {
        _ if !value.is_finite() => "?".to_owned(),
        _ if value < 99.995 => format!("{value:.2}"),
        _ if value < 9999.5 => format!("{value:.0}"),
        _ => ">9999".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_stood_still_keeps_the_columns() {
        assert_eq!(show(1.0), "1.00");
        assert_eq!(show(99.994), "99.99");
        assert_eq!(show(99.996), "100");
        assert_eq!(show(123_456.0), ">9999");
        assert_eq!(show(f64::NAN), "?");
        assert_eq!(show(f64::INFINITY), "?");
    }

    #[test]
    fn the_layout_is_the_published_one() {
        let value = |non_critical: u32, threads: usize, critical: u32| {
            f64::from(non_critical) + threads as f64 / 10.0 + f64::from(critical) / 100.0
        };
        let expected = "\
non-critical-length: 1
       0     1     8
1   1.10  1.11  1.18
16  2.60  2.61  2.68

non-critical-length: 32
       0     1     8
1  32.10 32.11 32.18
16 33.60 33.61 33.68
";
        assert_eq!(grids(&[1, 32], &[1, 16], &[0, 1, 8], &value), expected);
    }
}
