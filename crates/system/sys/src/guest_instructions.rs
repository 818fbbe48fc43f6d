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

    /// Executes `cpuid` for a leaf; returns `eax`.
    #[must_use]
    pub fn cpuid(leaf: u32) -> u32 {
        __cpuid(leaf).eax
    }

    /// Whether the processor has AMD's hypercall instruction instead of Intel's.
    #[must_use]
    pub fn has_vmmcall() -> bool {
        // "Auth" of "AuthenticAMD", "Hygo" of "HygonGenuine".
        [0x6874_7541, 0x6f67_7948].contains(&__cpuid(0).ebx)
    }

    /// The processor's vendor string, such as `AuthenticAMD`.
    #[must_use]
    pub fn processor() -> String {
        let who = __cpuid(0);
        name([who.ebx, who.edx, who.ecx])
    }

    /// The hypervisor's vendor string, such as `KVMKVMKVM`; `None` without a hypervisor.
    #[must_use]
    pub fn hypervisor() -> Option<String> {
        // The hypervisor bit: processors leave it 0.
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

    /// Makes a hypercall with four arguments. KVM refuses it from user space with an error number,
    /// but it is traced before.
    #[must_use]
    pub fn hypercall(number: u64, arguments: [u64; 4]) -> u64 {
        let [a0, a1, a2, a3] = arguments;
        let answer;
        // SAFETY: in a guest the instruction exits to the hypervisor, which changes no register
        // except rax for an unknown number; outside a guest it raises SIGILL. The compiler reserves
        // rbx, so it is exchanged during the call. The memory clobber is implied.
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

    /// Makes a type neither `Send` nor `Sync`. The kernel grants access to a port per thread; a
    /// thread without it gets SIGSEGV.
    pub(super) type OfThread = PhantomData<*const ()>;

    /// Ports that may be written: a device at another port could write to any memory.
    const WRITABLE: [u16; 1] = [0x4859];

    /// This thread's permission to write to an I/O port; other threads do not have it, so the value
    /// cannot move.
    ///
    /// ```compile_fail
    /// fn goes_to_another_thread<T: Send>() {}
    /// goes_to_another_thread::<hyperscope_sys::guest_instructions::PortWriter>();
    /// ```
    #[derive(Debug)]
    pub struct PortWriter(u16, OfThread);

    impl PortWriter {
        /// Requests the permission from the kernel; needs root. The only allowed port is 0x4859,
        /// which has no device.
        ///
        /// # Errors
        /// If the kernel refuses, or for another port.
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

    /// Waits for an interrupt; a hypervisor that traps the instruction waits instead.
    pub fn wait_for_interrupt() {
        // SAFETY: the instruction changes no register and no memory.
        unsafe { asm!("wfi", options(nomem, nostack, preserves_flags)) }
    }
}
