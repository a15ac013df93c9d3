//! LLVM IR of a small client, made of the very source of the locks: for GenMC, which explores
//! it under RC11 and IMM, load buffering included, where loom cannot look.

mod audit;
mod downgrade;

pub use audit::{Audit, audit};

use std::ffi::OsString;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use qspin_core::locks::Family;
use qspin_core::tuning::Adaptive;

use crate::model::Buckets;
use crate::subject::{Subject, lookup, variants};
use crate::weakening::Weakening;

/// The subjects of the catalogue that the client (`client/src/lib.rs`) can use: those without deadlines, without a past,
/// and with one bucket of sleepers.
pub fn subjects() -> impl Iterator<Item = Subject> {
    variants().into_iter().filter(is_for_genmc)
}

fn is_for_genmc(subject: &Subject) -> bool {
    let traits = subject.traits();
    let special = traits.timed || traits.latch || traits.inherited || traits.late;
    // In the checkers these differ from others in the bucket, or in the barrier, that the client has not.
    let fenced = traits.sleeps && !traits.asymmetric;
    !special && !fenced && traits.buckets == Buckets::One
}

/// How many threads the client may have.
pub const THREADS: std::ops::RangeInclusive<usize> = 2..=4;
/// How many sections each of them may have.
pub const SECTIONS: std::ops::RangeInclusive<usize> = 1..=3;

/// What is to be explored.
#[derive(Debug, Clone)]
pub struct Client {
    /// The name of the subject.
    pub lock: String,
    /// How many threads use it. The last one only reads, where readers share the lock.
    pub threads: usize,
    /// How often each of them acquires it.
    pub sections: usize,
    /// An ordering that is weaker than the source has it.
    pub weak: Option<Weakening>,
}

impl Client {
    /// Compiles the client; writes the IR to `out`, and the source that was made for it beside it.
    ///
    /// # Errors
    /// Says what is wrong with the request, with the compiler, or with what it made.
    pub fn emit(&self, out: &Path) -> Result<Audit, String> {
        let subject = lookup(&self.lock).filter(is_for_genmc).ok_or_else(|| {
            let names: Vec<_> = subjects().map(|subject| subject.name).collect();
            format!("no client for lock `{}`; there are {}", self.lock, names.join(", "))
        })?;
        within("threads", self.threads, &THREADS)?;
        within("sections", self.sections, &SECTIONS)?;
        let in_file = |error| format!("{}: {error}", out.display());
        let out = std::path::absolute(out).map_err(in_file)?;
        let source = out.with_extension("rs");
        std::fs::write(&source, self.source(&subject)).map_err(in_file)?;
        compile(&subject, &source, &out)?;
        let raw = std::fs::read_to_string(&out).map_err(in_file)?;
        let ir = downgrade::downgrade(&raw);
        std::fs::write(&out, &ir).map_err(in_file)?;
        let audit = audit(&ir);
        if !audit.has_main {
            return Err("the IR has no main".to_owned());
        }
        match audit.strangers.as_slice() {
            [] => Ok(audit),
            strangers => Err(format!("the IR calls {}", strangers.join(", "))),
        }
    }

    /// What the client includes.
    fn source(&self, subject: &Subject) -> String {
        let (traits, tuning) = (subject.traits(), subject.model.tuning);
        let looks = tuning.queue_polls.max(tuning.head_polls).max(tuning.awake_polls);
        let places = if traits.near_first { 2 } else { 1 };
        let weak = match self.weak {
            Some(Weakening { site, to }) => format!("Some((Site::{site:?}, {to:?}))"),
            None => "None".to_owned(),
        };
        let mut source = format!("// {} for GenMC.\n", subject.name);
        let mut constant = |name, value: &dyn std::fmt::Display| {
            writeln!(source, "pub(crate) const {name} = {value};").expect("a string takes it");
        };
        constant("TUNING: Tuning", &format_args!("{tuning:?}"));
        constant("THREADS: usize", &self.threads);
        constant("SECTIONS: usize", &self.sections);
        constant("READERS: usize", &usize::from(traits.shared));
        constant("PLACES: u32", &places);
        // Waiters that sleep beside the lock poll for a bounded time, each time that they were woken.
        constant("LOOKS: u32", &if traits.sleeps { u32::MAX } else { looks });
        // A look at the node of another, which may be in its next life, is a hint, and no race.
        let peeks = tuning.adaptive != Adaptive::Off || !tuning.kick_unconditionally;
        constant("LIVES: bool", &!peeks);
        constant("FLAG: bool", &(subject.id.lock().family == Family::Flag));
        constant("WEAK: Option<(Site, Ordering)>", &weak);
        source + &format!("pub(crate) type Subject = {};\n", subject.written())
    }
}

fn within(
    what: &str,
    number: usize,
    range: &std::ops::RangeInclusive<usize>,
) -> Result<(), String> {
    if range.contains(&number) {
        return Ok(());
    }
    Err(format!("{number} {what}; a client has {} to {}", range.start(), range.end()))
}

fn compile(subject: &Subject, source: &Path, out: &Path) -> Result<(), String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let manifest: PathBuf = [env!("CARGO_MANIFEST_DIR"), "client", "Cargo.toml"].iter().collect();
    let mut emit = OsString::from("--emit=llvm-ir=");
    emit.push(out);
    let output = Command::new(cargo)
        .args(["rustc", "--quiet", "--release", "--lib", "--manifest-path"])
        .arg(manifest)
        .arg("--")
        .args(["--cfg", "chosen", "--cfg", &format!("{:?}", subject.id)])
        .arg(emit)
        .args(["-C", "panic=abort", "-C", "opt-level=2", "-C", "codegen-units=1"])
        .args(["-C", "no-vectorize-loops", "-C", "no-vectorize-slp", "-C", "debuginfo=0"])
        .env("QSPIN_CLIENT_SUBJECT", source)
        .output()
        .map_err(|error| format!("cargo: {error}"))?;
    if output.status.success() {
        Ok(())
    } else {
        Err(format!("the client does not compile:\n{}", String::from_utf8_lossy(&output.stderr)))
    }
}
