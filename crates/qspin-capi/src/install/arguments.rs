//! The command line.

use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

/// Where to install.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Arguments {
    /// The directory below which everything is installed, absolute.
    pub(crate) prefix: PathBuf,
    /// The directory of the libraries, below the prefix.
    pub(crate) libdir: PathBuf,
    /// Where the command `qspin` comes from; `None` if it is not wanted.
    pub(crate) command: Option<Origin>,
}

/// Where the command `qspin` comes from.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Build it with this profile of cargo.
    Profile(String),
    /// Cargo has already built it, into this directory.
    Built(PathBuf),
}

/// What the command line asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// The usage.
    Help,
    /// An installation.
    Install(Arguments),
}

/// The text on one line, without control characters.
fn shown(text: &OsStr) -> String {
    text.to_string_lossy().replace(char::is_control, "?")
}

/// Parses the command line. The error says in one line what is wrong with it.
pub(crate) fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Request, String> {
    const RIGHT: &str = "right would be --prefix DIR, with --libdir NAME or without";
    let mut arguments = arguments;
    let (mut prefix, mut libdir, mut profile, mut built, mut wants_command) =
        (None, None, None, None, true);
    while let Some(argument) = arguments.next() {
        if argument == "--help" || argument == "-h" {
            return Ok(Request::Help);
        }
        if argument == "--without-command" {
            wants_command = false;
            continue;
        }
        let written = argument.as_encoded_bytes();
        let at = written.iter().position(|&byte| byte == b'=');
        let place = match &written[..at.unwrap_or(written.len())] {
            b"--prefix" => &mut prefix,
            b"--libdir" => &mut libdir,
            b"--profile" => &mut profile,
            b"--built" => &mut built,
            _ => return Err(format!("unknown argument '{}'; {RIGHT}", shown(&argument))),
        };
        let value = match at {
            Some(at) => {
                use std::os::unix::ffi::OsStrExt;
                Some(OsStr::from_bytes(&written[at + 1..]).to_owned())
            }
            None => arguments.next(),
        };
        let value = value.filter(|value| !value.is_empty());
        let value =
            value.ok_or_else(|| format!("'{}' lacks its value; {RIGHT}", shown(&argument)))?;
        if place.replace(value).is_some() {
            return Err(format!("'{}' is given twice; {RIGHT}", shown(&argument)));
        }
    }
    let prefix = prefix.ok_or_else(|| format!("no prefix is given; {RIGHT}"))?;
    let prefix = std::path::absolute(&prefix)
        .map_err(|why| format!("cannot use the prefix '{}': {why}", shown(&prefix)))?;
    let libdir = libdir.unwrap_or_else(|| "lib".into());
    let below = Path::new(&libdir).components().all(|part| matches!(part, Component::Normal(_)));
    let plain = libdir.to_str().is_some_and(|name| {
        name.chars().all(|char| char.is_ascii_alphanumeric() || "._-+/".contains(char))
    });
    if !below || !plain {
        let shown = shown(&libdir);
        return Err(format!(
            "'{shown}' is not a directory below the prefix; right would be lib, lib64 or lib/x86_64-linux-gnu"
        ));
    }
    let profile = profile.unwrap_or_else(|| "release".into());
    let is_name =
        |name: &&str| name.chars().all(|char| char.is_ascii_alphanumeric() || "_-".contains(char));
    let Some(profile) = profile.to_str().filter(is_name) else {
        let shown = shown(&profile);
        return Err(format!("'{shown}' is no profile of cargo; right would be release, or dev"));
    };
    let command = wants_command.then(|| match built {
        Some(directory) => Origin::Built(directory.into()),
        None => Origin::Profile(profile.to_owned()),
    });
    Ok(Request::Install(Arguments { prefix, libdir: libdir.into(), command }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> Result<Request, String> {
        parse(arguments.iter().map(OsString::from))
    }

    #[test]
    fn what_is_right_is_understood() {
        let right = Request::Install(Arguments {
            prefix: "/opt/a b".into(),
            libdir: "lib/x86".into(),
            command: Some(Origin::Profile("release".to_owned())),
        });
        let separate = parsed(&["--prefix", "/opt/a b", "--libdir", "lib/x86"]);
        assert_eq!(separate, Ok(right));
        assert_eq!(parsed(&["--libdir=lib/x86", "--prefix=/opt/a b"]), separate);
        let Ok(Request::Install(short)) = parsed(&["--prefix", "x"]) else { panic!("it is right") };
        assert!(short.prefix.is_absolute() && short.libdir == Path::new("lib"));
        assert_eq!(parsed(&["--prefix", "x", "--help"]), Ok(Request::Help));
        for (more, command) in [
            (&["--profile", "dev"][..], Some(Origin::Profile("dev".to_owned()))),
            (&["--built", "target/debug"], Some(Origin::Built("target/debug".into()))),
            (&["--without-command"], None),
        ] {
            let all = [&["--prefix", "x"], more].concat();
            let Ok(Request::Install(wanted)) = parsed(&all) else { panic!("it is right") };
            assert_eq!(wanted.command, command);
        }
    }

    #[test]
    fn what_is_wrong_is_told_in_one_line_with_what_would_be_right() {
        for (wrong, told) in [
            (&[][..], "no prefix"),
            (&["--prefix"], "lacks its value"),
            (&["--prefix="], "lacks its value"),
            (&["--prefix", ""], "lacks its value"),
            (&["--prefix", "a", "--prefix", "b"], "twice"),
            (&["/usr/local"], "unknown argument '/usr/local'"),
            (&["--prefixe=/usr"], "unknown argument"),
            (&["new\nline"], "unknown argument 'new?line'"),
            (&["--prefix", "a", "--libdir", "/lib"], "below the prefix"),
            (&["--prefix", "a", "--libdir", "../lib"], "below the prefix"),
            (&["--prefix", "a", "--libdir", "my lib"], "below the prefix"),
            (&["--prefix", "a", "--profile", "../x"], "no profile"),
            (&["--without-command"], "no prefix"),
        ] {
            let problem = parsed(wrong).unwrap_err();
            assert!(problem.contains(told), "{wrong:?}: {problem}");
            assert!(!problem.contains('\n') && problem.contains("right would be"), "{problem}");
        }
    }
}
