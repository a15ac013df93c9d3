//! How people write quantities: durations with a unit, lists, ratios.

use std::time::Duration;

use fundu::{CustomDurationParser, CustomTimeUnit, ParseError, TimeUnit};
use qspin::tuning::KICK_AHEAD_MAX;

use crate::bench::load::{Holder, Lasting};

/// The units in which times are given.
const UNITS: [CustomTimeUnit<'_>; 4] = [
    CustomTimeUnit::with_default(TimeUnit::NanoSecond, &["ns"]),
    CustomTimeUnit::with_default(TimeUnit::MicroSecond, &["us", "µs"]),
    CustomTimeUnit::with_default(TimeUnit::MilliSecond, &["ms"]),
    CustomTimeUnit::with_default(TimeUnit::Second, &["s"]),
];

/// A duration as `100ns`, `2us`, `1.5ms`, `1s`; a bare `0` needs no unit.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    const RIGHT: &str = "write a number with a unit, such as 100ns, 2us, 1.5ms or 1s";
    let text = text.trim();
    match text.parse::<f64>() {
        Ok(0.0) => return Ok(Duration::ZERO),
        Ok(_) => return Err(format!("`{text}` has no unit: {RIGHT}")),
        Err(_) => {}
    }
    let parser = CustomDurationParser::builder().time_units(&UNITS).disable_exponent().build();
    match parser.parse(text).map(Duration::try_from) {
        Ok(Ok(time)) if time <= Duration::from_secs(1) => Ok(time),
        Ok(_) | Err(ParseError::Overflow) => Err(format!("`{text}` is too long: at most 1s")),
        Err(ParseError::TimeUnit(..)) => {
            let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
            Err(format!("`{unit}` is no unit of time: {RIGHT}"))
        }
        Err(_) => Err(format!("`{text}` is no duration: {RIGHT}")),
    }
}

/// A duration as [`parse_duration`] reads it, in the largest unit that needs no fraction.
pub fn show_duration(duration: Duration) -> String {
    let ns = duration.as_nanos();
    match ns {
        0 => "0ns".to_owned(),
        _ if ns.is_multiple_of(1_000_000_000) => format!("{}s", ns / 1_000_000_000),
        _ if ns.is_multiple_of(1_000_000) => format!("{}ms", ns / 1_000_000),
        _ if ns.is_multiple_of(1_000) => format!("{}us", ns / 1_000),
        _ => format!("{ns}ns"),
    }
}

/// A length in seconds, as `0.1`.
pub fn parse_seconds(text: &str) -> Result<Duration, String> {
    match text.trim().parse::<f64>() {
        Ok(seconds) if (0.001..=3600.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        Ok(_) => Err(format!("`{text}` is out of range: give 0.001 to 3600 seconds")),
        Err(_) => Err(format!("`{text}` is no number of seconds: write 0.1, or 2")),
    }
}

/// A seed.
pub fn parse_seed(text: &str) -> Result<u64, String> {
    let wrong = |_| format!("`{text}` is no seed: give a whole number from 0 to {}", u64::MAX);
    text.trim().parse().map_err(wrong)
}

/// The most threads that one may ask for.
const MAX_THREADS: u32 = 4096;

/// A whole number of `what`, from 1 to `most`; `several` says how more than one are written.
///
/// # Errors
///
/// What is wrong with `text`, and what would be right.
pub fn parse_count(text: &str, what: &str, most: u32, several: &str) -> Result<u32, String> {
    let number = text.trim().parse().ok().filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| format!("`{text}` is no number of {what}: give 1 to {most}{several}"))
}

/// A number of threads.
pub fn parse_threads(text: &str) -> Result<usize, String> {
    parse_count(text, "threads", MAX_THREADS, ", several as 1,2,4,8")
        .map(|threads| threads as usize)
}

/// An overcommitment as `1x` … `4x`.
pub fn parse_overcommit(text: &str) -> Result<u32, String> {
    match text.strip_suffix('x').map(str::parse::<u32>) {
        Some(Ok(times @ 1..=4)) => Ok(times),
        _ => Err(format!("`{text}` is no overcommitment: write 1x, 2x, 3x or 4x")),
    }
}

/// Holders that leave their CPU in one section of so many, as `sleeps/64`.
pub fn parse_holder(text: &str) -> Result<(Holder, u32), String> {
    let wrong = || {
        format!(
            "`{text}` does not say what holders do: write sleeps/64 or yields/64, in one section of 1 \
             to 1000000"
        )
    };
    let (does, one_in) = text.trim().split_once('/').ok_or_else(wrong)?;
    let holder = Holder::ALL.into_iter().find(|holder| holder.name() == does).ok_or_else(wrong)?;
    let one_in = one_in.parse().ok().filter(|one_in| (1..=1_000_000).contains(one_in));
    Ok((holder, one_in.ok_or_else(wrong)?))
}

/// Lengths inside and outside, as `1us/20us`.
pub fn parse_phases(text: &str) -> Result<Lasting, String> {
    let (critical, outside) = text.split_once('/').ok_or_else(|| {
        format!("`{text}` is no pair of lengths: write those inside and outside as 1us/20us")
    })?;
    Ok((parse_duration(critical)?, parse_duration(outside)?))
}

/// A quota of CPU time, as `0.5`: so many CPUs.
pub fn parse_quota(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(cpus) if (0.05..=1024.0).contains(&cpus) => Ok(cpus),
        _ => Err(format!("`{text}` is no quota: give CPUs as 0.5 or 2, from 0.05 to 1024")),
    }
}

/// What `--ratio` means: two locks, or readers to writers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ratio {
    /// `backoff/tas`: throughput of the first over that of the second.
    Locks(String, String),
    /// `9:1`: nine reads to one write.
    Readers(u32, u32),
}

/// A ratio as `backoff/tas` or `9:1`.
pub fn parse_ratio(text: &str) -> Result<Ratio, String> {
    const RIGHT: &str = "write two locks as backoff/tas, or readers:writers as 9:1";
    let wrong = || format!("`{text}` is no ratio: {RIGHT}");
    if let Some((one, other)) = text.split_once('/') {
        if one.is_empty() || other.is_empty() || other.contains('/') {
            return Err(wrong());
        }
        if one == other {
            return Err(format!("`{text}` compares a lock with itself: {RIGHT}"));
        }
        return Ok(Ratio::Locks(one.to_owned(), other.to_owned()));
    }
    let (readers, writers) = text.split_once(':').ok_or_else(wrong)?;
    let part = |part: &str| part.parse::<u32>().map_err(|_| wrong());
    let (readers, writers) = (part(readers)?, part(writers)?);
    if readers + writers == 0 || readers > 1_000_000 || writers > 1_000_000 {
        return Err(format!(
            "`{text}` mixes nothing: give readers and writers of 0 to 1000000, not both 0"
        ));
    }
    Ok(Ratio::Readers(readers, writers))
}

/// Kick-ahead levels as `0..5` (both ends included), `0,2,4` or `3`; ascending, each once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Levels(pub Vec<u32>);

/// Kick-ahead levels.
pub fn parse_levels(text: &str) -> Result<Levels, String> {
    const MAX: u32 = KICK_AHEAD_MAX as u32;
    let wrong = || {
        format!(
            "`{text}` names no kick-ahead levels: write 0..{MAX} with both ends, 0,2,4 or 3, each \
             from 0 to {MAX}"
        )
    };
    let level = |text: &str| match text.trim().parse::<u32>() {
        Ok(level @ 0..=MAX) => Ok(level),
        _ => Err(wrong()),
    };
    let mut levels: Vec<u32> = match text.split_once("..") {
        Some((first, last)) => (level(first)?..=level(last)?).collect(),
        None => text.split(',').map(level).collect::<Result<_, _>>()?,
    };
    if levels.is_empty() {
        return Err(wrong());
    }
    levels.sort_unstable();
    levels.dedup();
    Ok(Levels(levels))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kick_ahead_levels_are_a_range_a_list_or_a_number() {
        let levels = |text| parse_levels(text).map(|levels| levels.0);
        assert_eq!(levels("0..5"), Ok(vec![0, 1, 2, 3, 4, 5]));
        assert_eq!(levels("1..1"), Ok(vec![1]));
        assert_eq!(levels("4,0,2,2"), Ok(vec![0, 2, 4]));
        assert_eq!(levels("3"), Ok(vec![3]));
        for wrong in
            ["6", "0..6", "5..0", "..", "1..", "..2", "1,,2", "", "-1", "x", "0...5", "0..=5"]
        {
            assert!(levels(wrong).unwrap_err().contains("0..5"), "{wrong}");
        }
    }

    #[test]
    fn durations_need_a_unit() {
        let ns = |text| parse_duration(text).map(|d| d.as_nanos());
        assert_eq!(ns("100ns"), Ok(100));
        assert_eq!(ns("2us"), Ok(2_000));
        assert_eq!(ns("1.5ms"), Ok(1_500_000));
        assert_eq!(ns("1s"), Ok(1_000_000_000));
        assert_eq!(ns("0"), Ok(0));
        for wrong in ["100", "ns", "", "-1ns", "1h", "1 2ns", "1..2ns", "2s", "1e3ns"] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
        assert!(parse_duration("100").unwrap_err().contains("no unit"));
    }

    #[test]
    fn a_shown_duration_reads_back() {
        for text in ["0ns", "100ns", "2us", "1500us", "1ms", "1s"] {
            assert_eq!(show_duration(parse_duration(text).unwrap()), text);
        }
    }

    #[test]
    fn seconds_and_threads_have_a_range() {
        assert_eq!(parse_seconds("0.02"), Ok(Duration::from_millis(20)));
        for wrong in ["0", "-1", "nan", "inf", "1e9", "x", ""] {
            assert!(parse_seconds(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parse_threads("8"), Ok(8));
        for wrong in ["0", "-1", "4097", "x", "", "1.5"] {
            assert!(parse_threads(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_stands_in_the_way_of_a_load_is_said_in_pairs_and_numbers() {
        assert_eq!(parse_holder("sleeps/64"), Ok((Holder::Sleeps, 64)));
        assert_eq!(parse_holder("yields/1"), Ok((Holder::Yields, 1)));
        for wrong in ["sleeps", "sleeps/0", "naps/3", "yields/-1", "yields/2000000", ""] {
            assert!(parse_holder(wrong).unwrap_err().contains("sleeps/64"), "{wrong}");
        }
        let us = Duration::from_micros;
        assert_eq!(parse_phases("1us/20us"), Ok((us(1), us(20))));
        for wrong in ["1us", "1us/", "1/2", ""] {
            assert!(parse_phases(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parse_quota("0.5"), Ok(0.5));
        for wrong in ["0", "-1", "nan", "x", "2000"] {
            assert!(parse_quota(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn overcommitments_are_one_to_four() {
        assert_eq!(parse_overcommit("1x"), Ok(1));
        assert_eq!(parse_overcommit("4x"), Ok(4));
        for wrong in ["0x", "5x", "2", "x", "", "1.5x"] {
            assert!(parse_overcommit(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn ratios_are_of_locks_or_of_readers() {
        let locks = Ratio::Locks("backoff".into(), "tas".into());
        assert_eq!(parse_ratio("backoff/tas"), Ok(locks));
        assert_eq!(parse_ratio("9:1"), Ok(Ratio::Readers(9, 1)));
        assert_eq!(parse_ratio("0:1"), Ok(Ratio::Readers(0, 1)));
        for wrong in ["a/a", "/b", "a/", "a/b/c", "0:0", "9", "9:", "9:-1", "2000000:1"] {
            assert!(parse_ratio(wrong).is_err(), "{wrong}");
        }
    }
}
