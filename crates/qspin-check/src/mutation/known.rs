//! Where each mutant died last time: there it is looked for first. A place at which it does not die any more costs a search
//! and nothing else, so the list, which `mutate --known FILE` writes, may be out of date.

use std::fmt::Write;

use super::{Mutant, Place};
use crate::weakening::Weakening;

const KNOWN: &str = include_str!("known.txt");

/// Where this one died.
#[must_use]
pub fn place(weakening: Weakening) -> Option<Place> {
    let Weakening { site, to } = weakening;
    KNOWN.lines().find_map(|line| {
        let mut words = line.split(' ');
        let is_it = words.next()? == site.name() && words.next()? == format!("{to:?}");
        let (lock, scenario) = (words.next()?.to_owned(), words.next()?.to_owned());
        let preemptions = words.next()?.parse().ok();
        is_it.then_some(Place { lock, scenario, preemptions })
    })
}

/// The list of these, as it is kept.
#[must_use]
pub fn list(mutants: &[Mutant]) -> String {
    let mut list = String::new();
    for mutant in mutants {
        if let Some((_, Place { lock, scenario, preemptions })) = &mutant.killed {
            let Weakening { site, to } = mutant.weakening;
            let most = preemptions.map_or("all".to_owned(), |most| most.to_string());
            let _ = writeln!(list, "{} {to:?} {lock} {scenario} {most}", site.name());
        }
    }
    list
}
