//! How a subcommand fails: the user's input was wrong, or the world was.

use std::fmt::Display;

/// Why a subcommand did not do what it was asked.
#[derive(Debug)]
pub enum Failure {
    /// The input was wrong: one line that says what, and what would be right. Exit code 2.
    Usage(String),
    /// Something else went wrong. Exit code 1.
    Broken(anyhow::Error),
    /// A program could not be run: the exit code that a shell has for that, and one line that says why.
    NotRun(u8, String),
}

impl Failure {
    /// The input was wrong: `line` says what, and what would be right.
    pub fn usage(line: impl Display) -> Self {
        Self::Usage(line.to_string())
    }

    /// The exit code that belongs to this failure.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Broken(_) => 1,
            Self::NotRun(code, _) => *code,
        }
    }

    /// What to say on stderr: one line, whatever the message was made of.
    #[must_use]
    pub fn line(&self) -> String {
        let text = match self {
            Self::Usage(line) | Self::NotRun(_, line) => line.clone(),
            Self::Broken(error) => format!("{error:#}"),
        };
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Broken(error)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Broken(error.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_one_line_with_its_exit_code() {
        let usage = Failure::usage("no lock\n called x");
        assert_eq!(usage.line(), "no lock called x");
        assert_eq!(usage.exit_code(), 2);
        let broken = Failure::from(anyhow::anyhow!("inner").context("outer"));
        assert_eq!(broken.line(), "outer: inner");
        assert_eq!(broken.exit_code(), 1);
    }
}
