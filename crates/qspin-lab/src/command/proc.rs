//! What `/proc` says of a process.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

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

/// The process's map of memory, with paths by which its files are found from here: in a container it has others.
pub(super) fn map(process: u32) -> Option<String> {
    let map = text(process, "maps")?;
    let place = |of: &str| fs::read_link(format!("/proc/{of}/ns/mnt")).ok();
    if place("self") == place(&process.to_string()) {
        return Some(map);
    }
    let from_here = |line: &str| match line.split_once(" /") {
        Some((first, path)) if !path.starts_with("memfd:") => {
            format!("{} /proc/{process}/root/{path}\n", first.trim_end())
        }
        _ => format!("{line}\n"),
    };
    Some(map.lines().map(from_here).collect())
}

/// The number here of the process that writes to this slot, and calls itself `own`.
pub(super) fn number_here(own: u32, slot: u64) -> Option<u32> {
    let is_it = |process: u32| {
        let status = text(process, "status").unwrap_or_default();
        own_number(&status) == Some(own)
            && super::run::slots_in(&text(process, "maps").unwrap_or_default()).contains(&slot)
    };
    if is_it(own) {
        return Some(own);
    }
    let all = fs::read_dir("/proc").ok()?;
    let numbers = all.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.into_iter().find(|process| is_it(*process))
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

/// Waits until there is something to be read from `file`, which a process that ends provides.
pub(super) fn readable(file: &OwnedFd, most: Duration) -> bool {
    let most = Timespec::try_from(most).ok();
    poll(&mut [PollFd::new(file, PollFlags::IN)], most.as_ref()).is_ok_and(|ready| ready > 0)
}
