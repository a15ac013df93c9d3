//! The header of a file of counters: text that says what the rest of the file holds.
//!
//! It was written by another process, so nothing in it is believed before it is checked.

use std::fmt;

/// The format that is read here.
const FORMAT: u64 = 1;
/// Bytes of the file's beginning that hold the header.
pub(super) const LONGEST: usize = 4096;
/// The largest file that is read, and the longest name.
const MAX_BYTES: u64 = 1 << 26;
const LONGEST_NAME: usize = 64;

const NOT_OURS: &str = "is not a file of qspin";

/// A counter: its name, and the name that Linux gave it where that is another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Counter {
    pub(super) name: String,
    pub(super) alias: Option<String>,
}

/// What the file holds.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Name of the group.
    pub(super) group: String,
    /// The process that counts, by its own idea of its number.
    pub(super) pid: u32,
    /// When it began, in nanoseconds since the machine was started.
    pub(super) started_ns: u64,
    /// Where the first record begins.
    pub(super) offset: u64,
    /// From one record to the next; a multiple of 8, at least a word more than there are counters.
    pub(super) stride: u64,
    pub(super) records: u64,
    /// The record that holds what is to be subtracted from the sum of the others; its last word
    /// is the time of the reset that wrote it.
    pub(super) mark: u64,
    pub(super) counters: Vec<Counter>,
}

/// Why a file is not to be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Nothing is written in it, or not yet.
    Empty,
    /// What is wrong with it.
    Wrong(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => formatter.write_str("is empty"),
            Self::Wrong(why) => formatter.write_str(why),
        }
    }
}

fn wrong<T>(why: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Wrong(why.into()))
}

impl Header {
    /// Reads the header at the beginning of a file of `size` bytes.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub(super) fn parse(beginning: &[u8], size: u64) -> Result<Self, Fault> {
        let mut lines = Self::text(beginning)?.lines();
        match lines.next().and_then(|line| line.strip_prefix("qspin-stat ")) {
            Some(format) if format.parse() == Ok(FORMAT) => {}
            Some(format) => {
                return wrong(format!(
                    "was written in format {format}, and this qspin reads format {FORMAT}"
                ));
            }
            None => return wrong(NOT_OURS),
        }
        let (mut group, mut pid, mut started_ns, mut layout, mut mark) =
            (None, None, None, None, None);
        let mut counters = Vec::new();
        for line in lines {
            let bad = || Fault::Wrong(format!("has a damaged header: `{line}`"));
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["group", name] => group = Some(checked(name).ok_or_else(bad)?),
                ["pid", number] => pid = Some(number.parse::<u32>().map_err(|_| bad())?),
                ["started", ns] => started_ns = Some(ns.parse::<u64>().map_err(|_| bad())?),
                ["records", offset, stride, records] => {
                    let number = |word: &str| word.parse::<u64>().map_err(|_| bad());
                    layout = Some((number(offset)?, number(stride)?, number(records)?));
                }
                ["mark", record] => mark = Some(record.parse::<u64>().map_err(|_| bad())?),
                ["event", name] => {
                    counters.push(Counter { name: checked(name).ok_or_else(bad)?, alias: None })
                }
                ["event", name, alias] => counters.push(Counter {
                    name: checked(name).ok_or_else(bad)?,
                    alias: Some(checked(alias).ok_or_else(bad)?),
                }),
                // Lines that a later qspin has added.
                _ => {}
            }
        }
        let missing = |what: &str| Fault::Wrong(format!("has a damaged header: no {what}"));
        let (offset, stride, records) = layout.ok_or_else(|| missing("records"))?;
        let header = Self {
            group: group.ok_or_else(|| missing("group"))?,
            pid: pid.ok_or_else(|| missing("pid"))?,
            started_ns: started_ns.ok_or_else(|| missing("start"))?,
            offset,
            stride,
            records,
            mark: mark.ok_or_else(|| missing("mark"))?,
            counters,
        };
        header.check(size)?;
        Ok(header)
    }

    /// The text of the header.
    fn text(beginning: &[u8]) -> Result<&str, Fault> {
        const END: &[u8] = b"\nend\n";
        if beginning.iter().all(|byte| *byte == 0) {
            return Err(Fault::Empty);
        }
        let damaged = || Fault::Wrong(NOT_OURS.to_owned());
        let end = beginning.windows(END.len()).position(|bytes| bytes == END);
        let text = &beginning[..=end.ok_or_else(damaged)?];
        let text = std::str::from_utf8(text).map_err(|_| damaged())?;
        if text.contains(|c: char| c != '\n' && !(' '..='~').contains(&c)) {
            return Err(damaged());
        }
        Ok(text)
    }

    fn check(&self, size: u64) -> Result<(), Fault> {
        let contradicts =
            |what: &str| wrong(format!("has a header that contradicts itself: {what}"));
        let words = self.stride / 8;
        if !self.stride.is_multiple_of(8) || words <= self.counters.len() as u64 {
            return contradicts("its records are too short for its counters");
        }
        if self.mark >= self.records {
            return contradicts("it has no record for a reset");
        }
        let end = self.stride.checked_mul(self.records);
        match end.and_then(|length| length.checked_add(self.offset)) {
            Some(end) if end <= MAX_BYTES && end <= size => Ok(()),
            Some(end) if end <= MAX_BYTES => {
                wrong(format!("is cut off: {size} of {end} bytes are there"))
            }
            _ => contradicts("its records are larger than any"),
        }
    }
}

/// A name that may be shown.
fn checked(name: &str) -> Option<String> {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    (!name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(good))
        .then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "qspin-stat 1\ngroup process\npid 7\nstarted 5\nrecords 4096 256 256\n\
                        mark 0\nevent a\nevent b pv_b\nend\n";

    fn parse(text: &str) -> Result<Header, Fault> {
        Header::parse(text.as_bytes(), 4096 + 256 * 256)
    }

    #[test]
    fn a_header_says_what_the_file_holds() {
        let header = parse(GOOD).unwrap();
        assert_eq!((header.group.as_str(), header.pid, header.started_ns), ("process", 7, 5));
        assert_eq!(
            (header.offset, header.stride, header.records, header.mark),
            (4096, 256, 256, 0)
        );
        assert_eq!(header.counters[1].alias.as_deref(), Some("pv_b"));
    }

    #[test]
    fn lines_that_a_later_qspin_has_added_are_passed_over() {
        let more = GOOD.replace("mark", "unit ns of something\nmark");
        assert_eq!(parse(&more), parse(GOOD));
    }

    #[test]
    fn a_header_that_is_not_right_is_refused_with_the_reason() {
        for (from, to, said) in [
            ("qspin-stat 1", "qspin-stat 2", "format 2"),
            ("qspin-stat", "another", "not a file of qspin"),
            ("end\n", "", "not a file of qspin"),
            ("group process", "group \u{1b}[31m", "not a file of qspin"),
            ("group process", "group a/b", "damaged"),
            ("group process\n", "", "no group"),
            ("pid 7", "pid -7", "damaged"),
            ("started 5", "started 99999999999999999999", "damaged"),
            ("4096 256 256", "4096 256", "no records"),
            ("4096 256 256", "4096 257 256", "too short"),
            ("4096 256 256", "4096 16 256", "too short"),
            ("4096 256 256", "4096 256 257", "cut off"),
            ("4096 256 256", "4096 256 18446744073709551615", "larger than any"),
            ("4096 256 256", "18446744073709551615 256 1", "larger than any"),
            ("4096 256 256", "4096 256 0", "no record for a reset"),
            ("mark 0", "mark 256", "no record for a reset"),
            ("mark 0\n", "", "no mark"),
            ("event a", "event ", "damaged"),
        ] {
            assert!(GOOD.contains(from), "{from}");
            let said_wrong = parse(&GOOD.replace(from, to)).unwrap_err().to_string();
            assert!(said_wrong.contains(said), "{from} → {to}: {said_wrong}");
        }
        assert_eq!(parse(""), Err(Fault::Empty));
        assert_eq!(Header::parse(&[0; 4096], 4096), Err(Fault::Empty));
        assert_eq!(Header::parse(&[0xff; 4096], 4096), wrong(NOT_OURS));
    }
}
