//! From a table to text: one function an output format.

use std::fmt;
use std::io::IsTerminal;

use comfy_table::presets::{ASCII_MARKDOWN, ASCII_NO_BORDERS};
use comfy_table::{CellAlignment, ContentArrangement, LineStyle};
use maud::{Markup, html};

use crate::{Cell, Head, Line, Table};

/// As wide as the terminal, or as it needs where the output is no terminal.
impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let out = std::io::stdout();
        let width = out.is_terminal().then(|| terminal_size::terminal_size_of(out)).flatten();
        f.write_str(&self.terminal(width.map(|(width, _)| width.0)))
    }
}

impl Head {
    /// On one line: breaks were for narrow columns.
    fn in_a_line(&self) -> String {
        self.name.replace("-\n", "-").replace("\n/", "/").replace('\n', " ")
    }
}

impl Table {
    /// The places of the columns that are shown; those for a wide terminal only if it is one.
    fn shown(&self, with_spare: bool) -> Vec<usize> {
        let known = |at: usize| {
            self.lines.iter().any(|line| line.cells.get(at).is_some_and(|cell| cell.text.is_some()))
        };
        let is_shown = |(at, head): (usize, &Head)| {
            ((with_spare || !head.spare) && (!head.optional || known(at))).then_some(at)
        };
        self.heads.iter().enumerate().filter_map(is_shown).collect()
    }

    fn draw(
        &self,
        columns: &[usize],
        style: comfy_table::TableStyle,
        head: impl Fn(&Head) -> String,
        cell: impl Fn(&Cell) -> String,
    ) -> comfy_table::Table {
        let mut table = comfy_table::Table::new();
        table.load_style(style);
        table.set_header(columns.iter().map(|at| head(&self.heads[*at])));
        for line in &self.lines {
            table.add_row(
                columns.iter().map(|at| line.cells.get(*at).map_or_else(String::new, &cell)),
            );
        }
        for (at, column) in columns.iter().zip(table.column_iter_mut()) {
            if self.heads[*at].right {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table
    }

    /// For a terminal of so many columns; `None` is as wide as is needed.
    #[must_use]
    pub fn terminal(&self, width: Option<u16>) -> String {
        let head = |head: &Head| match (&head.name, &head.unit) {
            (name, unit) if unit.is_empty() => name.clone(),
            // The last line of a broken heading has room for it.
            (name, unit) if name.contains('\n') => format!("{name} {unit}"),
            (name, unit) => format!("{name}\n{unit}"),
        };
        let style = || ASCII_NO_BORDERS.row_separator(LineStyle::none());
        let draw = |spare| self.draw(&self.shown(spare), style(), head, Cell::shown);
        let table = draw(true);
        let Some(width) = width else { return table.to_string() };
        let fits = |text: &str| {
            text.lines().next().is_none_or(|line| line.chars().count() <= usize::from(width))
        };
        let text = table.to_string();
        if fits(&text) {
            return text;
        }
        let mut table = draw(false);
        if self.heads.iter().any(|head| head.prose) {
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        }
        table.to_string()
    }

    /// As Markdown that reads as a table before it is rendered, too. Text from a file is escaped.
    #[must_use]
    pub fn markdown(&self) -> String {
        let head = |head: &Head| {
            let unit =
                if head.unit.is_empty() { String::new() } else { format!(" ({})", head.unit) };
            escape(&(head.in_a_line() + &unit))
        };
        let cell = |cell: &Cell| match cell.has_names {
            true => between_backticks(&cell.shown(), escape, |name| format!("`{name}`")).concat(),
            false => escape(&cell.shown()),
        };
        let columns = self.shown(true);
        let text = self.draw(&columns, ASCII_MARKDOWN, head, cell).to_string();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        if let Some(rule) = lines.get_mut(1) {
            let parts = rule.trim_matches('|').split('|').zip(&columns).map(|(part, at)| {
                if self.heads[*at].right { format!("{}:", &part[1..]) } else { part.to_owned() }
            });
            *rule = format!("|{}|", parts.collect::<Vec<_>>().join("|"));
        }
        lines.join("\n") + "\n"
    }

    /// As CSV, with every digit of a number, and every column.
    #[must_use]
    pub fn csv(&self) -> String {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let heads = self.heads.iter().map(|head| head.name.clone()).collect();
        let lines = self.lines.iter().map(|line| line.cells.iter().map(Cell::exact).collect());
        for record in [heads].into_iter().chain::<Vec<Vec<String>>>(lines.collect()) {
            writer
                .write_record(record)
                .expect("writing to memory does not fail, and a row has a cell for each heading");
        }
        let bytes = writer.into_inner().expect("flushing memory does not fail");
        String::from_utf8(bytes).expect("made of strings")
    }

    /// As a table of a page, which may be wider than the page; `label` says what it is to a reader that cannot see it.
    #[must_use]
    pub fn html(&self, class: &str, label: &str) -> Markup {
        let columns = self.shown(true);
        html! {
            div.scroll tabindex="0" role="region" aria-label=(label) {
                table.(class) {
                    thead {
                        tr {
                            @for head in columns.iter().map(|at| &self.heads[*at]) {
                                th scope="col" {
                                    (head.in_a_line())
                                    @if !head.unit.is_empty() { span.unit { (head.unit) } }
                                }
                            }
                        }
                    }
                    tbody { @for line in &self.lines { (row(line, &columns)) } }
                }
            }
        }
    }
}

fn row(line: &Line, columns: &[usize]) -> Markup {
    let class = Some(&line.class).filter(|class| !class.is_empty());
    html! {
        tr class=[class] data-lock=[&line.key] {
            @for (index, cell) in columns.iter().filter_map(|at| line.cells.get(*at)).enumerate() {
                @if index == 0 {
                    th scope="row" { (content(cell)) }
                } @else if cell.text.is_none() {
                    td.none { "–" }
                } @else {
                    td data-v=[cell.value.map(sortable)] title=[&cell.title]
                        style=[cell.heat.map(|heat| format!("--heat:{heat:.3}"))] { (content(cell)) }
                }
            }
        }
    }
}

/// As the page's script reads a number.
fn sortable(value: f64) -> String {
    if value.is_infinite() { "Infinity".to_owned() } else { value.to_string() }
}

fn content(cell: &Cell) -> Markup {
    let text = cell.text.as_deref().unwrap_or("–");
    html! {
        @if let Some(id) = &cell.link { a href={ "#" (id) } { (text) } }
        @else if cell.has_names { (code(text)) }
        @else { (text) }
        @if let Some(note) = &cell.note { span.note { (note) } }
        @for (word, class) in &cell.badges { span class={ "badge " (class) } { (word) } }
    }
}

/// The parts of a text: those between backticks are names.
fn between_backticks<T>(text: &str, plain: impl Fn(&str) -> T, name: impl Fn(&str) -> T) -> Vec<T> {
    let parts = text.split('`').enumerate();
    parts.map(|(at, part)| if at % 2 == 1 { name(part) } else { plain(part) }).collect()
}

/// A sentence in a page, in which names between backticks are code.
#[must_use]
pub fn code(text: &str) -> Markup {
    let parts = between_backticks(text, |part| html! { (part) }, |name| html! { code { (name) } });
    html! { @for part in parts { (part) } }
}

/// Text from a file must not become a table cell, a heading or HTML.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            '<' => out += "&lt;",
            '&' => out += "&amp;",
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use crate::{Cell, Columns, Table, fixed};

    struct Row {
        lock: &'static str,
        rate: f64,
        wait: Option<f64>,
    }

    fn table() -> Table {
        let columns = Columns::<Row>::new()
            .text("lock", |row| row.lock)
            .number("ops/s", "k", |row| row.rate / 1e3)
            .number("longest\nwait", "µs", |row| row.wait)
            .spare()
            .number("nothing", "", |_| None::<f64>)
            .optional();
        let rows = [
            Row { lock: "cna_old", rate: 1_234_567.0, wait: None },
            Row { lock: "a|b", rate: 1e3, wait: Some(f64::INFINITY) },
        ];
        columns.table(&rows)
    }

    #[test]
    fn a_terminal_has_the_units_below_the_headings_and_only_columns_that_say_something() {
        let shown = table().terminal(None);
        let lines: Vec<Vec<&str>> =
            shown.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0], ["lock", "|", "ops/s", "|", "longest"], "{shown}");
        assert_eq!(lines[1], ["|", "k", "|", "wait", "µs"], "{shown}");
        assert_eq!(lines[3], ["cna_old", "|", "1235", "|", "–"], "{shown}");
    }

    #[test]
    fn a_narrow_terminal_goes_without_what_can_be_spared() {
        assert!(table().terminal(Some(80)).contains("longest"));
        assert!(!table().terminal(Some(20)).contains("longest"));
        let tells = Columns::<String>::new().text("tells", String::clone).prose();
        let table = tells.table(&["a sentence of several words".to_owned()]);
        assert!(table.terminal(Some(15)).lines().all(|line| line.chars().count() <= 15));
    }

    #[test]
    fn markdown_is_aligned_and_takes_no_name_for_markup() {
        let expected = "\
| lock     | ops/s (k) | longest wait (µs) |
|----------|----------:|------------------:|
| cna\\_old |      1235 |                 – |
| a\\|b     |         1 |                 ∞ |
";
        assert_eq!(table().markdown(), expected);
        let mut code = Table::new("lock", ["95 %"]);
        code.add([Cell::name("a_b"), fixed(0.126, 2)]);
        assert!(code.markdown().contains("| `a_b` | 0.13 |"), "{}", code.markdown());
    }

    #[test]
    fn csv_has_every_digit_and_nothing_for_what_is_not_known() {
        let expected = "lock,ops/s,\"longest\nwait\",nothing\ncna_old,1234.567,,\na|b,1,inf,\n";
        assert_eq!(table().csv(), expected);
    }

    #[test]
    fn a_page_can_sort_by_the_exact_value() {
        let mut table = table();
        table.add([Cell::from("last").badge(Some("old"), "warn")]);
        table.mark("own", Some("last"));
        let page = table.html("sortable", "All figures").into_string();
        for part in [
            "<th scope=\"col\">longest wait<span class=\"unit\">µs</span></th>",
            "<td data-v=\"1234.567\">1235</td><td class=\"none\">–</td>",
            "<td data-v=\"Infinity\">∞</td>",
            "<tr class=\"own\" data-lock=\"last\"><th scope=\"row\">last<span class=\"badge warn\">old",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(!page.contains("nothing"), "{page}");
    }
}
