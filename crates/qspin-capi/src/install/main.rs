//! Builds the libraries and installs them below a directory, with headers, manual pages and files for build
//! systems: `cargo run -p qspin-capi --bin qspin-install -- --prefix DIR`.
//!
//! Everything is built before anything is installed, and either all of it is installed or nothing is.

mod arguments;
mod command;
mod library;
mod place;
mod tree;

use std::process::ExitCode;

use arguments::{Arguments, Request};

const USAGE: &str = "\
Builds qspin for C and C++ and installs it below a directory.

usage: qspin-install --prefix DIR [--libdir NAME] 
                     [--without-command | --built DIR | --profile NAME]

  --prefix DIR       the directory, which is made if it is not there: /usr/local, for instance
  --libdir NAME      the directory of the libraries below it [default: lib]
  --without-command  only what C and C++ programs are built with: half a minute, not some minutes
  --built DIR        where cargo has left the command qspin and its library: they are not built anew
  --profile NAME     cargo's profile for the command qspin [default: release]
  --help             shows this

Installs libqspin.so and libqspin.a, the headers, manual pages, qspin.pc for pkg-config, and a package for
CMake's find_package(qspin); and the command qspin, with its manual pages, completions for bash, zsh and fish,
and libqspin_preload.so, which `qspin run` lets programs load. All of it finds the rest from where it lies, so DIR may be moved. An earlier installation is replaced.
Needs cargo and a C compiler (cc, or what CC names).
";

/// What went wrong, and with which exit code.
#[derive(Debug)]
enum Failure {
    /// Bad input: 2.
    Input(String),
    /// Anything else: 1.
    Other(String),
}

fn install(arguments: &Arguments) -> Result<(), Failure> {
    // Errors in the prefix are reported before minutes of building.
    place::check(&arguments.prefix)?;
    let libraries = library::build().map_err(Failure::Other)?;
    let mut tree = tree::tree(arguments, libraries.path()).map_err(Failure::Other)?;
    if let Some(origin) = &arguments.command {
        tree.extend(command::built(origin).map_err(Failure::Other)?);
    }
    place::install(&arguments.prefix, &tree)?;
    println!("qspin {} is in {}", env!("CARGO_PKG_VERSION"), arguments.prefix.display());
    Ok(())
}

fn main() -> ExitCode {
    let request = arguments::parse(std::env::args_os().skip(1));
    let result = match request {
        Ok(Request::Help) => {
            print!("{USAGE}");
            Ok(())
        }
        Ok(Request::Install(arguments)) => install(&arguments),
        Err(problem) => Err(Failure::Input(problem)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let (problem, code) = match &failure {
                Failure::Input(problem) => (problem, 2),
                Failure::Other(problem) => (problem, 1),
            };
            eprintln!("qspin-install: {problem}");
            ExitCode::from(code)
        }
    }
}
