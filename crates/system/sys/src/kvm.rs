//! A virtual machine with one vCPU and some memory, with the few ioctls of `/dev/kvm` that it
//! needs.

mod abi;
mod alarm;
#[cfg(target_arch = "aarch64")]
#[path = "kvm/arm64.rs"]
mod machine;
#[cfg(target_arch = "x86_64")]
#[path = "kvm/x86.rs"]
mod machine;
mod vhost;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::raw::{c_int, c_ulong};
use std::time::Duration;

use memmap2::{MmapMut, MmapOptions};

#[cfg(target_arch = "x86_64")]
pub use self::abi::x86::{Registers, Segment, SpecialRegisters, Table};
use self::abi::{Ioeventfd, Irqfd, MemoryRegion, request};
use self::alarm::Alarm;
pub use self::vhost::Queue;
use self::vhost::VhostNet;

/// A virtual machine with one vCPU, whose memory begins at guest address 0.
///
/// The guest runs only within [`TinyVm::run`], which borrows it exclusively: otherwise only its
/// owner changes its memory.
#[derive(Debug)]
pub struct TinyVm {
    /// Precedes the memory that it serves: fields are dropped in order.
    vhost: Option<VhostNet>,
    memory: MmapMut,
    /// `struct kvm_run`, shared with the kernel.
    state: MmapMut,
    vcpu: OwnedFd,
    vm: OwnedFd,
}

/// The interrupt controllers that KVM emulates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Controllers {
    /// All: PIC, I/O APIC, local APIC.
    Kernel,
    /// None: the owner must wake a halted vCPU.
    User,
}

/// Why `run` returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VmExit {
    /// The guest accessed a port without a KVM device.
    Port(u16),
    /// The guest accessed an address without memory.
    Memory(u64),
    /// The guest halted, and KVM does not emulate the interrupt controller.
    Halt,
    /// The time limit was reached.
    TimedOut,
    /// Another reason: `exit_reason` of `struct kvm_run`.
    Other(u32),
}

/// A guest write that signals an eventfd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doorbell {
    /// A byte to a port.
    Port(u16),
    /// Any write to a memory address.
    Memory(u64),
}

/// A failed ioctl of `/dev/kvm`.
#[derive(Debug, thiserror::Error)]
#[error("{call}: {source}")]
pub struct KvmError {
    /// Name of the ioctl.
    pub call: &'static str,
    /// The kernel's error.
    pub source: io::Error,
}

type Result<T> = std::result::Result<T, KvmError>;

impl TinyVm {
    /// Creates a machine with this much memory; its vCPU has the features that KVM supports.
    ///
    /// # Errors
    /// If there is no KVM, if this process may not use it, or if it refuses.
    pub fn new(memory_bytes: usize, controllers: Controllers) -> Result<Self> {
        let failed = |call| move |source| KvmError { call, source };
        let kvm = OpenOptions::new()
            .read(true)
            .write(true)
            .open("/dev/kvm")
            .map_err(failed("open /dev/kvm"))?;
        let version = plain(kvm.as_fd(), "KVM_GET_API_VERSION", request::GET_API_VERSION, 0)?;
        if version != 12 {
            let source = io::Error::other(format!("version {version}, but only 12 is supported"));
            return Err(KvmError { call: "KVM_GET_API_VERSION", source });
        }
        let vm = made(plain(kvm.as_fd(), "KVM_CREATE_VM", request::CREATE_VM, 0)?);
        let mut memory = MmapMut::map_anon(memory_bytes).map_err(failed("mmap"))?;
        add_memory(vm.as_fd(), &mut memory)?;
        if controllers == Controllers::Kernel {
            plain(vm.as_fd(), "KVM_CREATE_IRQCHIP", request::CREATE_IRQCHIP, 0)?;
        }
        let vcpu = made(plain(vm.as_fd(), "KVM_CREATE_VCPU", request::CREATE_VCPU, 0)?);
        machine::set_up(kvm.as_fd(), vm.as_fd(), vcpu.as_fd())?;
        let size = plain(kvm.as_fd(), "KVM_GET_VCPU_MMAP_SIZE", request::GET_VCPU_MMAP_SIZE, 0)?;
        let size = usize::try_from(size).unwrap_or(0).max(abi::RUN_BYTES);
        // SAFETY: the kernel's page for this vCPU changes only within KVM_RUN, which only `run`
        // calls, with exclusive access to the mapping.
        let state = unsafe { MmapOptions::new().len(size).map_mut(&vcpu) };
        let state = state.map_err(failed("mmap of the vCPU"))?;
        Ok(Self { vhost: None, memory, state, vcpu, vm })
    }

    /// Its memory; empty while vhost serves a queue in it, because vhost changes it at any time.
    #[must_use]
    pub fn memory(&self) -> &[u8] {
        if self.vhost.is_some() { &[] } else { &self.memory }
    }

    /// Its memory, mutable. Ends [`TinyVm::serve_by_vhost`].
    pub fn memory_mut(&mut self) -> &mut [u8] {
        self.vhost = None;
        &mut self.memory
    }

    /// Makes a guest write signal an eventfd instead of returning from `run`.
    ///
    /// # Errors
    /// If KVM refuses.
    pub fn add_doorbell(&mut self, at: Doorbell, rings: BorrowedFd<'_>) -> Result<()> {
        let (address, bytes, flags) = match at {
            Doorbell::Port(port) => (u64::from(port), 1, abi::IOEVENTFD_IS_PORT),
            // Size 0 matches any size, so that KVM need not decode the instruction.
            Doorbell::Memory(address) => (address, 0, 0),
        };
        let mut argument = Ioeventfd::new(address, bytes, rings.as_raw_fd(), flags);
        with(self.vm.as_fd(), "KVM_IOEVENTFD", request::IOEVENTFD, &mut argument)
    }

    /// Lets the kernel's vhost-net process a guest's transmit queue: when `rings` is signalled,
    /// frames go to a tap; `call` is signalled when they have been sent. Meanwhile it writes to the
    /// queue in the machine's memory. It is idle after it has processed all signals.
    ///
    /// # Errors
    /// If there is no vhost-net, or if it refuses.
    pub fn serve_by_vhost(
        &mut self,
        queue: Queue,
        tap: BorrowedFd<'_>,
        rings: BorrowedFd<'_>,
        call: BorrowedFd<'_>,
    ) -> Result<()> {
        self.vhost = None;
        // SAFETY: the server is dropped before the memory, by the order of fields. Meanwhile
        // `memory` returns an empty slice. All other access is through `memory_mut` and `run`,
        // which borrow the machine exclusively: the first ends the server, the second does not
        // access the memory.
        self.vhost = Some(unsafe { VhostNet::start(&mut self.memory, queue, tap, rings, call) }?);
        Ok(())
    }

    /// Ends [`TinyVm::serve_by_vhost`] if it is active.
    pub fn end_vhost(&mut self) {
        self.vhost = None;
    }

    /// Lets a signal on an eventfd pulse an interrupt line of KVM's controllers.
    ///
    /// # Errors
    /// If KVM refuses, or if it does not emulate the controllers.
    pub fn add_interrupt(&mut self, line: u32, raised_by: BorrowedFd<'_>) -> Result<()> {
        let mut argument = Irqfd::new(raised_by.as_raw_fd(), line);
        with(self.vm.as_fd(), "KVM_IRQFD", request::IRQFD, &mut argument)
    }

    /// Runs the vCPU until it exits to user space, or until the time limit.
    ///
    /// # Errors
    /// If KVM refuses.
    pub fn run(&mut self, at_most: Duration) -> Result<VmExit> {
        let alarm =
            Alarm::after(at_most).map_err(|source| KvmError { call: "timer_create", source })?;
        loop {
            match plain(self.vcpu.as_fd(), "KVM_RUN", request::RUN, 0) {
                Ok(_) => return Ok(self.exit()),
                Err(error) if error.source.kind() == io::ErrorKind::Interrupted => {
                    if alarm.is_over() {
                        return Ok(VmExit::TimedOut);
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn exit(&self) -> VmExit {
        let word = |at: usize| self.state_bytes(at).map_or(0, u32::from_le_bytes);
        match word(abi::RUN_REASON) {
            abi::EXIT_IO => {
                VmExit::Port(self.state_bytes(abi::RUN_PORT).map_or(0, u16::from_le_bytes))
            }
            abi::EXIT_MMIO => {
                VmExit::Memory(self.state_bytes(abi::RUN_ADDRESS).map_or(0, u64::from_le_bytes))
            }
            abi::EXIT_HLT => VmExit::Halt,
            reason => VmExit::Other(reason),
        }
    }

    fn state_bytes<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.state.get(at..)?.first_chunk().copied()
    }

    /// The kernel's counters of this vCPU (`KVM_GET_STATS_FD`).
    ///
    /// # Errors
    /// If the kernel does not have them: it is older than 5.14.
    pub fn counters(&self) -> Result<File> {
        let number = plain(self.vcpu.as_fd(), "KVM_GET_STATS_FD", request::GET_STATS_FD, 0)?;
        Ok(File::from(made(number)))
    }
}

fn add_memory(vm: BorrowedFd<'_>, memory: &mut MmapMut) -> Result<()> {
    let bytes = u64::try_from(memory.len()).unwrap_or(0);
    let mut region = MemoryRegion::new(bytes, memory.as_mut_ptr() as u64);
    with(vm, "KVM_SET_USER_MEMORY_REGION", request::SET_USER_MEMORY_REGION, &mut region)
}

/// An ioctl with a numeric argument.
fn plain(fd: BorrowedFd<'_>, call: &'static str, request: c_ulong, with: c_ulong) -> Result<c_int> {
    // SAFETY: these requests take a number or nothing, and access no memory of this process except
    // the guest's memory.
    let answer = unsafe { libc::ioctl(fd.as_raw_fd(), request as _, with) };
    if answer < 0 {
        return Err(KvmError { call, source: io::Error::last_os_error() });
    }
    Ok(answer)
}

/// An ioctl with the structure for this request as its argument.
fn with<T: abi::Argument>(
    fd: BorrowedFd<'_>,
    call: &'static str,
    request: abi::Request<T>,
    argument: &mut T,
) -> Result<()> {
    // SAFETY: the request's type determines the structure that the kernel reads and writes, and
    // `argument` has this type; pointers in it are valid for longer than this call.
    let answer =
        unsafe { libc::ioctl(fd.as_raw_fd(), request.number as _, std::ptr::from_mut(argument)) };
    if answer < 0 {
        return Err(KvmError { call, source: io::Error::last_os_error() });
    }
    Ok(())
}

/// The descriptor that an ioctl created.
fn made(number: c_int) -> OwnedFd {
    // SAFETY: the kernel has just created this descriptor for the caller, so it has no other owner.
    unsafe { OwnedFd::from_raw_fd(number) }
}
