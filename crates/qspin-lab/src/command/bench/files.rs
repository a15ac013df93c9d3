//! The files that a run leaves: rows, a report, a table.

use std::path::PathBuf;

use crate::failure::Failure;
use crate::output::Output;
use crate::report::{Format, Run};
use crate::row::{self, Machine, Row};

use super::Args;

/// The files. All are tried before anything is measured: an hour's run must not end at a
/// typing error.
pub(super) struct Files {
    /// What the report says of its source.
    source: String,
    out: Option<Output>,
    report: Option<Output>,
    table: Option<Output>,
}

impl Files {
    pub(super) fn prepare(args: &Args) -> Result<Self, Failure> {
        let prepare = |path: &Option<PathBuf>| path.as_deref().map(Output::prepare).transpose();
        let (out, report) = (prepare(&args.out)?, prepare(&args.report)?);
        if let (Some(out), Some(report)) = (&out, &report)
            && out.path() == report.path()
        {
            return Err(Failure::usage(format!(
                "--out and --report both name {}: give two files",
                out.path().display()
            )));
        }
        let named = args.out.as_ref().map(|path| path.display().to_string());
        let source = named.unwrap_or_else(|| "this run".to_owned());
        Ok(Self { source, out, report, table: prepare(&args.table)? })
    }

    /// Writes them; `text` is what is shown.
    pub(super) fn write(self, text: &str, machine: Machine, rows: Vec<Row>) -> Result<(), Failure> {
        let Self { source, out, report, table } = self;
        if let Some(out) = out {
            out.finish(&row::to_json_lines(&machine, &rows)?)?;
        }
        if let Some(table) = table {
            table.finish(text)?;
        }
        if let Some(report) = report {
            report.finish(&Format::Html.render(&[Run { source, machine, rows }]))?;
        }
        Ok(())
    }
}
