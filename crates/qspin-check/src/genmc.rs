//! GenMC, for machines that have it: it explores the client of a subject under RC11 and IMM.
//!
//! GenMC loads the IR of an LLVM of its own. `opt` of that LLVM puts the client into one function a thread first: an
//! access to the stack is an event to GenMC, and after that there are none.

mod orderings;

pub use orderings::{Weakened, explore_weakened, weakenings};

use std::env;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::emit::Client;

/// What the client goes through before GenMC sees it. Nothing here makes an operation that GenMC does not know.
const PASSES: &str = "internalize,always-inline,globaldce,\
    function(sroa,early-cse,sccp,simplifycfg,adce,sroa,sccp,simplifycfg,adce),globaldce";

/// Waits are marked in the client. The two passes do not end for clients with long loops, or stop at a cast in one, and
/// spare only executions that are blocked.
const OPTIONS: &[&str] = &[
    "--check-liveness",
    "--disable-spin-assume",
    "--disable-load-annotation",
    "--disable-loop-jump-threading",
    "--disable-estimation",
];

/// The memory models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// C11, repaired.
    Rc11,
    /// What compilers may make of it for ARM, POWER and others: loads may return values that are stored later.
    Imm,
}

impl Memory {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Rc11, Self::Imm];

    /// As GenMC calls it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rc11 => "rc11",
            Self::Imm => "imm",
        }
    }
}

/// How far GenMC may go.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// For each exploration.
    pub time: Duration,
    /// Address space of the process.
    pub gib: u64,
}

/// What came of an exploration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// Every execution is correct.
    Passed,
    /// One is not; in GenMC's words.
    Wrong(String),
    /// It did not get through.
    Unfinished(String),
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed => f.write_str("passed"),
            Self::Wrong(words) => write!(f, "wrong: {words}"),
            Self::Unfinished(why) => write!(f, "unfinished: {why}"),
        }
    }
}

/// One exploration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explored {
    /// How it ended.
    pub end: End,
    /// Complete executions.
    pub executions: u64,
    /// How long it took.
    pub took: Duration,
}

/// GenMC, and the `opt` of its LLVM.
#[derive(Debug, Clone)]
pub struct Tools {
    genmc: PathBuf,
    opt: PathBuf,
}

impl Tools {
    /// `GENMC` and `OPT` of the environment, or `genmc` on the path and the `opt` of the LLVM that it was built with.
    ///
    /// # Errors
    /// One of them is missing; says which.
    pub fn find() -> Result<Self, String> {
        let genmc = env::var_os("GENMC").map_or_else(|| PathBuf::from("genmc"), PathBuf::from);
        let version = output_of(&genmc)
            .ok_or_else(|| format!("GenMC ({} is not to be found)", genmc.display()))?;
        let llvm = version.split("LLVM ").nth(1).and_then(|rest| rest.split('.').next());
        let llvm = llvm.ok_or("GenMC (it does not say with which LLVM it was built)")?;
        let candidates = match env::var_os("OPT") {
            Some(opt) => vec![PathBuf::from(opt)],
            None => {
                vec![format!("opt-{llvm}").into(), format!("/usr/lib/llvm-{llvm}/bin/opt").into()]
            }
        };
        let found = candidates.into_iter().find(|opt| output_of(opt).is_some());
        let opt = found
            .ok_or_else(|| format!("GenMC (no opt of LLVM {llvm}; OPT says where there is one)"))?;
        Ok(Self { genmc, opt })
    }

    /// Compiles a client into `folder`; returns the file.
    ///
    /// # Errors
    /// The client cannot be made.
    pub fn prepare(&self, client: &Client, name: &str, folder: &Path) -> Result<PathBuf, String> {
        let (ir, bitcode) = (folder.join(format!("{name}.ll")), folder.join(format!("{name}.bc")));
        client.emit(&ir)?;
        let output = Command::new(&self.opt)
            .arg(format!("-passes={PASSES}"))
            .arg("-internalize-public-api-list=main")
            .arg(&ir)
            .arg("-o")
            .arg(&bitcode)
            .output()
            .map_err(|error| format!("{}: {error}", self.opt.display()))?;
        if output.status.success() {
            return Ok(bitcode);
        }
        Err(format!("{}: {}", self.opt.display(), String::from_utf8_lossy(&output.stderr).trim()))
    }

    /// Explores a client.
    ///
    /// # Errors
    /// GenMC cannot be started.
    pub fn explore(
        &self,
        client: &Path,
        memory: Memory,
        limits: Limits,
    ) -> Result<Explored, String> {
        let begun = Instant::now();
        let kib = limits.gib << 20;
        let output = Command::new("sh")
            .args(["-c", &format!("ulimit -v {kib}; exec timeout \"$@\""), "sh"])
            .arg(limits.time.as_secs().max(1).to_string())
            .arg(&self.genmc)
            .arg(format!("--{}", memory.name()))
            .args(OPTIONS)
            .arg("--input-from-bitcode-file")
            .arg(client)
            .output()
            .map_err(|error| format!("sh: {error}"))?;
        let mut said = String::from_utf8_lossy(&output.stdout).into_owned();
        said.push_str(&String::from_utf8_lossy(&output.stderr));
        let (end, executions) = read(&said, output.status.code());
        Ok(Explored { end, executions, took: begun.elapsed() })
    }
}

fn output_of(program: &Path) -> Option<String> {
    let output = Command::new(program).arg("--version").output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The status with which GenMC ends if an execution is wrong.
const WRONG: i32 = 42;
/// The status of `timeout`.
const LATE: i32 = 124;
/// That of a program that has accessed what is not there: v0.11 does under IMM, now and then, after it has warned that its
/// exchanges are experimental there.
const CRASHED: i32 = 139;

/// What GenMC has said.
fn read(said: &str, status: Option<i32>) -> (End, u64) {
    let after = |word: &str| {
        let rest = said.split(word).nth(1)?;
        rest.trim_start().split([' ', '\n']).next()?.parse().ok()
    };
    let executions = after("complete executions explored:").unwrap_or(0);
    let line = |word: &str| said.lines().find(|line| line.contains(word)).map(str::to_owned);
    let end = match status {
        Some(0) if said.contains("No errors were detected") => End::Passed,
        Some(WRONG) => {
            let words = line("Error: ").unwrap_or_default();
            let words =
                words.trim_start_matches("Error: ").trim_end_matches(['!', '.']).to_lowercase();
            // Not of the lock, but of what the compiler has made of it.
            if words.contains("mixed-size") { End::Unfinished(words) } else { End::Wrong(words) }
        }
        Some(LATE) => End::Unfinished("out of time".to_owned()),
        Some(CRASHED) => End::Unfinished("GenMC crashed".to_owned()),
        _ if said.contains("bad_alloc") || said.contains("out of memory") => {
            End::Unfinished("out of memory".to_owned())
        }
        _ => End::Unfinished(line("ERROR").unwrap_or_else(|| "GenMC stopped".to_owned())),
    };
    (end, executions)
}

/// A folder of this process, removed at the end.
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes it.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new() -> Result<Self, String> {
        let folder = env::temp_dir().join(format!("qspin-genmc-{}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(Self(folder))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed stays in the folder for such files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_genmc_says_is_understood() {
        let passed = "*** Verification complete.\nNo errors were detected.\n\
            Number of complete executions explored: 1020\nNumber of blocked executions seen: 289\n";
        assert_eq!(read(passed, Some(0)), (End::Passed, 1020));
        let wrong = "Error: Non-atomic race!\nEvent (1, 2) conflicts\nNumber of complete executions explored: 3\n";
        assert_eq!(read(wrong, Some(42)), (End::Wrong("non-atomic race".into()), 3));
        let ours = "Error: Mixed-size accesses!\n";
        assert_eq!(read(ours, Some(42)), (End::Unfinished("mixed-size accesses".into()), 0));
        assert_eq!(read("", Some(139)), (End::Unfinished("GenMC crashed".into()), 0));
        assert_eq!(read("", Some(124)), (End::Unfinished("out of time".into()), 0));
        let full = "terminate called after throwing an instance of 'std::bad_alloc'\n";
        assert_eq!(read(full, Some(134)), (End::Unfinished("out of memory".into()), 0));
        assert_eq!(read("", None), (End::Unfinished("GenMC stopped".into()), 0));
        // A status of success alone says nothing.
        assert_eq!(read("", Some(0)), (End::Unfinished("GenMC stopped".into()), 0));
    }
}
