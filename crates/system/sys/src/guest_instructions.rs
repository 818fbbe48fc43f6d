//! Instructions that make a guest exit, each for one kind of exit.

#[cfg(target_arch = "x86_64")]
mod loops;

#[cfg(target_arch = "x86_64")]
pub(crate) use loops::read_loop;
#[cfg(target_arch = "x86_64")]
pub use loops::{PortReader, cpuid_loop, empty_loop, hypercall_loop, time_stamp_counter};
#[cfg(target_arch = "x86_64")]
pub use x86::{PortWriter, cpuid, has_vmmcall, hypercall, hypervisor, is_kvm_guest, processor};

#[cfg(target_arch = "aarch64")]
pub use arm::wait_for_interrupt;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::asm;
    use std::arch::x86_64::__cpuid;
    use std::io;
    use std::marker::PhantomData;

    /// Asks `cpuid` for a leaf; `eax` of the answer.
    #[must_use]
    pub fn cpuid(leaf: u32) -> u32 {
        __cpuid(leaf).eax
    }

    /// Whether the processor has AMD's instruction for hypercalls, and not Intel's.
    #[must_use]
    pub fn has_vmmcall() -> bool {
        // "Auth" of "AuthenticAMD", "Hygo" of "HygonGenuine".
        [0x6874_7541, 0x6f67_7948].contains(&__cpuid(0).ebx)
    }

    /// The processor's vendor, as the processor reports it: `AuthenticAMD`.
    #[must_use]
    pub fn processor() -> String {
        let who = __cpuid(0);
        name([who.ebx, who.edx, who.ecx])
    }

    /// The hypervisor that runs this machine, as it says itself: `KVMKVMKVM`. None where there is none.
    #[must_use]
    pub fn hypervisor() -> Option<String> {
        // A bit that processors leave 0, for hypervisors to set.
        let has_hypervisor = __cpuid(1).ecx & 1 << 31 != 0;
        let who = __cpuid(0x4000_0000);
        has_hypervisor.then(|| name([who.ebx, who.ecx, who.edx]))
    }

    fn name(registers: [u32; 3]) -> String {
        let bytes = registers.map(u32::to_le_bytes);
        String::from_utf8_lossy(bytes.as_flattened()).trim_end_matches('\0').to_owned()
    }

    /// Whether KVM runs this machine, so that [`hypercall`] reaches it.
    #[must_use]
    pub fn is_kvm_guest() -> bool {
        hypervisor().as_deref() == Some("KVMKVMKVM")
    }

    /// Makes a hypercall with four arguments. From user space the kernel's KVM refuses it, once it
    /// has been seen: the answer is an error number.
    #[must_use]
    pub fn hypercall(number: u64, arguments: [u64; 4]) -> u64 {
        let [a0, a1, a2, a3] = arguments;
        let answer;
        // SAFETY: in a guest the instruction exits to the hypervisor, which changes no register but
        // rax for a number it doesn't know; outside of one it raises SIGILL. rbx is reserved by the
        // compiler, so it is exchanged for the time of the call. The memory clobber is implied.
        unsafe {
            if has_vmmcall() {
                asm!("xchg {a0}, rbx", "vmmcall", "xchg {a0}, rbx", a0 = inout(reg) a0 => _,
                    inout("rax") number => answer, in("rcx") a1, in("rdx") a2, in("rsi") a3);
            } else {
                asm!("xchg {a0}, rbx", "vmcall", "xchg {a0}, rbx", a0 = inout(reg) a0 => _,
                    inout("rax") number => answer, in("rcx") a1, in("rdx") a2, in("rsi") a3);
            }
        }
        answer
    }

    /// What belongs to one thread: neither `Send` nor `Sync`. The kernel gives the right to use a port
    /// to a thread, and one without it dies by SIGSEGV.
    pub(super) type OfThread = PhantomData<*const ()>;

    /// Ports that may be written: a device behind another one might write to any memory.
    const WRITABLE: [u16; 1] = [0x4859];

    /// The right of this thread to write to one I/O port; another thread has it not, so it stays here.
    ///
    /// ```compile_fail
    /// fn goes_to_another_thread<T: Send>() {}
    /// goes_to_another_thread::<hyperscope_sys::guest_instructions::PortWriter>();
    /// ```
    #[derive(Debug)]
    pub struct PortWriter(u16, OfThread);

    impl PortWriter {
        /// Asks the kernel for the right; root has it. Of all ports there is 0x4859 alone, at which no
        /// device is.
        ///
        /// # Errors
        /// When the kernel refuses, or it is another port.
        pub fn acquire(port: u16) -> io::Result<Self> {
            if !WRITABLE.contains(&port) {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            // SAFETY: the call changes only what this thread may do.
            match unsafe { libc::ioperm(port.into(), 1, 1) } {
                0 => Ok(Self(port, PhantomData)),
                _ => Err(io::Error::last_os_error()),
            }
        }

        /// Writes a byte to the port.
        pub fn write(&self, value: u8) {
            // SAFETY: `acquire` got the right for this thread, which the value does not leave, so the
            // instruction does not fault; it touches no memory, as no device is at the port.
            unsafe { asm!("out dx, al", in("dx") self.0, in("al") value, options(nomem, nostack)) }
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod arm {
    use std::arch::asm;

    /// Waits for an interrupt, in the hypervisor where that traps the instruction.
    pub fn wait_for_interrupt() {
        // SAFETY: the instruction changes no register and no memory.
        unsafe { asm!("wfi", options(nomem, nostack, preserves_flags)) }
    }
}
