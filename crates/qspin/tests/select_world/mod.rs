//! Machines that are folders.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use qspin::select::{Hints, Inputs};

/// A machine: its files.
pub(crate) struct Machine(tempfile::TempDir);

impl Machine {
    /// One without any file.
    pub(crate) fn empty() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Four CPUs on one node, no hypervisor; one thread that may run on all.
    pub(crate) fn bare() -> Self {
        Self::empty()
            .status("0-3", 1)
            .file("proc/stat", "cpu  10 0 10 80 0 0 0 0 0 0\ncpu0 1 2 3")
            .file("sys/devices/system/cpu/online", "0-3")
            .file("sys/devices/system/node/node0/cpulist", "0-3")
    }

    pub(crate) fn file(self, path: &str, text: &str) -> Self {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
        self
    }

    pub(crate) fn status(self, cpus: &str, threads: u32) -> Self {
        let text = format!("Name:\tx\nThreads:\t{threads}\nCpus_allowed_list:\t{cpus}");
        self.file("proc/self/status", &text)
    }

    pub(crate) fn two_nodes(self) -> Self {
        self.file("sys/devices/system/node/node0/cpulist", "0-1")
            .file("sys/devices/system/node/node0/distance", "10 21")
            .file("sys/devices/system/node/node1/cpulist", "2-3")
            .file("sys/devices/system/node/node1/distance", "21 10")
    }

    pub(crate) fn cpuid(self, text: &str) -> Self {
        self.file("cpuid", text)
    }

    pub(crate) fn root(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn inputs(&self, hints: Hints) -> Inputs {
        Inputs::of_folder(self.root(), hints, None).unwrap()
    }

    pub(crate) fn inputs_on(&self, topology: &str, hints: Hints) -> Inputs {
        Inputs::of_folder(self.root(), hints, Some(OsStr::new(topology))).unwrap()
    }
}

/// What a processor under KVM says: whether halted CPUs can be kicked, whether CPUs are dedicated.
pub(crate) fn kvm(pv_unhalt: bool, realtime: bool) -> String {
    let features = 0x0100_003b | u32::from(pv_unhalt) << 7;
    let hints = u32::from(realtime);
    format!(
        "CPU:\n   0x00000001 0x00: eax=0x000806f8 ebx=0x00020800 ecx=0xfffa3203 edx=0x0f8bfbff\n   \
         0x40000000 0x00: eax=0x40000001 ebx=0x4b4d564b ecx=0x564b4d56 edx=0x0000004d\n   \
         0x40000001 0x00: eax={features:#010x} ebx=0x00000000 ecx=0x00000000 edx={hints:#010x}"
    )
}
