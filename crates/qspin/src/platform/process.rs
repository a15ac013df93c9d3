//! What the operating system says about this process: CPUs, threads, stolen time, and a hypervisor
//! that CPUID does not show.
//!
//! Each function reads a file below `root`, which stands for `/`. A file that is missing gives no answer.

use std::fs;
use std::path::Path;

use super::system::cpus;
use super::topology::parse_cpu_list;
use crate::excerpt::malformed;

/// The CPUs on which the calling thread may run at this moment: its affinity within its cpuset. Where the
/// system does not say which, as many CPUs as it says are available, from 0.
#[must_use]
pub fn allowed_cpus() -> Vec<usize> {
    cpus::allowed()
}

/// The value of a line `name:\tvalue` of `/proc/self/status`.
fn status(root: &Path, name: &str) -> Option<String> {
    let text = fs::read_to_string(root.join("proc/self/status")).ok()?;
    let value = |line: &str| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim().to_owned());
    text.lines().find_map(value)
}

/// The CPUs that `Cpus_allowed_list` allows.
///
/// # Errors
/// It is no list of CPUs.
pub(crate) fn listed_cpus(root: &Path) -> Result<Option<Vec<usize>>, String> {
    let Some(list) = status(root, "Cpus_allowed_list") else { return Ok(None) };
    match parse_cpu_list(&list) {
        Some(mut cpus) if !cpus.is_empty() => {
            cpus.sort_unstable();
            cpus.dedup();
            Ok(Some(cpus.into_iter().map(|cpu| cpu as usize).collect()))
        }
        _ => Err(malformed(&root.join("proc/self/status"), &list, "a list of CPUs like `0-3,8`")),
    }
}

/// How many threads the process has at this moment.
///
/// # Errors
/// It is no number.
pub(crate) fn threads(root: &Path) -> Result<Option<u32>, String> {
    let Some(threads) = status(root, "Threads") else { return Ok(None) };
    let number = threads.parse().ok().filter(|&number: &u32| number > 0);
    let wrong = || malformed(&root.join("proc/self/status"), &threads, "a number of threads");
    number.map(Some).ok_or_else(wrong)
}

/// The share of the CPUs' time since boot that the hypervisor gave to other machines.
///
/// # Errors
/// The first line of `/proc/stat` is not as it should be.
pub(crate) fn stolen(root: &Path) -> Result<Option<f64>, String> {
    let Ok(text) = fs::read_to_string(root.join("proc/stat")) else { return Ok(None) };
    let line = text.lines().next().unwrap_or("");
    let wrong =
        || malformed(&root.join("proc/stat"), line, "`cpu` and at least 8 numbers of ticks");
    let fields = line.strip_prefix("cpu ").ok_or_else(wrong)?;
    // user nice system idle iowait irq softirq steal; guests' time is counted in user's, too.
    let ticks: Vec<f64> = fields
        .split_whitespace()
        .take(8)
        .map_while(|n| n.parse::<u64>().ok())
        .map(|n| n as f64)
        .collect();
    let &[.., steal] = ticks.as_slice() else { return Err(wrong()) };
    if ticks.len() < 8 {
        return Err(wrong());
    }
    Ok(Some(steal / ticks.iter().sum::<f64>().max(1.0)))
}

/// The hypervisor according to the machine's names in firmware and kernel: for one that hides from CPUID. Only
/// names that no bare-metal machine has.
pub(crate) fn hypervisor_by_name(root: &Path) -> Option<&'static str> {
    /// (prefix of the name, the hypervisor)
    const NAMES: [(&str, &str); 8] = [
        ("QEMU", "QEMU"),
        ("KVM", "KVM"),
        ("VMware", "VMware"),
        ("VirtualBox", "VirtualBox"),
        ("innotek GmbH", "VirtualBox"),
        ("Xen", "Xen"),
        ("Bochs", "Bochs"),
        ("Parallels", "Parallels"),
    ];
    let read = |file: &str| fs::read_to_string(root.join(file)).unwrap_or_default();
    if read("sys/hypervisor/type").trim() == "xen" {
        return Some("Xen");
    }
    let vendor = read("sys/class/dmi/id/sys_vendor");
    let product = read("sys/class/dmi/id/product_name");
    if vendor.trim() == "Microsoft Corporation" && product.trim() == "Virtual Machine" {
        return Some("Hyper-V");
    }
    let known = |name: &str| NAMES.iter().find(|(begin, _)| name.trim().starts_with(begin));
    known(&vendor).or_else(|| known(&product)).map(|(_, name)| *name)
}
