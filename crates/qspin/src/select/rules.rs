//! The rules, as data: the first one that applies decides.
//!
//! # Source
//! What Linux does at boot for a guest's spinlocks (`arch/x86/kernel/kvm.c`, `kvm_spinlock_init`, and CNA's
//! boot-time choice, CNA v15 (document 002)), for a program. From document 003's discussion: virtual CPUs that
//! are never taken away want the native lock; with `-overcommit cpu-pm=on` the hypervisor offers no
//! `PV_UNHALT`, and a kernel that checks that first falls back to test-and-set, although its CPUs are
//! dedicated. So "dedicated" stands before "hypervisor" here. But it does not stand before overcommit by the
//! program itself, nor before a quota: those stop threads whatever the hypervisor promises. The same holds on
//! one CPU, whatever the number of threads: unless it was said that there is only one thread, a waiter must
//! expect to wait for a thread that is not running.

use super::choice::Choice;
use super::inputs::{Dedicated, Inputs, Threads};

/// A rule.
pub struct Rule {
    /// Its name.
    pub name: &'static str,
    /// Whether it applies.
    pub when: fn(&Inputs) -> bool,
    /// What it chooses on one NUMA node, and on several.
    pub chooses: [Choice; 2],
    /// Why.
    pub reason: &'static str,
}

const HALTING: [Choice; 2] = [Choice::Paravirt, Choice::CnaParavirt];
const SPINNING: [Choice; 2] = [Choice::Native, Choice::Cna];
const UNFAIR: [Choice; 2] = [Choice::Backoff, Choice::Backoff];

/// The rules in their order. The last one always applies.
pub const RULES: &[Rule] = &[
    Rule {
        name: "overcommit-without-halt",
        when: |i| {
            !i.can_halt && (i.has_more_threads_than_cpus() || i.has_one_cpu() || i.is_limited())
        },
        chooses: UNFAIR,
        reason: "threads are stopped and waiters can neither halt nor be kicked: no queue may form, or \
                 all would wait for one that does not run",
    },
    Rule {
        name: "more-threads-than-cpus",
        when: Inputs::has_more_threads_than_cpus,
        chooses: HALTING,
        reason: "there are more threads than CPUs: who waits halts, so that who can work has a CPU",
    },
    Rule {
        name: "one-cpu",
        when: Inputs::has_one_cpu,
        chooses: HALTING,
        reason: "there is one CPU, and a lock is for two threads at least: who spins keeps the lock's \
                 holder from running",
    },
    Rule {
        name: "quota",
        when: Inputs::is_limited,
        chooses: HALTING,
        reason: "a control group allows less time than the CPUs have: spinning uses it up, and the \
                 lock's holder is stopped with all others when it is gone",
    },
    Rule {
        name: "dedicated",
        when: Inputs::is_dedicated,
        chooses: SPINNING,
        reason: "the CPUs are this program's alone: a waiter that spins is the fastest, under a \
                 hypervisor and without PV_UNHALT, too",
    },
    Rule {
        name: "hypervisor",
        when: |i| i.can_halt && i.hypervisor.is_some(),
        chooses: HALTING,
        reason: "this is a virtual machine: the hypervisor may take a CPU away from the lock's holder, \
                 and who waits then halts",
    },
    Rule {
        name: "hypervisor-without-halt",
        when: |i| i.hypervisor.is_some(),
        chooses: UNFAIR,
        reason: "the hypervisor may take CPUs away, and waiters can neither halt nor be kicked: no \
                 queue may form, or all would wait for one that does not run",
    },
    Rule {
        name: "native",
        when: |_| true,
        chooses: SPINNING,
        reason: "every thread has a CPU that is never taken away: a waiter that spins is the fastest",
    },
];

/// What was chosen, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The lock that the rules choose.
    pub choice: Choice,
    /// The rule's name; `said` if the lock was named.
    pub rule: &'static str,
    /// Why, in plain words.
    pub reason: String,
}

impl Inputs {
    /// The choice for these inputs.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let (choice, rule, reason) = match self.hints.lock {
            Some(choice) => (choice, "said", "it was asked for by name".to_owned()),
            None => self.ruled(),
        };
        Verdict { choice, rule, reason }
    }

    fn ruled(&self) -> (Choice, &'static str, String) {
        let rule = RULES.iter().find(|rule| (rule.when)(self)).unwrap_or(&RULES[RULES.len() - 1]);
        let several = self.nodes > 1;
        let choice = rule.chooses[usize::from(several)];
        let mut reason = rule.reason.to_owned();
        if several && choice != rule.chooses[0] {
            reason = format!(
                "{reason}; they are on {} NUMA nodes, so waiters near the holder come first",
                self.nodes
            );
        }
        (choice, rule.name, reason)
    }

    /// What would change the verdict: each input that, changed alone, would lead to another choice, and that
    /// choice.
    #[must_use]
    pub fn changes(&self) -> Vec<(String, Choice)> {
        let chosen = self.verdict().choice;
        if self.hints.lock.is_some() {
            let mut free = self.clone();
            free.hints.lock = None;
            return vec![("the lock not asked for by name".to_owned(), free.verdict().choice)];
        }
        let mut changes = Vec::new();
        let mut consider = |what: String, change: &dyn Fn(&mut Inputs)| {
            let mut other = self.clone();
            change(&mut other);
            let choice = other.verdict().choice;
            if choice != chosen {
                changes.push((what, choice));
            }
        };
        let cpus = self.cpus.len();
        let many = cpus as u32 + 1;
        let threads = if cpus == 1 { "more than 1 thread" } else { "more threads than CPUs" };
        consider(format!("{threads} (--threads {many})"), &|i| i.threads = Threads::Said(many));
        let few = if cpus == 1 { "1 thread" } else { &format!("{cpus} threads") };
        consider(format!("at most {few} (--threads {cpus})"), &|i| {
            i.threads = Threads::Said(cpus as u32);
        });
        consider("CPUs that are this program's alone (--dedicated)".to_owned(), &|i| {
            i.dedicated = Dedicated::Said(true);
        });
        if self.is_dedicated() {
            consider("CPUs that others use, too (QSPIN_DEDICATED=0)".to_owned(), &|i| {
                i.dedicated = Dedicated::Said(false);
            });
        }
        match &self.quota {
            Some(_) => consider("no CPU quota".to_owned(), &|i| i.quota = None),
            None => consider(format!("a CPU quota below {cpus}"), &|i| {
                let file = std::path::PathBuf::new();
                i.quota = Some(crate::platform::quota::Quota { cpus: cpus as f64 / 2.0, file });
            }),
        }
        match &self.hypervisor {
            Some(_) => consider("no hypervisor".to_owned(), &|i| i.hypervisor = None),
            None => consider("a hypervisor".to_owned(), &|i| {
                i.hypervisor = super::inputs::hypervisor(
                    std::path::Path::new("/nonexistent"),
                    &super::cpuid::Recorded::default(),
                    Some(0.5),
                );
            }),
        }
        if self.nodes > 1 {
            consider("all CPUs on one NUMA node".to_owned(), &|i| i.nodes = 1);
        } else {
            consider("CPUs on several NUMA nodes".to_owned(), &|i| i.nodes = 2);
        }
        if self.can_halt {
            consider("no way to halt and kick (--no-halt)".to_owned(), &|i| i.can_halt = false);
        } else {
            consider("a way to halt and kick".to_owned(), &|i| i.can_halt = true);
        }
        changes
    }
}
