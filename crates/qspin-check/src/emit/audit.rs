//! What a file of LLVM IR does that a model checker sees.

/// What is in the IR.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Audit {
    /// Whether there is an entry point.
    pub has_main: bool,
    /// Every atomic access, as `operation ordering`, in the order of the text.
    pub atomics: Vec<String>,
    /// Calls of functions that are neither in the IR nor known to the checker.
    pub strangers: Vec<String>,
}

/// What the checker provides, beside LLVM's own intrinsics.
const PROVIDED: &[&str] = &[
    "__VERIFIER_thread_create",
    "__VERIFIER_thread_join",
    "__VERIFIER_assert_fail",
    "__VERIFIER_loop_begin",
    "__VERIFIER_spin_start",
    "__VERIFIER_spin_end",
];

const ORDERINGS: &[&str] = &["monotonic", "acquire", "release", "acq_rel", "seq_cst"];

/// Reads IR.
#[must_use]
pub fn audit(ir: &str) -> Audit {
    let defined: Vec<&str> =
        ir.lines().filter(|line| line.starts_with("define ")).filter_map(symbol).collect();
    let known = |name: &str| {
        defined.contains(&name) || PROVIDED.contains(&name) || name.starts_with("llvm.")
    };
    let mut audit = Audit { has_main: defined.contains(&"main"), ..Audit::default() };
    for line in ir.lines().map(str::trim) {
        if let Some(atomic) = atomic(line) {
            audit.atomics.push(atomic);
        }
        let starts = line.starts_with("call ") || line.starts_with("invoke ");
        let is_call = starts || line.contains(" call ") || line.contains(" invoke ");
        if is_call && !line.starts_with(';') {
            match symbol(line) {
                Some(name) if known(name) => {}
                Some(name) => audit.strangers.push(name.to_owned()),
                None => audit.strangers.push(format!("a pointer, in `{line}`")),
            }
        }
    }
    audit.strangers.sort();
    audit.strangers.dedup();
    audit
}

/// The function that a `call` calls, or a `define` defines: the first global before a
/// parenthesis.
fn symbol(line: &str) -> Option<&str> {
    let start = line.find('@')? + 1;
    let rest = &line[start..];
    match rest.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next(),
        None => rest.split('(').next(),
    }
}

fn atomic(line: &str) -> Option<String> {
    let operation = match line.split_once(" = ") {
        Some((_, right)) => right,
        None => line,
    };
    let mut words = operation.split([' ', ',']).filter(|word| !word.is_empty());
    let first = words.next()?;
    let name = match first {
        "load" | "store" if words.next() == Some("atomic") => first.to_owned(),
        "atomicrmw" => format!("atomicrmw {}", words.next()?),
        "cmpxchg" | "fence" => first.to_owned(),
        _ => return None,
    };
    let ordering = operation
        .split([' ', ','])
        .find(|word| ORDERINGS.contains(word))
        .unwrap_or("without an ordering");
    Some(format!("{name} {ordering}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn atomics_and_strangers_are_found() {
        let ir = "\
define i32 @main() {
  %0 = cmpxchg ptr %w, i32 0, i32 1 acq_rel monotonic, align 4
  %1 = load atomic i32, ptr %w acquire, align 4
  store atomic i32 %1, ptr %w release, align 4
  %2 = atomicrmw add ptr @x, i32 1 monotonic, align 4
  fence seq_cst
  %3 = load i32, ptr %w, align 4
  tail call void @\"_ZN4lock$u20$x\"(ptr %w)
  %4 = call i32 @__VERIFIER_thread_join(i64 0, ptr null)
  call void @llvm.assume(i1 true)
  tail call void @abort()
}
define internal void @\"_ZN4lock$u20$x\"(ptr %w) {
}
";
        let audit = audit(ir);
        let atomics = [
            "cmpxchg acq_rel",
            "load acquire",
            "store release",
            "atomicrmw add monotonic",
            "fence seq_cst",
        ];
        assert_eq!(audit.atomics, atomics);
        assert_eq!(audit.strangers, ["abort"]);
        assert!(audit.has_main);
    }
}
