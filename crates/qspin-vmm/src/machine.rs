//! A virtual machine by KVM, whose virtual CPUs are threads of this process.
//!
//! The interrupt controllers are the kernel's, so halts, INIT, SIPI, NMIs and hypercalls never come here;
//! accesses to ports do. A CPU is stopped by taking its thread out of the guest with a signal, and keeping it
//! out.
//!
//! # Invariants
//! * **VMM-1** No stop is lost: the signal's handler asks the kernel to leave the guest at once the next
//!   time, too, so it does not matter whether the thread was in the guest already.
//! * **VMM-2** A thread looks whether it is stopped after it has taken back that request, and before it
//!   enters the guest.
//! * **VMM-3** The guest's memory stays mapped as long as its machine is there: both are fields of one value.

use std::cell::Cell;
use std::io;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicI32};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use kvm_bindings::{
    CpuId, KVM_MAX_CPUID_ENTRIES, kvm_msi, kvm_regs, kvm_segment, kvm_userspace_memory_region,
};
use kvm_ioctls::{Cap, Kvm, VcpuExit, VcpuFd, VmFd};

use crate::cpuid::{self, Offer};
use crate::image;
use crate::memory::Memory;
use crate::ports::{Effect, Ports};
use crate::start::{self, CODE, DATA, Flat, INFO, TASK};
use crate::warden::CpuControl;

/// Why there is no machine.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// The kernel does not do something.
    #[error("KVM refuses to {0}: {1}")]
    Kvm(&'static str, io::Error),
    /// An ability that is needed and missing.
    #[error("this KVM has no {0}")]
    Missing(&'static str),
    /// There is no memory.
    #[error("no memory for the guest: {0}")]
    Memory(#[from] io::Error),
    /// The image is wrong.
    #[error("the image cannot be loaded: {0}")]
    Image(#[from] image::ImageError),
    /// The command line is too long.
    #[error(transparent)]
    Line(#[from] start::TooLong),
}

/// Names what the kernel was asked for when it refuses.
fn asked<T>(what: &'static str, done: Result<T, kvm_ioctls::Error>) -> Result<T, MachineError> {
    done.map_err(|why| MachineError::Kvm(what, io::Error::from_raw_os_error(why.errno())))
}

/// What there is of a thread.
#[derive(Debug, Default)]
struct Control {
    state: Mutex<State>,
    changed: Condvar,
    /// Its number; 0 while it is none.
    thread: AtomicI32,
}

#[derive(Debug, Default)]
struct State {
    /// It was asked to stand.
    stop: bool,
    /// It does.
    stands: bool,
}

/// What all threads have in common.
#[derive(Debug)]
struct Shared {
    ports: Mutex<Ports>,
    lines: Mutex<Option<Sender<String>>>,
    bell: Mutex<Option<Sender<()>>>,
    complaint: Mutex<Option<String>>,
    over: AtomicBool,
    controls: Vec<Control>,
}

/// A thread that has panicked has left nothing half done that would matter here.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    /// Where this thread asks the kernel not to enter its guest.
    static AT_ONCE: Cell<*mut u8> = const { Cell::new(std::ptr::null_mut()) };
}

/// The signal that takes a thread out of its guest.
fn signal() -> libc::c_int {
    libc::SIGRTMIN() + 3
}

extern "C" fn kicked(_: libc::c_int) {
    let at_once = AT_ONCE.get();
    if !at_once.is_null() {
        // SAFETY: VMM-1: a byte of this thread's own, mapped as long as the pointer is not null.
        unsafe { at_once.write_volatile(1) };
    }
}

fn install_handler() -> io::Result<()> {
    static INSTALLED: Once = Once::new();
    let mut done = 0;
    INSTALLED.call_once(|| {
        // SAFETY: zeros are an action without flags (system calls are not restarted) and an empty mask.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = kicked as *const () as usize;
        // SAFETY: the handler writes one byte of its thread's.
        done = unsafe { libc::sigaction(signal(), &raw const action, std::ptr::null_mut()) };
    });
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

impl Control {
    /// Takes its thread out of the guest.
    fn kick(&self) {
        // ORDERING: Acquire pairs with the Releases of `Shared::run`, by which the thread is there, and no longer.
        let thread = self.thread.load(Acquire);
        if thread != 0 {
            // SAFETY: a signal whose handler we are. A thread that has ended is not found.
            unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, signal()) };
        }
    }

    /// Stands as long as it was asked to.
    fn pass(&self, over: &AtomicBool) {
        let mut state = lock(&self.state);
        // ORDERING: Acquire pairs with the store of `Shared::end`.
        while state.stop && !over.load(Acquire) {
            state.stands = true;
            self.changed.notify_all();
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.stands = false;
    }

    /// Stops it; whether it stands.
    fn stop(&self) -> bool {
        let mut state = lock(&self.state);
        state.stop = true;
        self.kick();
        let stands = |state: &mut State| !state.stands;
        let (mut state, _) = self
            .changed
            .wait_timeout_while(state, Duration::from_secs(1), stands)
            .unwrap_or_else(PoisonError::into_inner);
        state.stop = state.stands;
        state.stands
    }

    fn go_on(&self) {
        lock(&self.state).stop = false;
        self.changed.notify_all();
    }
}

impl Shared {
    fn end(&self, complaint: Option<String>) {
        if let Some(text) = complaint {
            lock(&self.complaint).get_or_insert(text);
        }
        // ORDERING: pairs with the Acquires of `Shared::run` and `Control::pass`.
        self.over.store(true, SeqCst);
        *lock(&self.lines) = None;
        *lock(&self.bell) = None;
        for control in &self.controls {
            // Under its lock: a thread that has looked whether this is over must be asleep before it is woken.
            drop(lock(&control.state));
            control.changed.notify_all();
            control.kick();
        }
    }

    fn write(&self, port: u16, data: &[u8]) {
        let effect = lock(&self.ports).write(port, data);
        match effect {
            Effect::Nothing => {}
            Effect::Line(line) => {
                if let Some(lines) = &*lock(&self.lines) {
                    // The receiver is gone.
                    let _ = lines.send(line);
                }
            }
            Effect::Bell => {
                if let Some(bell) = &*lock(&self.bell) {
                    // As above.
                    let _ = bell.send(());
                }
            }
            Effect::Exit(_) => self.end(None),
            Effect::Reset => self.end(Some("the guest has reset the machine".to_owned())),
        }
    }

    /// The thread of CPU `number`.
    fn run(&self, number: usize, mut cpu: VcpuFd) {
        let control = &self.controls[number];
        AT_ONCE.set(&raw mut cpu.get_kvm_run().immediate_exit);
        // ORDERING: Release pairs with the Acquire of `Control::kick`.
        // SAFETY: asks for a number.
        control.thread.store(unsafe { libc::gettid() }, Release);
        // ORDERING: Acquire pairs with the store of `end`.
        while !self.over.load(Acquire) {
            control.pass(&self.over);
            let why = match cpu.run() {
                Ok(VcpuExit::IoOut(port, data)) => {
                    self.write(port, data);
                    None
                }
                Ok(VcpuExit::IoIn(port, data)) => {
                    lock(&self.ports).read(port, data);
                    None
                }
                // No device has memory: nothing is there.
                Ok(VcpuExit::MmioRead(_, data)) => {
                    data.fill(0xff);
                    None
                }
                Ok(VcpuExit::MmioWrite(..) | VcpuExit::Hlt | VcpuExit::Intr) => None,
                Ok(VcpuExit::Shutdown) => Some("met a fault within a fault".to_owned()),
                Ok(VcpuExit::FailEntry(reason, _)) => {
                    Some(format!("cannot be entered (hardware reason {reason:#x})"))
                }
                Ok(VcpuExit::InternalError) => {
                    // SAFETY: the part of the union that this exit has filled in.
                    let kind = unsafe { cpu.get_kvm_run().__bindgen_anon_1.internal.suberror };
                    Some(format!(
                        "met an error in KVM ({kind}; 1: an instruction it does not know)"
                    ))
                }
                Ok(other) => Some(format!("left the guest for what is not handled: {other:?}")),
                Err(why) if matches!(why.errno(), libc::EINTR | libc::EAGAIN) => {
                    // VMM-2
                    cpu.set_kvm_immediate_exit(0);
                    None
                }
                Err(why) => Some(format!("does not run: {why}")),
            };
            if let Some(why) = why {
                self.end(Some(format!("CPU {number} {why}")));
            }
        }
        // ORDERING: as above.
        control.thread.store(0, Release);
        AT_ONCE.set(std::ptr::null_mut());
    }
}

fn segment(flat: Flat) -> kvm_segment {
    kvm_segment {
        base: 0,
        limit: flat.limit,
        selector: flat.selector,
        type_: flat.kind,
        present: 1,
        dpl: 0,
        db: u8::from(flat.ordinary),
        s: u8::from(flat.ordinary),
        l: 0,
        g: u8::from(flat.ordinary),
        ..Default::default()
    }
}

/// Puts the first CPU where a PVH loader leaves it.
fn begin(cpu: &VcpuFd, entry: u32) -> Result<(), MachineError> {
    let mut special = asked("tell registers", cpu.get_sregs())?;
    special.cs = segment(CODE);
    for data in
        [&mut special.ds, &mut special.es, &mut special.fs, &mut special.gs, &mut special.ss]
    {
        *data = segment(DATA);
    }
    special.tr = segment(TASK);
    // Protected mode; the bit beside it is always set.
    special.cr0 = 1 | 1 << 4;
    special.cr4 = 0;
    special.efer = 0;
    asked("set registers", cpu.set_sregs(&special))?;
    let ordinary = kvm_regs { rip: entry.into(), rbx: INFO, rflags: 1 << 1, ..Default::default() };
    asked("set registers", cpu.set_regs(&ordinary))
}

/// What a machine is made of.
#[derive(Debug, Clone, Copy)]
pub struct Plan<'a> {
    /// The guest.
    pub image: &'a [u8],
    /// Its command line.
    pub line: &'a str,
    /// Virtual CPUs.
    pub vcpus: u32,
    /// Bytes of memory.
    pub memory: usize,
    /// What it is told beside what KVM can do.
    pub offer: Offer,
}

/// A machine that runs, until it is dropped.
#[derive(Debug)]
pub struct Machine {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    vm: VmFd,
    memory: Arc<Memory>,
}

/// Where Intel's processors want three pages that the guest does not touch, and one more.
const TASK_PAGES: usize = 0xfffb_d000;
const IDENTITY_PAGE: u64 = 0xfffb_c000;

impl Machine {
    /// Starts a machine, which sends the lines of its serial port to `lines`. When it has ended, it sends
    /// no more: the other end finds the channel closed.
    ///
    /// # Errors
    ///
    /// Why it cannot be had.
    pub fn start(plan: &Plan<'_>, lines: Sender<String>) -> Result<Self, MachineError> {
        install_handler()?;
        let memory = Arc::new(Memory::new(plan.memory)?);
        let entry = image::load(plan.image, &memory)?;
        start::lay_out(&memory, plan.line)?;
        let kvm = asked("be opened", Kvm::new())?;
        for (ability, name) in [
            (Cap::Irqchip, "interrupt controllers"),
            (Cap::UserMemory, "memory of its user's"),
            (Cap::ImmediateExit, "way to leave a guest at once"),
            (Cap::SignalMsi, "way to send interrupts"),
        ] {
            if !kvm.check_extension(ability) {
                return Err(MachineError::Missing(name));
            }
        }
        let supports =
            asked("tell what it supports", kvm.get_supported_cpuid(KVM_MAX_CPUID_ENTRIES))?;
        let vm = asked("make a machine", kvm.create_vm())?;
        asked("place its pages", vm.set_identity_map_address(IDENTITY_PAGE))?;
        asked("place its pages", vm.set_tss_address(TASK_PAGES))?;
        asked("make interrupt controllers", vm.create_irq_chip())?;
        let region = kvm_userspace_memory_region {
            slot: 0,
            flags: 0,
            guest_phys_addr: 0,
            memory_size: memory.size() as u64,
            userspace_addr: memory.start() as u64,
        };
        // SAFETY: VMM-3.
        asked("map memory", unsafe { vm.set_user_memory_region(region) })?;
        let mut cpus = Vec::new();
        for number in 0..plan.vcpus {
            let cpu = asked("make a virtual CPU", vm.create_vcpu(number.into()))?;
            let says = cpuid::of_cpu(supports.as_slice(), number, plan.vcpus, plan.offer);
            let says =
                CpuId::from_entries(&says).map_err(|_| MachineError::Missing("room for CPUID"))?;
            asked("take CPUID", cpu.set_cpuid2(&says))?;
            if number == 0 {
                begin(&cpu, entry)?;
            }
            cpus.push(cpu);
        }
        let shared = Arc::new(Shared {
            ports: Mutex::default(),
            lines: Mutex::new(Some(lines)),
            bell: Mutex::new(None),
            complaint: Mutex::new(None),
            over: AtomicBool::new(false),
            controls: cpus.iter().map(|_| Control::default()).collect(),
        });
        let mut machine = Self { shared, threads: Vec::new(), vm, memory };
        for (number, cpu) in cpus.into_iter().enumerate() {
            let shared = machine.shared.clone();
            let thread = thread::Builder::new().name(format!("vCPU {number}"));
            machine.threads.push(thread.spawn(move || shared.run(number, cpu))?);
        }
        Ok(machine)
    }

    /// Its memory.
    #[must_use]
    pub fn memory(&self) -> Arc<Memory> {
        self.memory.clone()
    }

    /// The thread that stops its CPUs.
    #[must_use]
    pub fn hands(&self) -> Own {
        Own(self.shared.clone())
    }

    /// Where its bell rings from now on.
    pub fn ring(&self, bell: Sender<()>) {
        if !self.shared.over.load(Relaxed) {
            *lock(&self.shared.bell) = Some(bell);
        }
    }

    /// Presses its NMI button: an NMI for the first CPU, which asks it where the CPUs are.
    pub fn press(&self) {
        let message = kvm_msi { address_lo: 0xfee0_0000, data: 4 << 8, ..Default::default() };
        // A machine that has ended does not hear it.
        let _ = self.vm.signal_msi(message);
    }

    /// Ends it; what it complained of.
    pub fn end(&mut self) -> String {
        self.shared.end(None);
        for thread in self.threads.drain(..) {
            // One that has panicked has said so.
            let _ = thread.join();
        }
        lock(&self.shared.complaint).clone().unwrap_or_default()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.end();
    }
}

/// Stops the CPUs of a [`Machine`]: the names of their APICs are their numbers.
#[derive(Debug, Clone)]
pub struct Own(Arc<Shared>);

impl CpuControl for Own {
    fn stop(&mut self, apic_id: u32) -> bool {
        self.0.controls.get(apic_id as usize).is_some_and(Control::stop)
    }

    fn go_on(&mut self, apic_id: u32) {
        if let Some(control) = self.0.controls.get(apic_id as usize) {
            control.go_on();
        }
    }
}

#[cfg(test)]
mod tests;
