//! The locks that C programs get: those of the register, and the one chosen at run time.

use qspin_core::locks::{Id, LOCKS, Lock};

/// The chosen lock, which the register does not have: it is one of the register's locks of this kind and size.
const SELECT: Lock = Lock {
    module: "select",
    about: "The lock that is chosen once for the process, when it starts: see qspin_select_decide().",
    ..*Id::Native.lock()
};

/// Every lock.
pub fn locks() -> impl Iterator<Item = Lock> {
    LOCKS.iter().copied().chain([SELECT])
}

/// `text` as lines of documentation.
fn documentation(text: &str) -> String {
    let mut lines = vec!["///".to_owned()];
    for word in text.split_whitespace() {
        if lines.last().is_none_or(|line| line.len() + word.len() > 100) {
            lines.push("///".to_owned());
        }
        if let Some(line) = lines.last_mut() {
            *line += " ";
            *line += word;
        }
    }
    lines.join("\n")
}

/// `text` with the placeholders filled in for `lock`.
pub fn fill(text: &str, lock: &Lock) -> String {
    text.replace("/// {about}", &documentation(lock.about))
        .replace("{about}", lock.about)
        .replace("{name}", lock.module)
        .replace("{NAME}", &lock.module.to_uppercase())
        .replace("{raw}", if lock.shared { "RawRwLock" } else { "RawMutex" })
        .replace("{words}", &lock.words.to_string())
        .replace("{size}", &lock.bytes().to_string())
}
