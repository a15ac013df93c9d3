//! The files themselves.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use crate::command::{have, output};
use crate::prefix;

/// The functions that the header declares.
fn declared() -> BTreeSet<String> {
    let header = fs::read_to_string(prefix().join("include/qspin.h")).unwrap();
    let starts = |line: &str| line.starts_with(|first: char| first.is_ascii_lowercase());
    let name = |line: &str| Some(line.split_once('(')?.0.rsplit([' ', '*']).next()?.to_owned());
    let functions = header.lines().filter(|line| starts(line)).filter_map(name);
    functions.filter(|name| name.starts_with("qspin_")).collect()
}

#[test]
fn the_shared_library_exports_what_the_header_declares_and_nothing_else() {
    if !have("nm", "the look at what is exported") {
        return;
    }
    let library = prefix().join("lib/libqspin.so");
    let symbols = output(Command::new("nm").args(["-D", "--defined-only"]).arg(library));
    let mut exported = BTreeSet::new();
    for line in symbols.lines() {
        let symbol = line.split_whitespace().last().unwrap();
        if symbol == "QSPIN_0.1" {
            // The version itself.
            continue;
        }
        let function = symbol.strip_suffix("@@QSPIN_0.1");
        exported.insert(function.unwrap_or_else(|| panic!("it has no version: {line}")).to_owned());
    }
    assert_eq!(exported, declared());
}

#[test]
fn the_static_library_has_what_the_header_declares() {
    if !have("nm", "the look at what is exported") {
        return;
    }
    let library = prefix().join("lib/libqspin.a");
    let symbols = output(Command::new("nm").args(["-g", "--defined-only"]).arg(library));
    let words = symbols.lines().filter_map(|line| line.split_whitespace().nth(2));
    let ours: BTreeSet<String> =
        words.filter(|name| name.starts_with("qspin")).map(str::to_owned).collect();
    assert_eq!(ours, declared());
}

#[test]
fn the_shared_library_has_its_name_and_finds_what_it_needs() {
    if !have("readelf", "the look at the soname") {
        return;
    }
    let library = prefix().join("lib/libqspin.so");
    let dynamic = output(Command::new("readelf").arg("-d").arg(&library));
    assert!(dynamic.contains("Library soname: [libqspin.so.0]"), "{dynamic}");
    assert!(dynamic.contains("NODELETE"), "it has handlers at exit: {dynamic}");
    assert!(dynamic.contains("BIND_NOW") && !dynamic.contains("TEXTREL"), "{dynamic}");
    for line in dynamic.lines().filter(|line| line.contains("(NEEDED)")) {
        let expected = ["[libc.so.6]", "[libgcc_s.so.1]", "[ld-linux-x86-64.so.2]"];
        assert!(expected.iter().any(|library| line.contains(library)), "{line}");
    }
    for name in ["libqspin.so.0", "libqspin.so"] {
        let link = prefix().join("lib").join(name);
        assert_eq!(fs::canonicalize(link).unwrap(), fs::canonicalize(&library).unwrap());
    }
}

#[test]
fn manual_pages_are_well_formed_and_found_under_every_function() {
    let manual = prefix().join("share/man/man3");
    for function in declared() {
        assert!(manual.join(format!("{function}.3")).is_file(), "{function} has no page");
    }
    let own = fs::read_dir(&manual).unwrap().map(|entry| entry.unwrap().path());
    let pages: Vec<_> = own.filter(|page| !page.is_symlink()).collect();
    assert!(pages.len() >= 7, "{pages:?}");
    let have_mandoc = have("mandoc", "the lint of manual pages by mandoc");
    let have_man = have("man", "the lint of manual pages by man");
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        assert!(text.contains("\n.Sh NAME\n") && text.contains("\n.Sh SYNOPSIS\n"), "{page:?}");
        if have_mandoc {
            output(Command::new("mandoc").args(["-Tlint", "-Wwarning"]).arg(&page));
        }
        if have_man {
            let mut man = Command::new("man");
            man.args(["--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z"]).arg(&page);
            let ran = man.env("MANROFFSEQ", "").output().unwrap();
            let said = String::from_utf8_lossy(&ran.stderr);
            assert!(ran.status.success() && said.is_empty(), "{page:?}: {said}");
        }
    }
}

#[test]
fn documented_signatures_are_those_of_the_header() {
    let header = fs::read_to_string(prefix().join("include/qspin.h")).unwrap();
    let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let header = squeezed(&header).replace("struct ", "");
    let mut signatures = 0;
    for entry in fs::read_dir(prefix().join("share/man/man3")).unwrap() {
        let page = entry.unwrap().path();
        if page.is_symlink() {
            continue;
        }
        let text = fs::read_to_string(&page).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        for pair in lines.windows(2) {
            let (Some(returns), Some(function)) =
                (pair[0].strip_prefix(".Ft "), pair[1].strip_prefix(".Fn "))
            else {
                continue;
            };
            let mut parts = function.split('"').map(str::trim).filter(|part| !part.is_empty());
            let name = parts.next().unwrap();
            // They stand for every lock.
            let one = |text: &str| text.replace("RWLOCK", "queued_rw").replace("LOCK", "native");
            let name = one(name);
            let arguments: Vec<String> = parts.map(one).collect();
            let space = if returns.ends_with('*') { "" } else { " " };
            let declared =
                format!("{returns}{space}{name}({}) QSPIN_NOEXCEPT;", arguments.join(", "));
            assert!(header.contains(&declared), "{page:?} says: {declared}");
            signatures += 1;
        }
    }
    assert!(signatures > 35, "{signatures} signatures");
}

#[test]
fn the_command_finds_the_library_that_it_preloads_wherever_the_tree_is_moved() {
    let library = "lib/qspin/libqspin_preload.so";
    // The dynamic linker preloads nothing from a path with a blank, which the command says.
    let ran =
        Command::new(prefix().join("bin/qspin")).args(["run", "--", "true"]).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(2), "{said}");
    assert!(said.contains(library) && said.contains("no blank"), "{said}");

    let moved = tempfile::tempdir().unwrap();
    for file in ["bin/qspin", library] {
        let to = moved.path().join(file);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        // By a process of its own: a file that this one has open for writing is busy in the children that other tests
        // fork meanwhile, until these execute their own programs.
        output(Command::new("cp").arg(prefix().join(file)).arg(to));
    }
    let mut command = Command::new(moved.path().join("bin/qspin"));
    let said =
        output(command.args(["run", "--", "sh", "-c", "grep -o 'qspin/lib.*so' /proc/self/maps"]));
    assert!(said.starts_with("qspin/libqspin_preload.so\n"), "{said}");
}

#[test]
fn the_command_has_manual_pages_and_completions() {
    let share = prefix().join("share");
    let help = output(Command::new(prefix().join("bin/qspin")).arg("--help"));
    let commands = help.split("Commands:").nth(1).unwrap().split("\n\n").next().unwrap();
    let commands: Vec<&str> =
        commands.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(commands.contains(&"bench") && !commands.contains(&"manual"), "{commands:?}");
    let mut pages: Vec<String> = fs::read_dir(share.join("man/man1"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    pages.sort();
    let mut expected: Vec<String> = commands.iter().map(|name| format!("qspin-{name}.1")).collect();
    expected.extend(["qspin.1", "qspin-report-merge.1"].map(str::to_owned));
    expected.sort();
    assert_eq!(pages, expected);
    for page in &pages {
        let text = fs::read_to_string(share.join("man/man1").join(page)).unwrap();
        assert!(text.contains(".TH qspin") && text.contains(".SH OPTIONS"), "{page}: {text}");
    }
    if have("groff", "the look at how manual pages are set") {
        let mut groff = Command::new("groff");
        let page = share.join("man/man1/qspin-bench.1");
        let set = output(groff.args(["-man", "-Tutf8", "-P-cbou"]).arg(page));
        assert!(set.contains("--baseline") && set.contains("--locks"), "{set}");
    }
    for file in ["zsh/site-functions/_qspin", "fish/vendor_completions.d/qspin.fish"] {
        assert!(fs::read_to_string(share.join(file)).unwrap().contains("overcommit"), "{file}");
    }
    if have("bash", "completion by bash") {
        let script = "source \"$0\"; COMP_WORDS=(qspin ben); COMP_CWORD=1; COMPREPLY=(); \
                      _qspin qspin ben qspin; echo \"${COMPREPLY[*]}\"";
        let file = share.join("bash-completion/completions/qspin");
        assert_eq!(output(Command::new("bash").args(["-c", script]).arg(file)), "bench\n");
    }
}
