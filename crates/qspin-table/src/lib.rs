//! Every table that a command of qspin prints: described once, and rendered by one piece of code.
//!
//! [`Columns`] say of each column its heading, its unit, and the value of a cell as a function of what the row
//! is about. Applied to rows they give a [`Table`], which is shown on a terminal (`Display`), as Markdown, as
//! CSV or as HTML. A table that is not made of rows of one kind, such as one with a column a lock, is put
//! together by [`Table::new`] and [`Table::add`].
//!
//! * A number is one `f64` everywhere: three significant digits for people, every digit in CSV.
//! * What is not known is a dash for people, and nothing in CSV.
//! * The first column names the row, so it is flush left, as text is; numbers are flush right.

mod cell;
pub mod number;
mod render;

pub use cell::{Cell, fixed};
pub use render::{code, escape};

type Value<'a, R> = Box<dyn Fn(&R) -> Cell + 'a>;

/// What the columns of a table are, and how the cells of a row follow from what the row is about.
pub struct Columns<'a, R: ?Sized>(Vec<(Head, Value<'a, R>)>);

impl<R: ?Sized> std::fmt::Debug for Columns<'_, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(head, _)| head)).finish()
    }
}

/// What stands above a column.
#[derive(Debug, Clone, Default)]
struct Head {
    /// May be broken into lines where it is wider than what stands below it.
    name: String,
    unit: String,
    right: bool,
    /// Left out where no row has a value.
    optional: bool,
    /// Left out where the terminal is too narrow for all.
    spare: bool,
    /// Sentences, which are broken into lines to fit the terminal.
    prose: bool,
}

impl<'a, R: ?Sized> Columns<'a, R> {
    /// None yet.
    #[must_use]
    pub fn new() -> Self {
        Self(Vec::new())
    }

    fn push<C: Into<Cell>>(mut self, head: Head, value: impl Fn(&R) -> C + 'a) -> Self {
        self.0.push((head, Box::new(move |row| value(row).into())));
        self
    }

    /// A column of text.
    #[must_use]
    pub fn text<C: Into<Cell>>(self, name: &str, value: impl Fn(&R) -> C + 'a) -> Self {
        self.push(Head { name: name.to_owned(), ..Head::default() }, value)
    }

    /// A column of numbers, all of them in `unit`, which is empty for plain numbers.
    #[must_use]
    pub fn number<C: Into<Cell>>(
        self,
        name: &str,
        unit: &str,
        value: impl Fn(&R) -> C + 'a,
    ) -> Self {
        let (name, unit) = (name.to_owned(), unit.to_owned());
        self.push(Head { name, unit, right: true, ..Head::default() }, value)
    }

    fn last(mut self, change: impl Fn(&mut Head)) -> Self {
        if let Some((head, _)) = self.0.last_mut() {
            change(head);
        }
        self
    }

    /// The last column is left out of a table in which no row has a value for it.
    #[must_use]
    pub fn optional(self) -> Self {
        self.last(|head| head.optional = true)
    }

    /// The last column is left out on a terminal that is too narrow for all.
    #[must_use]
    pub fn spare(self) -> Self {
        self.last(|head| head.spare = true)
    }

    /// Without the columns that are left out on a narrow terminal.
    #[must_use]
    pub fn without_spare(mut self) -> Self {
        self.0.retain(|(head, _)| !head.spare);
        self
    }

    /// The last column holds sentences, which are broken into lines on a narrow terminal.
    #[must_use]
    pub fn prose(self) -> Self {
        self.last(|head| head.prose = true)
    }

    /// The table of `rows`, a line each.
    #[must_use]
    pub fn table<'r>(&self, rows: impl IntoIterator<Item = &'r R>) -> Table
    where
        R: 'r,
    {
        let heads = self.0.iter().map(|(head, _)| head.clone()).collect();
        let mut table = Table { heads, lines: Vec::new() };
        for row in rows {
            self.add_to(&mut table, row);
        }
        table
    }

    /// Adds the line of `row` to a table of these columns.
    pub fn add_to(&self, table: &mut Table, row: &R) {
        table.add(self.0.iter().map(|(_, value)| value(row)));
    }
}

impl<R: ?Sized> Default for Columns<'_, R> {
    fn default() -> Self {
        Self::new()
    }
}

/// A row: its cells, and what it is in a page.
#[derive(Debug, Clone, Default)]
struct Line {
    cells: Vec<Cell>,
    class: String,
    key: Option<String>,
}

/// A table, ready to be shown.
#[derive(Debug, Clone, Default)]
pub struct Table {
    heads: Vec<Head>,
    lines: Vec<Line>,
}

impl Table {
    /// A table without rows: a column of text, then columns of numbers.
    #[must_use]
    pub fn new<S: Into<String>>(text: &str, numbers: impl IntoIterator<Item = S>) -> Self {
        let first = Head { name: text.to_owned(), ..Head::default() };
        let number = |name: S| Head { name: name.into(), right: true, ..Head::default() };
        let heads = [first].into_iter().chain(numbers.into_iter().map(number)).collect();
        Self { heads, lines: Vec::new() }
    }

    /// Adds a row.
    pub fn add<C: Into<Cell>>(&mut self, cells: impl IntoIterator<Item = C>) {
        let cells = cells.into_iter().map(Into::into).collect();
        self.lines.push(Line { cells, ..Line::default() });
    }

    /// How a page's style and script know the row that was added last: by its class, and by what it is about.
    pub fn mark(&mut self, class: impl Into<String>, key: Option<&str>) {
        if let Some(line) = self.lines.last_mut() {
            line.class = class.into();
            line.key = key.map(str::to_owned);
        }
    }

    /// The number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}
