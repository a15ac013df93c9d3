//! Folded stacks, and the flame graphs that are drawn from them.

use std::collections::BTreeMap;

use maud::{DOCTYPE, PreEscaped, html};

use super::Sample;

/// A frame as a folded stack has it: `;` ends one, and the last blank begins the number.
fn frame(text: &str) -> String {
    text.replace(';', ":").replace('\n', " ")
}

/// A line a stack: its frames from the outermost on, and nanoseconds. `waits` is the waiters' view, `keeps waiting` the
/// owners'.
fn lines(samples: &[Sample], of: impl Fn(&Sample) -> u64, root: &str) -> Vec<String> {
    let mut sums = BTreeMap::<String, u64>::new();
    for sample in samples {
        let amount = of(sample);
        if amount == 0 {
            continue;
        }
        let calls = sample.calls.iter().rev().flat_map(|(_, frames)| frames.iter().rev());
        let names = calls.filter(|call| !call.only_hands_on()).map(|call| frame(&call.function));
        let all: Vec<_> = core::iter::once(root.to_owned())
            .chain(names)
            .chain([format!("lock {}", frame(&sample.lock))])
            .collect();
        *sums.entry(all.join(";")).or_default() += amount;
    }
    sums.into_iter().map(|(stack, sum)| format!("{stack} {sum}")).collect()
}

fn waits(samples: &[Sample]) -> Vec<String> {
    lines(samples, |sample| sample.waited_ns, "waits")
}

fn keeps(samples: &[Sample]) -> Vec<String> {
    lines(samples, |sample| sample.delayed_ns, "keeps waiting")
}

pub(super) fn text(samples: &[Sample]) -> String {
    [waits(samples), keeps(samples)].concat().into_iter().map(|line| line + "\n").collect()
}

fn graph(title: &str, lines: &[String]) -> anyhow::Result<String> {
    if lines.is_empty() {
        return Ok(String::new());
    }
    let mut options = inferno::flamegraph::Options::default();
    title.clone_into(&mut options.title);
    "ns".clone_into(&mut options.count_name);
    let mut svg = Vec::new();
    inferno::flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), &mut svg)?;
    let svg = String::from_utf8(svg)?;
    // What stands before it is for a file of its own.
    let start = svg.find("<svg").unwrap_or(0);
    Ok(svg[start..].to_owned())
}

/// A page with the table and both flame graphs.
pub(super) fn page(table: &str, samples: &[Sample]) -> anyhow::Result<String> {
    let graphs = [
        graph("Where threads wait", &waits(samples))?,
        graph("Whose releases they wait for", &keeps(samples))?,
    ];
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head { meta charset="utf-8"; title { "Locks" } }
            body {
                h1 { "Locks" }
                pre { (table) }
                @for svg in graphs.iter().filter(|svg| !svg.is_empty()) {
                    // Each in a document of its own: both bring scripts and names that are the same.
                    iframe srcdoc=(svg) width="100%" height="500" style="border:0" {}
                }
                @if graphs.iter().all(String::is_empty) { p { "No thread waited." } }
                (PreEscaped(""))
            }
        }
    };
    Ok(page.into_string())
}

#[cfg(test)]
mod tests {
    use super::super::super::symbols::Frame;
    use super::*;

    pub(super) fn sample() -> Sample {
        let frame = |function: &str| Frame {
            function: function.into(),
            object: "program".into(),
            line: Some(("a.c".into(), 7)),
        };
        Sample {
            process: 1,
            lock: "hot".into(),
            calls: vec![
                (30, vec![frame("std::mutex::lock"), frame("inner;x")]),
                (10, vec![frame("main")]),
            ],
            waits: 3,
            waited_ns: 900,
            releases: 0,
            delayed_ns: 0,
        }
    }

    #[test]
    fn a_stack_is_a_line_from_the_outermost_frame_on_and_wrappers_are_not_shown() {
        let owner = Sample { waited_ns: 0, delayed_ns: 5, ..sample() };
        assert_eq!(
            text(&[sample(), sample(), owner]),
            "waits;main;inner:x;lock hot 1800\nkeeps waiting;main;inner:x;lock hot 5\n"
        );
        assert_eq!(text(&[]), "");
    }

    #[test]
    fn both_views_are_drawn() {
        let owner = Sample { waited_ns: 0, delayed_ns: 5, ..sample() };
        let both = page("a table", &[sample(), owner]).unwrap();
        assert_eq!(both.matches("<iframe").count(), 2, "{both}");
        assert!(both.contains("a table"));
        assert!(page("", &[]).unwrap().contains("No thread waited"));
    }
}
