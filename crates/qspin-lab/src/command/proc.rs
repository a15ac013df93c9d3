//! What `/proc` says of a process.

use std::fs;
use std::io;
use std::path::PathBuf;

/// The text of a file about the process, if it is there.
pub(super) fn text(process: u32, name: &str) -> Option<String> {
    fs::read_to_string(format!("/proc/{process}/{name}")).ok()
}

/// What a line of the process's status says.
pub(super) fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

/// The number of the process as it knows itself: another one in a container, the last of the line.
pub(super) fn own_number(status: &str) -> Option<u32> {
    field(status, "NSpid")?.split_whitespace().last()?.parse().ok()
}

/// The open files of the process whose names begin so, in the order in which they were opened.
pub(super) fn files(process: u32, beginning: &str) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(format!("/proc/{process}/fd"))? {
        let path = entry?.path();
        let number = path.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok());
        // A link that is not to be read belongs to a file that was closed in this moment.
        let Ok(link) = fs::read_link(&path) else { continue };
        if link.as_os_str().as_encoded_bytes().starts_with(beginning.as_bytes()) {
            files.push((number, path));
        }
    }
    files.sort();
    Ok(files.into_iter().map(|(_, path)| path).collect())
}
