//! Numbers as people read them: three significant digits and a unit.

/// Three significant digits, never in exponent form: `12.3`, `0.0456`, `1230`.
#[must_use]
pub fn digits(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    // The clamp keeps absurd values from printing hundreds of digits.
    let decimals = (2.0 - value.abs().log10().floor()).clamp(0.0, 9.0) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// A rate with its prefix: `12.3 M`, `456 k`, `7.5`.
#[must_use]
pub fn rate(per_second: f64) -> String {
    // The bounds sit where rounding to three digits would print "1000".
    if per_second >= 999.5e6 {
        format!("{} G", digits(per_second / 1e9))
    } else if per_second >= 999.5e3 {
        format!("{} M", digits(per_second / 1e6))
    } else if per_second >= 999.5 {
        format!("{} k", digits(per_second / 1e3))
    } else {
        digits(per_second)
    }
}

/// Two rates as a range, with the prefix once if it is the same: `12.3 – 12.5 M`, `990 k – 1.1 M`.
#[must_use]
pub fn rates(lo: f64, hi: f64) -> String {
    let (lo, hi) = (rate(lo), rate(hi));
    let (number, prefix) = lo.split_once(' ').unwrap_or((&lo, ""));
    let same = hi.split_once(' ').map_or("", |(_, prefix)| prefix) == prefix;
    format!("{} – {hi}", if same { number } else { &lo })
}

/// A duration with its unit: `120 ns`, `1.2 µs`, `3.4 ms`, `5 s`.
#[must_use]
pub fn duration(ns: f64) -> String {
    if ns >= 999.5e6 {
        format!("{} s", digits(ns / 1e9))
    } else if ns >= 999.5e3 {
        format!("{} ms", digits(ns / 1e6))
    } else if ns >= 999.5 {
        format!("{} µs", digits(ns / 1e3))
    } else {
        format!("{} ns", digits(ns))
    }
}

/// A ratio of ten or more without decimals, a smaller one with two digits: `40`, `1.3`.
#[must_use]
pub fn times(ratio: f64) -> String {
    if !ratio.is_finite() {
        "infinitely many".to_owned()
    } else if ratio >= 999.5 {
        // The fifth digit says nothing.
        let unit = 10_f64.powf(ratio.log10().floor() - 1.0);
        format!("{:.0}", (ratio / unit).round() * unit)
    } else if ratio >= 9.95 {
        format!("{ratio:.0}")
    } else if ratio >= 1.95 {
        format!("{ratio:.1}")
    } else {
        format!("{ratio:.2}")
    }
}

/// `a`, `a and b`, `a, b and c`.
#[must_use]
pub fn list(items: &[String], last: &str) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [init @ .., end] => format!("{} {last} {end}", init.join(", ")),
    }
}

/// `1 thread`, `2 threads`.
#[must_use]
pub fn plural(count: f64, one: &str) -> String {
    if (count - 1.0).abs() < f64::EPSILON {
        format!("1 {one}")
    } else {
        format!("{} {one}s", digits(count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_and_no_exponent() {
        assert_eq!(digits(12.345), "12.3");
        assert_eq!(digits(0.045_61), "0.0456");
        assert_eq!(digits(1234.5), "1234");
        assert_eq!(digits(2.0), "2");
        assert_eq!(digits(0.0), "0");
    }

    #[test]
    fn units_change_before_four_digits_appear() {
        assert_eq!(rate(12_345_678.0), "12.3 M");
        assert_eq!(rate(999_700.0), "1 M");
        assert_eq!(rate(456_000.0), "456 k");
        assert_eq!(rates(12_345_678.0, 12_500_000.0), "12.3 – 12.5 M");
        assert_eq!(rates(990_000.0, 1_100_000.0), "990 k – 1.1 M");
        assert_eq!(rates(93.3, 120.0), "93.3 – 120");
        assert_eq!(rates(93.3, 1200.0), "93.3 – 1.2 k");
        assert_eq!(duration(120.0), "120 ns");
        assert_eq!(duration(1200.0), "1.2 µs");
        assert_eq!(duration(5e9), "5 s");
    }

    #[test]
    fn ratios_read_like_speech() {
        assert_eq!(times(39.7), "40");
        assert_eq!(times(2.34), "2.3");
        assert_eq!(times(1.034), "1.03");
        assert_eq!(times(95_190.0), "95000");
        assert_eq!(times(f64::INFINITY), "infinitely many");
    }

    #[test]
    fn lists_and_plurals() {
        let names: Vec<String> = ["a", "b", "c"].map(String::from).into();
        assert_eq!(list(&names, "and"), "a, b and c");
        assert_eq!(list(&names[..1], "and"), "a");
        assert_eq!(plural(1.0, "CPU"), "1 CPU");
        assert_eq!(plural(1.5, "CPU"), "1.5 CPUs");
    }
}
