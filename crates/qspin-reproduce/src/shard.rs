//! Parts of a plan, for several computers, and how they become one again.
//!
//! # Invariants
//! * **SHARD-1** The cells of a plan have an order, and cell *k* (from 0) is in part *k mod n* + 1. So the
//!   parts are of almost one size, though cells of one kind lie side by side.
//! * **SHARD-2** The machine row of a part is that of the whole, but for the field `shard`. So the parts of
//!   one plan, and nothing else, have equal machine rows.

use std::fmt::{Display, Write};

use qspin_sim::Scenario;
use serde::{Deserialize, Serialize};

/// Parts at most.
pub const MAX: u32 = 100_000;

/// Which part, of how many; both count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    number: u32,
    of: u32,
}

/// What the machine row of a part says about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    /// Which part; the first is 1.
    pub number: u32,
    /// Of how many.
    pub of: u32,
    /// Cells of the whole.
    pub cells: usize,
    /// A hash of everything that is simulated for the whole: the same for all parts of a plan.
    pub plan: String,
}

impl Part {
    /// Everything.
    pub const WHOLE: Self = Self { number: 1, of: 1 };

    /// A part as in `2/3`.
    ///
    /// # Errors
    ///
    /// What is wrong with the text, and what would be right.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is no part: give I/N, such as 2/3, with I from 1 to N, and N at most {MAX}"
            )
        };
        let (number, of) = text.split_once('/').ok_or_else(wrong)?;
        let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let count = |text: &str| text.parse().ok().filter(|_| plain(text));
        let (Some(number), Some(of)) = (count(number), count(of)) else { return Err(wrong()) };
        if number < 1 || number > of || of > MAX {
            return Err(wrong());
        }
        Ok(Self { number, of })
    }

    /// Its cells (SHARD-1).
    #[must_use]
    pub fn of<T>(self, cells: Vec<T>) -> Vec<T> {
        cells.into_iter().skip(self.number as usize - 1).step_by(self.of as usize).collect()
    }
}

impl Shard {
    /// The part of a plan with these cells, of so many runs each: what each is called, and what is simulated
    /// for it.
    ///
    /// # Errors
    ///
    /// When a figure of the plan is no number.
    pub fn new<'a>(
        part: Part,
        cells: impl IntoIterator<Item = (impl Display, &'a [Scenario])>,
        seeds: u32,
    ) -> serde_json::Result<Self> {
        let (mut text, mut count) = (format!("{seeds} runs of"), 0);
        for (name, scenarios) in cells {
            let _ = write!(text, "\n{name}");
            for scenario in scenarios {
                let scenario = serde_json::to_string(scenario)?;
                let _ = write!(text, " {scenario}");
            }
            count += 1;
        }
        let plan = format!("{:016x}", fnv(text.as_bytes()));
        Ok(Self { number: part.number, of: part.of, cells: count, plan })
    }

    /// The numbers of its cells (SHARD-1).
    pub fn numbers(&self) -> impl ExactSizeIterator<Item = usize> + use<> {
        (self.number as usize - 1..self.cells).step_by(self.of as usize)
    }
}

/// The hash of Fowler, Noll and Vo: against mistakes, not against forgery, and the same in every version of
/// the compiler.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_disjoint_and_together_everything() {
        for of in 1..7 {
            let mut all: Vec<usize> = (1..=of)
                .flat_map(|number| {
                    let part = Part { number, of };
                    let cells = part.of((0..5).collect::<Vec<usize>>());
                    let shard = Shard { number, of, cells: 5, plan: String::new() };
                    assert!(shard.numbers().eq(cells.iter().copied()));
                    cells
                })
                .collect();
            all.sort_unstable();
            assert_eq!(all, [0, 1, 2, 3, 4]);
        }
    }

    #[test]
    fn what_is_no_part_is_refused() {
        assert_eq!(Part::parse("2/3"), Ok(Part { number: 2, of: 3 }));
        for text in
            ["", "/", "1", "0/0", "0/3", "3/2", "1/0", "-1/3", "+1/3", "1/3/3", "1/100001", "1 / 3"]
        {
            assert!(Part::parse(text).unwrap_err().contains("I/N"), "{text}");
        }
    }

    #[test]
    fn the_hash_is_the_published_one() {
        assert_eq!(fnv(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv(b"foobar"), 0x8594_4171_f739_67e8);
    }
}
