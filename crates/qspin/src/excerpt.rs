//! Text that was read, as a message shows it: one short line.

use std::path::Path;

/// The beginning of `text`, without line ends and other control characters.
pub(crate) fn excerpt(text: &str) -> String {
    const MAX: usize = 60;
    let text = text.trim();
    let shown = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    if text.chars().nth(MAX).is_none() {
        shown.collect()
    } else {
        shown.take(MAX).chain(['…']).collect()
    }
}

/// The message about a file that holds this text where something else is expected.
pub(crate) fn malformed(file: &Path, text: &str, what: &str) -> String {
    format!("{}: `{}` is not {what}", file.display(), excerpt(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_one_short_line() {
        assert_eq!(excerpt(" a\nb\x1b[1m\n"), "a b [1m");
        assert_eq!(excerpt(&"é".repeat(60)), "é".repeat(60));
        assert_eq!(excerpt(&"é".repeat(61)), format!("{}…", "é".repeat(60)));
    }
}
