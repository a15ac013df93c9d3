//! The program: where it is, and whether the dynamic linker would load a library into it.

use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use object::read::ReadCache;
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, elf};
use rustix::fs::{Access, AtFlags, CWD};
use rustix::process::{getegid, geteuid};

use crate::failure::Failure;

/// Exit codes of shells: there is no such program, or it is there and cannot be executed.
const NOT_FOUND: u8 = 127;
const NOT_EXECUTABLE: u8 = 126;

/// A program that was found, and that the kernel does not execute: its interpreter may be missing.
pub(super) fn not_executable(program: &Path, why: &std::io::Error) -> Failure {
    Failure::NotRun(NOT_EXECUTABLE, format!("cannot run `{}`: {why}", program.display()))
}

/// The program of this name, as a shell finds it.
///
/// # Errors
/// There is none, or it cannot be executed: with the exit code of a shell.
pub(super) fn find(name: &OsStr) -> Result<PathBuf, Failure> {
    let wrong = |code: u8, why: &str| {
        Failure::NotRun(code, format!("cannot run `{}`: {why}", name.to_string_lossy()))
    };
    if name.is_empty() {
        return Err(wrong(NOT_FOUND, "name a program"));
    }
    let runs = |path: &Path| path.is_file() && may_execute(path);
    if name.to_string_lossy().contains('/') {
        let path = PathBuf::from(name);
        return match fs::metadata(&path) {
            Err(why) if why.kind() == std::io::ErrorKind::PermissionDenied => {
                Err(wrong(NOT_EXECUTABLE, &why.to_string()))
            }
            Err(why) => Err(wrong(NOT_FOUND, &why.to_string())),
            Ok(about) if !about.is_file() => {
                Err(wrong(NOT_EXECUTABLE, "it is no file; name a program"))
            }
            Ok(_) if !runs(&path) => {
                Err(wrong(NOT_EXECUTABLE, "it is not executable, for this user at least"))
            }
            Ok(_) => Ok(path),
        };
    }
    let places = env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    let mut candidates = env::split_paths(&places).map(|place| place.join(name));
    let found = candidates.find(|path| runs(path));
    found.ok_or_else(|| wrong(NOT_FOUND, "there is no such program in PATH"))
}

fn may_execute(path: &Path) -> bool {
    rustix::fs::accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS).is_ok()
}

/// Why a library would not be loaded into the program, where that can be seen from its file.
pub(super) fn why_not_loaded(program: &Path) -> Option<String> {
    // An interpreter of an interpreter is enough.
    why_not(program, 4)
}

/// The kernel reads no more of the first line of a script.
const LONGEST_LINE: u64 = 256;
/// The GNU C library's dynamic linker, and the processor of the programs that it loads.
const LINKER: &str = if cfg!(target_arch = "aarch64") {
    "/lib/ld-linux-aarch64.so.1"
} else {
    "/lib64/ld-linux-x86-64.so.2"
};
const MACHINE: elf::Machine =
    if cfg!(target_arch = "aarch64") { elf::EM_AARCH64 } else { elf::EM_X86_64 };

fn has_capabilities(program: &Path) -> bool {
    rustix::fs::getxattr(program, "security.capability", &mut [0_u8; 64][..])
        .is_ok_and(|size| size > 0)
}

fn why_not(program: &Path, depth: u32) -> Option<String> {
    let about = fs::metadata(program).ok()?;
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    let mode = about.mode();
    if mode & libc::S_ISUID != 0 && about.uid() != user
        || mode & libc::S_ISGID != 0 && about.gid() != group
    {
        return Some(format!(
            "{} runs with another user's rights (set-user-ID), and the dynamic linker ignores preloaded \
             libraries there; run it as that user",
            program.display()
        ));
    }
    if has_capabilities(program) && user != 0 {
        return Some(format!(
            "{} has capabilities that its user has not (getcap), and the dynamic linker ignores preloaded \
             libraries there; run it as root",
            program.display()
        ));
    }
    // What cannot be read may still be run: it shows then.
    let mut first = Vec::new();
    File::open(program).ok()?.take(LONGEST_LINE).read_to_end(&mut first).ok()?;
    if let Some(line) = first.strip_prefix(b"#!") {
        let line = line.split(|byte| *byte == b'\n').next()?;
        let line = String::from_utf8_lossy(line).into_owned();
        let interpreter = line.split_whitespace().next()?;
        return (depth > 0).then(|| why_not(Path::new(interpreter), depth - 1)).flatten();
    }
    if !first.starts_with(b"\x7fELF") {
        return Some(format!(
            "{} is no program of this system, nor a script that begins with #! and its interpreter",
            program.display()
        ));
    }
    // Read where it is asked for: the tables of a file may lie anywhere in it.
    let file = ReadCache::new(File::open(program).ok()?);
    let Ok(header) = elf::FileHeader64::<Endianness>::parse(&file) else {
        return Some("it is no program for 64 bits, as the library is".into());
    };
    let endian = header.endian().ok()?;
    if header.e_machine(endian) != MACHINE {
        return Some("it is for another processor than the library".into());
    }
    let segments = header.program_headers(endian, &file).ok()?;
    let interpreter =
        segments.iter().find_map(|segment| segment.interpreter(endian, &file).ok()?);
    match interpreter {
        // The dynamic linker itself, as a command, loads for the program that it is given.
        None if program.canonicalize().ok() == Path::new(LINKER).canonicalize().ok() => None,
        None => Some(
            "it is statically linked, so there is no dynamic linker to load a library; link it \
             dynamically, or call the locks by qspin.h"
                .into(),
        ),
        Some(linker)
            if Path::new(OsStr::from_bytes(linker)).file_name()
                != Path::new(LINKER).file_name() =>
        {
            Some(format!(
                "its C library is not the GNU one, but that of {}",
                String::from_utf8_lossy(linker)
            ))
        }
        Some(_) => None,
    }
}
