//! The IR of this compiler, in words that LLVM 16 and GenMC read.
//!
//! What goes says how the compiler may transform or place code, and nothing of what it does: metadata, attributes, flags
//! of instructions. Fences of one thread with itself keep the compiler from moving what an interrupt could see; a client
//! has no interrupts, and a checker might take them for fences between threads, which would hide what is to be found.
//! Intrinsics that GenMC does not know become functions.

use std::fmt::Write;

/// Lines with these are left out.
const WITHOUT: &[&str] = &[
    "syncscope(\"singlethread\")",
    "@rust_eh_personality(",
    "@llvm.lifetime.",
    "@llvm.experimental.noalias.scope.decl",
    "@llvm.assume(",
];

/// Words that are left out of a line, before another word.
const WORDS: &[&str] = &[
    "disjoint ",
    "nneg ",
    "samesign ",
    "nuw ",
    "nsw ",
    "exact ",
    "dead_on_unwind ",
    "dead_on_return ",
    "writable ",
    "noundef ",
    "noalias ",
    "nonnull ",
    "readonly ",
    "readnone ",
    "writeonly ",
    "nofree ",
    "nocapture ",
    "nonlazybind ",
    "unnamed_addr ",
    "local_unnamed_addr ",
    "personality ptr @rust_eh_personality ",
];

/// Words with something in parentheses.
const WITH_PARENTHESES: &[&str] = &[
    "captures(",
    "range(",
    "initializes(",
    "dereferenceable(",
    "dereferenceable_or_null(",
    "memory(",
];

/// Rewrites IR.
#[must_use]
pub(super) fn downgrade(ir: &str) -> String {
    let mut out = String::new();
    let mut asked = Vec::new();
    for line in ir.lines() {
        // Metadata, and what it says of an instruction.
        if line.starts_with('!') || WITHOUT.iter().any(|word| line.contains(word)) {
            continue;
        }
        let line = if line.starts_with("attributes #") {
            without_attributes(line)
        } else {
            rewritten(line)
        };
        asked.extend(arithmetic(&line));
        let line = if line.starts_with("declare ") && arithmetic(&line).is_some() {
            String::new()
        } else {
            renamed(&line)
        };
        out.push_str(&line);
        out.push('\n');
    }
    asked.sort_unstable();
    asked.dedup();
    for (name, bits) in asked {
        out.push_str(&definition(&name, bits));
    }
    out
}

/// A group of attributes, of which nothing matters: not even whether a function is to be inlined.
fn without_attributes(line: &str) -> String {
    let name = line.split(" = ").next().unwrap_or(line);
    format!("{name} = {{ alwaysinline nounwind }}")
}

fn rewritten(line: &str) -> String {
    // A string may say anything.
    if line.contains(" c\"") {
        return without_padding(line);
    }
    let mut line = without_metadata(line).to_owned();
    for word in WORDS {
        line = line.replace(&format!(" {word}"), " ").replace(&format!("({word}"), "(");
    }
    for word in WITH_PARENTHESES {
        while let Some(start) = line.find(&format!(" {word}")) {
            let Some(end) = closing(&line[start..]) else { break };
            line.replace_range(start..=start + end, "");
        }
    }
    line = without_alignment_of_pointers(&line);
    if let Some(of) = line.split(" = freeze ").nth(1) {
        // The value itself: nothing here is undefined.
        let kind = of.split(' ').next().unwrap_or_default();
        line = format!("{} to {kind}", line.replace(" = freeze ", " = bitcast "));
    }
    without_padding(&line)
}

/// Where the first parenthesis of `text` closes.
fn closing(text: &str) -> Option<usize> {
    let mut open = 0;
    text.char_indices().find_map(|(at, letter)| {
        open += i32::from(letter == '(') - i32::from(letter == ')');
        (letter == ')' && open == 0).then_some(at)
    })
}

/// `ptr align 4 %word` is a promise to the compiler; `, align 4` of an access stays.
fn without_alignment_of_pointers(line: &str) -> String {
    let mut line = line.to_owned();
    while let Some(start) = line.find("ptr align ") {
        let from = start + "ptr ".len();
        let digits = line[from + "align ".len()..].find(' ').map_or(0, |length| length + 1);
        if digits == 0 {
            break;
        }
        line.replace_range(from..from + "align ".len() + digits, "");
    }
    line
}

/// `, !range !5` and the like, which end an instruction; `!prof` before the brace of a function does not occur here.
fn without_metadata(line: &str) -> &str {
    match line.find(", !") {
        Some(at) => &line[..at],
        None => line,
    }
}

/// Padding of statics is nothing that a program reads.
fn without_padding(line: &str) -> String {
    if line.starts_with('@') {
        line.replace("] undef", "] zeroinitializer")
    } else {
        line.to_owned()
    }
}

/// What GenMC does not compute: its name and its width.
fn arithmetic(line: &str) -> Option<(String, u32)> {
    let start = line
        .find("@llvm.u")
        .or_else(|| line.find("@llvm.smax"))
        .or_else(|| line.find("@llvm.smin"))?;
    let name = line[start + 1..].split('(').next()?;
    let bits = name.rsplit(".i").next()?.parse().ok()?;
    ["llvm.umin.", "llvm.umax.", "llvm.usub.sat.", "llvm.uadd.sat."]
        .iter()
        .any(|known| name.starts_with(known))
        .then(|| (name.to_owned(), bits))
}

/// The name of the function instead.
fn renamed(line: &str) -> String {
    match arithmetic(line) {
        Some((name, _)) => line.replace(&name, &name.replace("llvm.", "client.")),
        None => line.to_owned(),
    }
}

fn definition(name: &str, bits: u32) -> String {
    let ty = format!("i{bits}");
    let (compare, met, otherwise) = match name {
        _ if name.starts_with("llvm.umin.") => ("icmp ult", "%a", "%b"),
        _ if name.starts_with("llvm.umax.") => ("icmp ugt", "%a", "%b"),
        _ if name.starts_with("llvm.usub.sat.") => ("icmp ugt", "%d", "0"),
        _ => ("icmp uge", "%s", "-1"),
    };
    let mut text = String::new();
    let own = name.replace("llvm.", "client.");
    let _ = writeln!(text, "\ndefine internal {ty} @{own}({ty} %a, {ty} %b) {{");
    let _ = writeln!(text, "  %d = sub {ty} %a, %b\n  %s = add {ty} %a, %b");
    let left = if compare == "icmp uge" { "%s" } else { "%a" };
    let right = if compare == "icmp uge" { "%a" } else { "%b" };
    let _ = writeln!(text, "  %c = {compare} {ty} {left}, {right}");
    let _ = writeln!(text, "  %r = select i1 %c, {ty} {met}, {ty} {otherwise}\n  ret {ty} %r\n}}");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promises_to_the_compiler_go_and_what_is_done_stays() {
        let ir = "\
@a = global <{ [4 x i8], [4 x i8] }> <{ [4 x i8] zeroinitializer, [4 x i8] undef }>, align 8
define internal void @f(ptr noundef nonnull align 4 captures(none) initializes((0, 8), (16, 20)) %w) unnamed_addr #0 {
  %1 = cmpxchg ptr %w, i32 0, i32 1 acquire monotonic, align 4, !noalias !3
  %2 = or disjoint i32 %0, 1
  %3 = icmp samesign ult i32 %2, 2, !range !4
  %4 = freeze i32 %2
  fence syncscope(\"singlethread\") seq_cst
  fence seq_cst
  %5 = call range(i32 0, 9) i32 @llvm.umin.i32(i32 %4, i32 8)
  call void @llvm.lifetime.start.p0(ptr %w)
}
declare i32 @llvm.umin.i32(i32, i32) #1
attributes #0 = { cold noinline memory(argmem: readwrite) }
!3 = !{}
";
        let expected = "\
@a = global <{ [4 x i8], [4 x i8] }> <{ [4 x i8] zeroinitializer, [4 x i8] zeroinitializer }>, align 8
define internal void @f(ptr %w) #0 {
  %1 = cmpxchg ptr %w, i32 0, i32 1 acquire monotonic, align 4
  %2 = or i32 %0, 1
  %3 = icmp ult i32 %2, 2
  %4 = bitcast i32 %2 to i32
  fence seq_cst
  %5 = call i32 @client.umin.i32(i32 %4, i32 8)
}

attributes #0 = { alwaysinline nounwind }

define internal i32 @client.umin.i32(i32 %a, i32 %b) {
  %d = sub i32 %a, %b
  %s = add i32 %a, %b
  %c = icmp ult i32 %a, %b
  %r = select i1 %c, i32 %a, i32 %b
  ret i32 %r
}
";
        assert_eq!(downgrade(ir), expected);
    }
}
