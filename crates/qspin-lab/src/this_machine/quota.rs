//! A CPU quota for the time of a measurement: a control group of its own, into which this process
//! moves and out of which it moves again.
//!
//! # Source
//! Linux, `Documentation/admin-guide/cgroup-v2.rst` (`cpu.max`, and that a group with processes has
//! no children with controllers) and `Documentation/scheduler/sched-bwc.rst` (`cpu.cfs_quota_us`).
//!
//! Only a user that may make control groups can do that; for others the answer says why not.

use std::fs;
use std::path::{Path, PathBuf};

use qspin::select::{self, Group, Version};

/// The period of the quota, µs: the kernel's default, and that of every container.
const PERIOD_US: u64 = 100_000;

/// A control group with a quota, empty unless this process is in it. It goes when it is dropped.
#[derive(Debug)]
pub struct QuotaGroup {
    group: PathBuf,
    /// The group where this process belongs.
    home: PathBuf,
    inside: bool,
}

impl QuotaGroup {
    /// Makes a group that may use so many CPUs' time.
    pub fn make(cpus: f64) -> Result<Self, String> {
        let home =
            home(Path::new("/")).ok_or("no hierarchy of control groups limits CPU time here")?;
        let name = format!("qspin-{}-{:.0}", std::process::id(), cpus * 100.0);
        let quota_us = (cpus * PERIOD_US as f64) as u64;
        let mut parents = vec![home.folder.clone()];
        if home.version == Version::V2 && home.folder != home.top {
            // A group with processes in it has no children with controllers; its parent may.
            parents.extend(home.folder.parent().map(Path::to_owned));
        }
        let mut why = String::new();
        for parent in parents {
            let group = parent.join(&name);
            match limit(&parent, &group, home.version, quota_us) {
                Ok(()) => return Ok(Self { group, home: home.folder, inside: false }),
                Err(error) => {
                    // One that was made and cannot be limited is of no use.
                    let _ = fs::remove_dir(&group);
                    why = error;
                }
            }
        }
        Err(why)
    }

    /// Moves this process, all threads of it, into the group.
    pub fn enter(&mut self) -> Result<(), String> {
        write(&self.group.join("cgroup.procs"), &std::process::id().to_string())?;
        self.inside = true;
        Ok(())
    }

    /// Moves this process back to where it belongs.
    pub fn leave(&mut self) -> Result<(), String> {
        if self.inside {
            write(&self.home.join("cgroup.procs"), &std::process::id().to_string())?;
            self.inside = false;
        }
        Ok(())
    }
}

impl Drop for QuotaGroup {
    fn drop(&mut self) {
        // A group that cannot be left stays, empty once this process has ended.
        let _ = self.leave();
        let _ = fs::remove_dir(&self.group);
    }
}

/// Makes `group` in `parent` and limits it.
fn limit(parent: &Path, group: &Path, version: Version, quota_us: u64) -> Result<(), String> {
    if version == Version::V2 {
        let control = parent.join("cgroup.subtree_control");
        let on = fs::read_to_string(&control).unwrap_or_default();
        if !on.split_whitespace().any(|name| name == "cpu") {
            write(&control, "+cpu")?;
        }
    }
    fs::create_dir(group).map_err(|why| format!("cannot make {}: {why}", group.display()))?;
    match version {
        Version::V1 => {
            write(&group.join("cpu.cfs_period_us"), &PERIOD_US.to_string())?;
            write(&group.join("cpu.cfs_quota_us"), &quota_us.to_string())
        }
        Version::V2 => write(&group.join("cpu.max"), &format!("{quota_us} {PERIOD_US}")),
    }
}

fn write(file: &Path, text: &str) -> Result<(), String> {
    fs::write(file, text).map_err(|why| format!("cannot write {}: {why}", file.display()))
}

/// Where this process belongs in the hierarchy that limits CPU time: version 1 where that has the
/// controller, else version 2.
fn home(root: &Path) -> Option<Group> {
    let groups = select::groups(root);
    groups.into_iter().max_by_key(|group| group.version == Version::V1)
}

/// The quota is one for the whole process: tests that set one hold this.
#[cfg(test)]
pub(crate) static IN_TESTS: std::sync::Mutex<()> = std::sync::Mutex::new(());

#[cfg(test)]
mod tests {
    use std::sync::PoisonError;

    use qspin::platform::cpu_quota;

    use super::*;

    #[test]
    fn the_hierarchy_that_has_the_controller_is_found() {
        let root = tempfile::tempdir().unwrap();
        let process = root.path().join("proc/self");
        fs::create_dir_all(&process).unwrap();
        let of = |groups: &str, mounts: &str| {
            fs::write(process.join("cgroup"), groups).unwrap();
            fs::write(process.join("mountinfo"), mounts).unwrap();
            let folder = home(root.path())?.folder;
            Some(Path::new("/").join(folder.strip_prefix(root.path()).unwrap()))
        };
        let v1 = "40 35 0:31 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n";
        let v2 = "41 35 0:32 /slice /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        let both = format!("{v2}{v1}");
        assert_eq!(of("4:cpu,cpuacct:/a/b\n0::/\n", &both), Some("/sys/fs/cgroup/cpu/a/b".into()));
        assert_eq!(of("0::/slice/x\n", &both), Some("/sys/fs/cgroup/x".into()));
        assert_eq!(of("0::/beside\n", v2), Some("/sys/fs/cgroup".into()));
        assert_eq!(of("7:memory:/\n", &both), None);
        assert_eq!(of("0::/\n", v1), None);
    }

    #[test]
    fn a_quota_is_in_force_inside_and_nothing_is_left_of_it() {
        let _alone = IN_TESTS.lock().unwrap_or_else(PoisonError::into_inner);
        let mut group = match QuotaGroup::make(0.75) {
            Ok(group) => group,
            Err(why) => {
                println!("skipped: a quota of CPU time ({why})");
                return;
            }
        };
        let quota = || select::quota(Path::new("/"), &mut |_| ()).map(|quota| quota.cpus);
        let before = quota();
        group.enter().unwrap();
        assert!(quota().is_some_and(|cpus| cpus <= 0.75), "{:?}", quota());
        assert!(cpu_quota::look() && cpu_quota::has_cpu_quota(), "locks know of it");
        group.leave().unwrap();
        assert_eq!(quota(), before);
        let cpus = select::allowed_cpus().len() as f64;
        assert_eq!(cpu_quota::look(), before.is_some_and(|quota| quota < cpus));
        let folder = group.group.clone();
        group.enter().unwrap();
        drop(group);
        assert_eq!(quota(), before);
        assert!(!folder.exists());
    }
}
