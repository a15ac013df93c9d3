//! `qspin report`: shows what was measured.

mod merge;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::failure::Failure;
use crate::output::Output;
use crate::report::overcommit::{self, Pair};
use crate::report::{Format, Run, read};

/// Make a report from the rows of one or more runs.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Args {
    #[command(subcommand)]
    instead: Option<Instead>,
    /// Files that `qspin bench --out` wrote; `-` reads the standard input.
    #[arg(required = true, value_name = "RUN.jsonl")]
    runs: Vec<PathBuf>,
    /// Format of the report [default: from the ending of --out, else html].
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// File to write; `-` is the standard output [default: for html the first run's name with
    /// the ending .html, for the other formats the standard output].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The locks of the table `W/o`, `W/`, difference that rows of `bench --overcommit` make
    /// [default: native,paravirt, where the runs have both].
    #[arg(long, value_name = "W/O,W/", allow_hyphen_values = true, value_parser = Pair::parse)]
    overcommit_table: Option<Pair>,
}

/// What `qspin report` can do with rows beside reporting on them.
#[derive(Debug, clap::Subcommand)]
enum Instead {
    /// Put the parts of a sweep together, as `qspin simulate --shard` or `qspin reproduce --shard` made them.
    Merge(merge::Args),
}

/// Reads, renders and writes; nothing is written where something is wrong.
///
/// # Errors
///
/// A run that can not be read or understood, or an output that can not be written.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    if let Some(Instead::Merge(args)) = &args.instead {
        return merge::run(args);
    }
    let format = format(args)?;
    let out = target(args, format);
    if let Some(out) = &out {
        refuse_input(args, out)?;
    }
    let pair = pair(args, format)?;
    let runs = read(&args.runs)?;
    if args.overcommit_table.is_some() {
        require_table(&runs, &pair)?;
    }
    let file = out.map(|out| Output::prepare(&out)).transpose()?;
    let text = format.render_comparing(&runs, &pair);
    match file {
        Some(file) => {
            let path = file.path().to_owned();
            file.finish(&text)?;
            // On stderr: standard output belongs to reports.
            super::tell(&format!("wrote {}", path.display()));
        }
        None => super::say(&text)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The locks of the table; only formats with tables show it.
fn pair(args: &Args, format: Format) -> Result<Pair, Failure> {
    match (&args.overcommit_table, format) {
        (Some(_), Format::Csv | Format::Svg) => Err(Failure::usage(
            "--overcommit-table says nothing to csv and svg: leave it out, or take --format html \
             or md",
        )),
        (Some(pair), _) => Ok(pair.clone()),
        (None, _) => Ok(Pair::default()),
    }
}

/// A user that asks for a table is not to look for it in vain.
fn require_table(runs: &[Run], pair: &Pair) -> Result<(), Failure> {
    if !overcommit::tables(runs, pair).is_empty() {
        return Ok(());
    }
    let Pair { without, with } = pair;
    Err(Failure::usage(format!(
        "no run has rows of both `{without}` and `{with}` with an overcommitment; measure them by \
         `qspin bench --locks {without},{with} --pin A --overcommit 1x --out a1.jsonl`, and so on"
    )))
}

/// What `--format` says, else what the ending of `--out` says, else HTML.
fn format(args: &Args) -> Result<Format, Failure> {
    if let Some(format) = args.format {
        return Ok(format);
    }
    let Some(out) = args.out.as_deref().filter(|out| *out != Path::new("-")) else {
        return Ok(Format::Html);
    };
    match out.extension().and_then(|ending| ending.to_str()) {
        Some("html" | "htm") => Ok(Format::Html),
        Some("md") => Ok(Format::Md),
        Some("csv") => Ok(Format::Csv),
        Some("svg") => Ok(Format::Svg),
        _ => Err(Failure::usage(format!(
            "the ending of {} names no format; add --format html, md, csv or svg",
            out.display()
        ))),
    }
}

/// The file to write; `None` is the standard output.
fn target(args: &Args, format: Format) -> Option<PathBuf> {
    let stdio = Path::new("-");
    match (&args.out, format) {
        (Some(out), _) if out == stdio => None,
        (Some(out), _) => Some(out.clone()),
        (None, Format::Html) if args.runs[0] != stdio => Some(args.runs[0].with_extension("html")),
        (None, _) => None,
    }
}

/// A report never replaces the run that it is made of.
fn refuse_input(args: &Args, out: &Path) -> Result<(), Failure> {
    let same = |run: &PathBuf| {
        run == out
            || matches!(
                (run.canonicalize(), out.canonicalize()),
                (Ok(run), Ok(out)) if run == out
            )
    };
    if out.is_file() && args.runs.iter().any(same) {
        return Err(Failure::usage(format!(
            "the report would replace the run {}; name another file with --out",
            out.display()
        )));
    }
    Ok(())
}
