//! How much CPU time the control groups of this process allow.
//!
//! # Source
//! Linux, `Documentation/admin-guide/cgroup-v2.rst` (`cpu.max`) and
//! `Documentation/scheduler/sched-bwc.rst` (`cpu.cfs_quota_us`, `cpu.cfs_period_us`).
//!
//! # How
//! `/proc/self/cgroup` names the groups, `/proc/self/mountinfo` where they are mounted (without it, the usual
//! places are tried). A group's ancestors limit it as well, so the walk goes up as far as is visible, and the
//! tightest quota of either version counts. In a container only a part is visible, and a quota above it is not
//! known.

use std::fs;
use std::path::{Path, PathBuf};

use crate::excerpt::malformed;

/// A limit of CPU time.
#[derive(Debug, Clone, PartialEq)]
pub struct Quota {
    /// The limit in CPUs.
    pub cpus: f64,
    /// The file that holds it.
    pub file: PathBuf,
}

/// Which of the two interfaces.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    V1,
    V2,
}

/// A group of this process, as this process sees it.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    pub version: Version,
    pub folder: PathBuf,
    /// Where the hierarchy is mounted.
    pub top: PathBuf,
}

/// The tightest quota of this process; `root` stands for `/`. A malformed quota limits nothing, and is reported
/// to `problem`.
pub fn quota(root: &Path, problem: &mut dyn FnMut(String)) -> Option<Quota> {
    let mut tightest: Option<Quota> = None;
    for Group { version, mut folder, top } in groups(root) {
        while folder.starts_with(&top) {
            match read(&folder, version) {
                Ok(Some(found)) if tightest.as_ref().is_none_or(|t| found.cpus < t.cpus) => {
                    tightest = Some(found);
                }
                Ok(_) => {}
                Err(wrong) => problem(wrong),
            }
            if !folder.pop() {
                break;
            }
        }
    }
    tightest
}

/// The groups of this process in the hierarchies that limit CPU time; `root` stands for `/`.
#[doc(hidden)]
pub fn groups(root: &Path) -> Vec<Group> {
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let mounts = if groups.is_empty() { Vec::new() } else { mounts(root) };
    let mut found = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (parts.next(), parts.next()) else { continue };
        let version = if controllers.is_empty() {
            Version::V2
        } else if controllers.split(',').any(|name| name == "cpu") {
            Version::V1
        } else {
            continue;
        };
        for mount in mounts.iter().filter(|mount| mount.version == version) {
            if let Some(folder) = mount.folder_of(group) {
                found.push(Group { version, folder, top: mount.at.clone() });
            }
        }
    }
    found
}

/// Where a hierarchy of groups is mounted.
struct Mount {
    version: Version,
    /// The group that the mount shows at its top.
    top: String,
    at: PathBuf,
}

impl Mount {
    /// Where `group` is visible. If the mount shows only groups beside it, the top, which limits it too. `None`
    /// if the name leads out of the hierarchy.
    fn folder_of(&self, group: &str) -> Option<PathBuf> {
        let below = Path::new(group).strip_prefix(&self.top).unwrap_or(Path::new(""));
        let climbs = below.components().any(|part| part == std::path::Component::ParentDir);
        (!climbs).then(|| self.at.join(below))
    }
}

/// The mounted hierarchies, or where they usually are.
fn mounts(root: &Path) -> Vec<Mount> {
    if let Ok(text) = fs::read_to_string(root.join("proc/self/mountinfo")) {
        return text.lines().filter_map(|line| mount(root, line)).collect();
    }
    let usual = |version, at: &str| Mount {
        version,
        top: "/".to_owned(),
        at: root.join("sys/fs/cgroup").join(at),
    };
    vec![
        usual(Version::V2, ""),
        usual(Version::V2, "unified"),
        usual(Version::V1, "cpu"),
        usual(Version::V1, "cpu,cpuacct"),
    ]
}

/// `36 35 98:0 /top /at rw,noatime master:1 - cgroup2 cgroup2 rw`
fn mount(root: &Path, line: &str) -> Option<Mount> {
    let (place, kind) = line.split_once(" - ")?;
    let mut kind = kind.split(' ');
    let version = match (kind.next()?, kind.nth(1)?) {
        ("cgroup2", _) => Version::V2,
        ("cgroup", options) if options.split(',').any(|name| name == "cpu") => Version::V1,
        _ => return None,
    };
    let mut place = place.split(' ').skip(3);
    let (top, at) = (place.next()?, place.next()?);
    let at = root.join(unescape(at).trim_start_matches('/'));
    Some(Mount { version, top: unescape(top), at })
}

/// Blanks and the like are written as three octal digits.
fn unescape(text: &str) -> String {
    let text = text.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n");
    text.replace("\\134", "\\")
}

/// The quota of one group, if it has one.
fn read(folder: &Path, version: Version) -> Result<Option<Quota>, String> {
    let file = folder.join(match version {
        Version::V1 => "cpu.cfs_quota_us",
        Version::V2 => "cpu.max",
    });
    let Ok(mut text) = fs::read_to_string(&file) else { return Ok(None) };
    if version == Version::V1 {
        let Ok(period) = fs::read_to_string(folder.join("cpu.cfs_period_us")) else {
            return Ok(None);
        };
        text = format!("{} {}", text.trim(), period.trim());
    }
    match parse(&text) {
        Some(cpus) => Ok(cpus.map(|cpus| Quota { cpus, file })),
        None => Err(malformed(
            &file,
            &text,
            "a quota and a period in microseconds like `150000 100000`",
        )),
    }
}

/// Quota and period in microseconds as CPUs; `Some(None)` for `max` and -1, which are no limit.
fn parse(text: &str) -> Option<Option<f64>> {
    let mut words = text.split_whitespace();
    let (quota, period, end) = (words.next()?, words.next()?, words.next());
    let period = period.parse::<u64>().ok().filter(|&period| period > 0 && end.is_none())?;
    if matches!(quota, "max" | "-1") {
        return Some(None);
    }
    let quota = quota.parse::<u64>().ok().filter(|&quota| quota > 0)?;
    Some(Some(quota as f64 / period as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_are_numbers_of_cpus() {
        assert_eq!(parse("150000 100000\n"), Some(Some(1.5)));
        assert_eq!(parse("max 100000"), Some(None));
        assert_eq!(parse("-1 100000"), Some(None));
        for wrong in ["", "max", "0 100000", "1 0", "1.5 1", "-2 100000", "1 2 3", "x y", "inf 1"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn mounts_are_read_and_others_are_not() {
        let root = Path::new("/r");
        let v2 = mount(root, "36 35 0:3 / /sys/fs/cg\\040roup rw shared:1 - cgroup2 cgroup2 rw");
        let v2 = v2.unwrap();
        assert_eq!((v2.version, v2.at), (Version::V2, PathBuf::from("/r/sys/fs/cg roup")));
        let v1 = mount(root, "36 35 0:3 /docker/7 /c rw - cgroup cgroup rw,cpu,cpuacct").unwrap();
        assert_eq!(v1.version, Version::V1);
        assert_eq!(v1.folder_of("/docker/7/in"), Some(PathBuf::from("/r/c/in")));
        assert_eq!(v1.folder_of("/docker/7"), Some(PathBuf::from("/r/c")));
        assert_eq!(v1.folder_of("/docker/8"), Some(PathBuf::from("/r/c")), "it is not seen");
        assert_eq!(v1.folder_of("/docker/7/../8"), None);
        for other in ["", "a - b", "36 35 0:3 / /c rw - cgroup cgroup rw,cpuset", "1 - cgroup2 x y"]
        {
            assert!(mount(root, other).is_none(), "{other}");
        }
    }
}
