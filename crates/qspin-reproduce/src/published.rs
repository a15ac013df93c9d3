//! The tables of the published documents, as `data/published/` holds them.
//!
//! A simulator is worth as much as it agrees with measurements of machines that exist. These tables are
//! those measurements, so nothing about them is guessed here: a file says in its head which of its
//! columns are labels, which were measured and how a ratio of new to old is formed, and whatever a file
//! says that does not fit together is an error with the file and the line.
//!
//! The format, for people: `data/published/README.md`. The tables are part of the program, so that
//! it needs no checkout of the sources to reproduce them.

mod parse;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

/// What the name of a column of deviations ends in; what comes before it is the column it belongs to.
const DEVIATION: &str = " std-dev";

/// Name and text of each table that comes with the program.
macro_rules! embedded {
    ($($name:literal)*) => {
        [$(($name, include_str!(concat!("../../../data/published/", $name, ".csv")))),*]
    };
}

/// Every table, in the order of the documents.
const TABLES: [(&str, &str); 36] = embedded! {
    "000-haswell" "000-westmere" "000-pending" "000-statistics" "000-latencies"
    "000-claims" "000-machines" "000-tunables"
    "001-A" "001-B" "001-C" "001-claims" "001-machines"
    "002-locktorture" "002-open1" "002-lock2" "002-leveldb"
    "002-fsmark-nosync" "002-fsmark-fsync" "002-aim7"
    "002-tpcc" "002-claims" "002-machines" "002-tunables"
    "003-1" "003-32" "003-128" "003-gcc" "003-claims" "003-machines" "003-tunables"
    "004-openclose" "004-dbench" "004-single" "004-machines" "004-tunables"
};

/// The names of the tables that come with the program, in the order of the documents.
pub fn names() -> impl Iterator<Item = &'static str> {
    TABLES.iter().map(|(name, _)| *name)
}

/// The table of that name that comes with the program.
///
/// # Errors
///
/// When there is none of that name.
pub fn table(name: &str) -> Result<Table, BadTable> {
    let Some((name, text)) = TABLES.iter().find(|(known, _)| *known == name) else {
        let names = names().collect::<Vec<_>>().join(", ");
        let message = format!("is no published table; there are: {names}");
        return Err(BadTable { file: name.to_string(), line: 0, message });
    };
    Table::parse(&format!("{name}.csv"), text)
}

/// One table of a document.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// The name: that of the file without `.csv`.
    pub name: String,
    /// The head: what the keys of the leading comments say. Several notes are joined by newlines.
    pub comments: BTreeMap<String, String>,
    /// The names of the columns that name a row.
    pub labels: Vec<String>,
    /// The names of the columns of numbers, in the order of [`Row::cells`].
    pub columns: Vec<String>,
    /// Those of [`Table::columns`] that were measured. The others are deviations, and figures which
    /// the document computed from the measured ones.
    pub values: Vec<usize>,
    /// How a ratio of new to old is formed.
    pub ratio: Ratio,
    /// The rows, as printed from top to bottom.
    pub rows: Vec<Row>,
}

/// One row of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The line of the file.
    pub line: usize,
    /// What names the row; one for each of [`Table::labels`].
    pub labels: Vec<String>,
    /// The numbers; one for each of [`Table::columns`], `None` where the document prints none.
    pub cells: Vec<Option<f64>>,
}

/// How the ratio of new to old is formed in a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ratio {
    /// The table compares nothing.
    None,
    /// Each measured cell is such a ratio.
    Cells,
    /// Each measured cell is a ratio's surplus over 1, in percent.
    Percent,
    /// One column divided by another.
    Columns(Vec<Quotient>),
}

/// Two columns whose quotient is a ratio of new to old; indices into [`Table::columns`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quotient {
    /// The numerator.
    pub new: usize,
    /// The denominator.
    pub old: usize,
    /// The column in which the document itself prints the quotient.
    pub printed: Option<usize>,
}

/// What is wrong with a table, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadTable {
    /// The file as it was named to the reader.
    pub file: String,
    /// The line, from 1; 0 if the file could not be read at all.
    pub line: usize,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl fmt::Display for BadTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, message } = self;
        if *line == 0 {
            write!(f, "{file}: {message}")
        } else {
            write!(f, "{file}:{line}: {message}")
        }
    }
}

impl std::error::Error for BadTable {}

impl Table {
    /// Reads a table from a file.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is no table of this format: see [`Table::parse`].
    pub fn read(path: &Path) -> Result<Self, BadTable> {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| BadTable {
            file: file.clone(),
            line: 0,
            message: format!("cannot be read: {error}"),
        })?;
        Self::parse(&file, &text)
    }

    /// Reads a table from text. `file` is what errors call it, and what the table's name is taken from.
    ///
    /// # Errors
    ///
    /// On a head that lacks a key, repeats or misspells one; on columns that the head names and the
    /// table lacks; on rows of another length than the header, cells that are no number, and two
    /// columns or two rows of one name.
    pub fn parse(file: &str, text: &str) -> Result<Self, BadTable> {
        parse::table(file, text)
    }

    /// The index of a column of numbers by its name.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column == name)
    }

    /// The column that holds the standard deviations of a column.
    #[must_use]
    pub fn deviation(&self, column: usize) -> Option<usize> {
        self.column(&format!("{}{DEVIATION}", self.columns.get(column)?))
    }

    /// The row that has exactly these labels.
    #[must_use]
    pub fn row(&self, labels: &[&str]) -> Option<&Row> {
        self.rows.iter().find(|row| row.labels == labels)
    }

    /// What a row is called in a report: `8 threads`, `patch 4, 32 vCPUs`.
    #[must_use]
    pub fn row_name(&self, row: &Row) -> String {
        let part = |(name, label): (&String, &String)| match label.parse::<u64>() {
            Ok(_) if name.ends_with('s') => format!("{label} {name}"),
            Ok(_) => format!("{name} {label}"),
            Err(_) => label.clone(),
        };
        let parts = self.labels.iter().zip(&row.labels).filter(|(_, label)| !label.is_empty());
        parts.map(part).collect::<Vec<_>>().join(", ")
    }

    /// The ratios of new to old in a row, each with the column of what is new.
    #[must_use]
    pub fn ratios(&self, row: &Row) -> Vec<(usize, f64)> {
        let cell = |column: usize| Some((column, row.cells[column]?));
        let values = self.values.iter().copied();
        match &self.ratio {
            Ratio::None => Vec::new(),
            Ratio::Cells => values.filter_map(cell).collect(),
            Ratio::Percent => values.filter_map(cell).map(|(c, x)| (c, 1.0 + x / 100.0)).collect(),
            Ratio::Columns(quotients) => quotients
                .iter()
                .filter_map(|q| Some((q.new, row.cells[q.new]? / row.cells[q.old]?)))
                .collect(),
        }
    }
}
