//! `qspin-check genmc`

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::arguments::Arguments;
use super::report::put_section;
use crate::emit::{Client, SECTIONS, THREADS, subjects};
use crate::genmc::{
    End, Explored, Limits, Memory, Scratch, Tools, Weakened, explore_weakened, weakenings,
};
use crate::mutation::{Expectation, expectation};
use crate::weakening::Weakening;
use crate::workers;

/// For one exploration.
const SECONDS: u64 = 60;
/// Address space of one.
const GIB: u64 = 8;
/// What a plain call explores: threads and sections of each.
const SIZES: &str = "2x1,3x1";

pub(super) fn run(mut arguments: Arguments) -> Result<bool, String> {
    let lock = arguments.take("lock").unwrap_or_else(|| "all".to_owned());
    let sizes = arguments.take("sizes");
    let orderings = arguments.take("orderings");
    let seconds = arguments.number("seconds", SECONDS)?;
    let limits = Limits { time: Duration::from_secs(seconds), gib: arguments.number("gib", GIB)? };
    let page = arguments.take("markdown").map(PathBuf::from);
    arguments.nothing_else()?;
    let wanted: Vec<_> = subjects()
        .map(|subject| subject.name)
        .filter(|&name| lock == "all" || name == lock)
        .collect();
    if wanted.is_empty() {
        let names: Vec<_> = subjects().map(|subject| subject.name).collect();
        return Err(format!("no client for lock `{lock}`; there are {}", names.join(", ")));
    }
    if orderings.is_some() && (sizes.is_some() || lock != "all") {
        return Err(
            "--orderings chooses locks and sizes itself; leave --lock and --sizes out".to_owned()
        );
    }
    let sizes = sizes_of(sizes.as_deref().unwrap_or(SIZES))?;
    let some = match orderings.as_deref() {
        None => None,
        Some(which) => Some(orderings_of(which)?),
    };
    let tools = match Tools::find() {
        Ok(tools) => tools,
        Err(missing) => {
            println!("skipped: {missing}");
            return Ok(true);
        }
    };
    let begun = Instant::now();
    let scratch = Scratch::new()?;
    let good = match some {
        Some(weakenings) => weaken(&tools, &weakenings, limits, &scratch, page)?,
        None => explore(&tools, &wanted, &sizes, limits, &scratch, page)?,
    };
    println!(
        "qspin-check genmc: {} ({:.1} s)",
        if good { "all passed" } else { "FAILED" },
        begun.elapsed().as_secs_f64()
    );
    Ok(good)
}

type Size = (usize, usize);

/// `2x1,3x1`: threads and sections of each.
fn sizes_of(text: &str) -> Result<Vec<Size>, String> {
    let size = |one: &str| {
        let (threads, sections) = one.split_once('x')?;
        let size = (threads.trim().parse().ok()?, sections.trim().parse().ok()?);
        (THREADS.contains(&size.0) && SECTIONS.contains(&size.1)).then_some(size)
    };
    text.split(',').map(|one| size(one).ok_or_else(|| bad_size(one))).collect()
}

fn bad_size(one: &str) -> String {
    format!(
        "--sizes `{one}`: as in 3x1, {} to {} threads with {} to {} sections each",
        THREADS.start(),
        THREADS.end(),
        SECTIONS.start(),
        SECTIONS.end()
    )
}

/// `all`, or the weakenings of a site.
fn orderings_of(which: &str) -> Result<Vec<Weakening>, String> {
    let some: Vec<_> =
        weakenings().into_iter().filter(|one| which == "all" || one.site.name() == which).collect();
    if some.is_empty() {
        return Err(format!("--orderings `{which}`: all, or a site as in queue.release"));
    }
    Ok(some)
}

/// Explores these locks; returns whether no execution is wrong.
fn explore(
    tools: &Tools,
    locks: &[&'static str],
    sizes: &[Size],
    limits: Limits,
    scratch: &Scratch,
    page: Option<PathBuf>,
) -> Result<bool, String> {
    let rows = workers::each(locks.len(), |number| {
        let lock = locks[number];
        let mut row = Vec::new();
        for &(threads, sections) in sizes {
            let client = Client { lock: lock.to_owned(), threads, sections, weak: None };
            let file =
                tools.prepare(&client, &format!("{lock}-{threads}x{sections}"), scratch.path())?;
            for memory in Memory::ALL {
                let explored = tools.explore(&file, memory, limits)?;
                let Explored { end, executions, took } = &explored;
                let mark = if matches!(end, End::Wrong(_)) { "FAILED: " } else { "" };
                println!(
                    "genmc    {lock:40} {threads} threads x {sections}  {:5} {executions:>9} executions  {:6.1} s  {mark}{end}",
                    memory.name(),
                    took.as_secs_f64(),
                );
                row.push(explored);
            }
        }
        Ok(row)
    });
    let rows = rows.into_iter().collect::<Result<Vec<_>, String>>()?;
    if let Some(page) = page {
        put_section(&page, "Executions", &table_of_locks(locks, sizes, &rows, limits))?;
    }
    Ok(rows.iter().flatten().all(|explored| !matches!(explored.end, End::Wrong(_))))
}

fn table_of_locks(
    locks: &[&str],
    sizes: &[Size],
    rows: &[Vec<Explored>],
    limits: Limits,
) -> String {
    let mut text = format!(
        "Complete executions of all that RC11 and IMM allow, each of them correct, by threads x sections of each. Written \
         by `qspin-check genmc --markdown`; a limit of {} s and {} GiB.\n\n| lock |",
        limits.time.as_secs(),
        limits.gib
    );
    let each = || sizes.iter().flat_map(|size| Memory::ALL.map(|memory| (size, memory)));
    for ((threads, sections), memory) in each() {
        text.push_str(&format!(" {threads}x{sections} {} |", memory.name().to_uppercase()));
    }
    text.push_str(&format!("\n|---|{}\n", "---|".repeat(each().count())));
    for (lock, row) in locks.iter().zip(rows) {
        text.push_str(&format!("| {lock} |"));
        for explored in row {
            match &explored.end {
                End::Passed => text.push_str(&format!(" {} |", explored.executions)),
                End::Wrong(words) => text.push_str(&format!(" **{words}** |")),
                End::Unfinished(why) => text.push_str(&format!(" {why} |")),
            }
        }
        text.push('\n');
    }
    text
}

/// Weakens these, each alone. What lives here and not under loom is no failure: loom sees more of a lock's words.
fn weaken(
    tools: &Tools,
    weakenings: &[Weakening],
    limits: Limits,
    scratch: &Scratch,
    page: Option<PathBuf>,
) -> Result<bool, String> {
    let all = workers::each(weakenings.len(), |number| {
        let result = explore_weakened(tools, weakenings[number], limits, scratch.path())?;
        let weakening = result.weakening.to_string();
        println!(
            "genmc    {weakening:30} {:>9} executions  {}",
            result.executions,
            verdict(&result)
        );
        Ok(result)
    });
    let all = all.into_iter().collect::<Result<Vec<_>, String>>()?;
    if let Some(page) = page {
        put_section(&page, "Orderings", &table_of_orderings(&all, limits))?;
    }
    let unsaid =
        all.iter().filter(|one| one.killed.is_some() && lives_under_loom(one.weakening).is_some());
    let mut good = true;
    for one in unsaid {
        println!("genmc    FAILED: {} dies here, and is excepted under loom", one.weakening);
        good = false;
    }
    Ok(good)
}

fn lives_under_loom(weakening: Weakening) -> Option<&'static str> {
    match expectation(weakening) {
        Some(Expectation::Survives(reason)) => Some(reason),
        _ => None,
    }
}

fn verdict(one: &Weakened) -> String {
    match (&one.killed, one.unfinished) {
        (Some((client, memory, Explored { end, .. })), _) => {
            let Client { lock, threads, sections, .. } = client;
            format!("{end} ({lock} {threads}x{sections}, {})", memory.name())
        }
        (None, 0) => "lives".to_owned(),
        (None, unfinished) => format!("lives; {unfinished} explorations were not finished"),
    }
}

fn table_of_orderings(all: &[Weakened], limits: Limits) -> String {
    let killed = all.iter().filter(|one| one.killed.is_some()).count();
    let mut text = format!(
        "{killed} of {} weakened orderings are killed under GenMC. Written by `qspin-check genmc --orderings all \
         --markdown`; a limit of {} s and {} GiB for each exploration of 2x1, 2x2 and 3x1 threads x sections.\n\n\
         | ordering | weakened to | under loom | under GenMC | lock | threads x sections | memory |\n\
         |---|---|---|---|---|---|---|\n",
        all.len(),
        limits.time.as_secs(),
        limits.gib
    );
    for one in all {
        let Weakening { site, to } = one.weakening;
        let loom = match expectation(one.weakening) {
            Some(Expectation::Dies(kind)) => kind.name(),
            _ => "lives",
        };
        let genmc = match &one.killed {
            Some((
                Client { lock, threads, sections, .. },
                memory,
                Explored { end: End::Wrong(words), .. },
            )) => {
                format!(
                    "{words} | {lock} | {threads}x{sections} | {}",
                    memory.name().to_uppercase()
                )
            }
            _ if one.unfinished > 0 => format!("lives; {} not finished | | |", one.unfinished),
            _ => "lives | | |".to_owned(),
        };
        text.push_str(&format!("| {} | {to:?} | {loom} | {genmc} |\n", site.name()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_threads_and_sections() {
        assert_eq!(sizes_of("2x1, 4x2"), Ok(vec![(2, 1), (4, 2)]));
        for bad in ["", "2", "2x", "1x1", "5x1", "2x0", "2x9", "2x1,"] {
            assert!(sizes_of(bad).unwrap_err().contains("as in 3x1"), "{bad}");
        }
    }
}
