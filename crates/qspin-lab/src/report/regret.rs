//! Runs over random loads: what was regretted, instead of a chart a setting.

use maud::{Markup, html};
use qspin_table::escape;

use super::Run;
use super::chart::shares::{Line, Shares};
use super::family::is_own;
use crate::bench::random::regret::{Cell, Of, cells, is_drawn};
use crate::bench::random::show::{Part, apart, markdown as as_markdown, parts, ranked, twins};
use crate::bench::random::{TWIN, oracle};
use crate::row::Row;
use crate::verdict::choice::{Choice, choose};

/// Whether a run has drawn its loads.
pub(super) fn is_random(run: &Run) -> bool {
    run.rows.iter().any(is_drawn)
}

/// The rows of a run that belong into charts a setting.
pub(super) fn chosen(run: &Run) -> &[Row] {
    if is_random(run) { &[] } else { &run.rows }
}

fn of(run: &Run) -> (Vec<Cell<'_>>, &'static [&'static str]) {
    (cells(&run.rows), oracle(run.rows.iter().any(|row| row.workload == "rw")))
}

fn shown(run: &Run) -> Vec<Part> {
    let (cells, oracle) = of(run);
    let judged = twins(&cells).map(|(lock, _)| lock);
    let first = cells.first().and_then(|cell| cell.rows.first()).map(|row| row.lock.as_str());
    let named: Vec<&str> = judged.or(first).into_iter().collect();
    parts(&cells, oracle, &named)
}

/// Which lock to take, a line a sentence, where the rows tell.
fn choice(run: &Run) -> Vec<String> {
    let choice = choose(&run.machine, &run.rows).filter(Choice::tells);
    let sentences = choice.map_or_else(Vec::new, |choice| choice.sentences());
    sentences.iter().flat_map(|sentence| sentence.lines()).map(str::to_owned).collect()
}

/// The tables of a run as Markdown, and the choice before them.
pub(super) fn markdown(run: &Run) -> String {
    let choice: String = choice(run).iter().map(|line| format!("* {}\n", line.trim())).collect();
    format!("\n{choice}\n{}", as_markdown(&shown(run)))
}

/// The pictures of a run, each with its heading: quiet cells, disturbed ones.
pub(super) fn pictures(run: &Run, width: f64) -> Vec<(String, Shares)> {
    let (cells, oracle) = of(run);
    let picture = |(name, some): (String, Vec<Cell<'_>>)| {
        let line = |lock: &str| {
            let regrets = some.iter().filter_map(|cell| cell.regret(lock, Of::Throughput, oracle));
            let mut regrets: Vec<f64> = regrets.collect();
            regrets.sort_by(f64::total_cmp);
            Line { name: lock.to_owned(), own: is_own(lock.trim_end_matches(TWIN)), regrets }
        };
        let lines = ranked(&some, Of::Throughput, oracle).into_iter().map(|(lock, _)| line(lock));
        let title = format!("Regret. {name}");
        (name, Shares { title, lines: lines.collect(), width })
    };
    apart(&cells).into_iter().map(picture).collect()
}

/// A run as a part of the page.
pub(super) fn html(run: &Run, width: f64) -> Markup {
    html! {
        article.setting {
            h3 { "Regret over random loads" }
            p.sub {
                "In each cell: the throughput of the best of the locks that one could have taken, over a \
                 lock's own. 1 is as good as the best choice for that cell alone. Further up and left is better."
            }
            @for line in choice(run) { p { (qspin_table::code(&line)) } }
            @for (name, picture) in pictures(run, width) {
                figure.hero {
                    figcaption { h3 { (name) } }
                    (picture.draw())
                }
            }
            @for part in shown(run) {
                @match part {
                    Part::Heading(text) => { h3 { (text) } }
                    Part::Words(text) => { p { (qspin_table::code(&text)) } }
                    Part::Table(what, table) => {
                        p { (qspin_table::code(&what)) }
                        (table.html("", &escape(&what)))
                    }
                }
            }
        }
    }
}
