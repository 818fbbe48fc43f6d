//! Loops of an instruction that causes guest exits, timed with the time stamp counter.
//!
//! The loops are in assembler, so that their time does not depend on the compilation of this
//! program.

use std::arch::asm;
use std::arch::x86_64::{_mm_lfence, _rdtsc};
use std::io;
use std::marker::PhantomData;

use super::x86::{OfThread, has_vmmcall};

/// The time stamp counter after all earlier instructions have completed.
#[must_use]
pub fn time_stamp_counter() -> u64 {
    // SAFETY: every x86-64 processor has both instructions, and they access no memory. A kernel
    // that forbids the TSC in user space ends the program.
    unsafe {
        _mm_lfence();
        _rdtsc()
    }
}

fn timed(work: impl FnOnce()) -> u64 {
    let start = time_stamp_counter();
    work();
    time_stamp_counter().saturating_sub(start)
}

/// Runs an empty loop `count` times; returns the cycles. A count of 0 counts as 1, here and below.
#[must_use]
pub fn empty_loop(count: u64) -> u64 {
    // SAFETY: only decrements a register.
    timed(|| unsafe {
        asm!("2:", "sub {n}, 1", "jnz 2b", n = inout(reg) count.max(1) => _, options(nomem, nostack));
    })
}

/// Executes CPUID for a leaf `count` times; returns the cycles.
#[must_use]
pub fn cpuid_loop(leaf: u32, count: u64) -> u64 {
    // SAFETY: CPUID writes four registers. The compiler reserves rbx, so it is saved in another
    // register. All operands are named registers, because the compiler could select rbx for an
    // unnamed one.
    timed(|| unsafe {
        asm!("mov r8, rbx", "2:", "mov eax, r9d", "xor ecx, ecx", "cpuid", "sub r10, 1", "jnz 2b",
            "mov rbx, r8", out("r8") _, in("r9") u64::from(leaf), inout("r10") count.max(1) => _,
            out("eax") _, out("ecx") _, out("edx") _, options(nomem, nostack));
    })
}

/// Makes `count` hypercalls with arguments 0; returns the cycles.
///
/// The caller must know that there is a hypervisor: outside a guest they raise SIGILL.
#[must_use]
pub fn hypercall_loop(number: u64, count: u64) -> u64 {
    macro_rules! loops {
        ($hypercall:literal) => {
            asm!("mov r8, rbx", "xor ebx, ebx", "2:", "mov rax, r9", $hypercall, "sub r10, 1",
                "jnz 2b", "mov rbx, r8", out("r8") _, in("r9") number,
                inout("r10") count.max(1) => _, out("rax") _, in("rcx") 0_u64, in("rdx") 0_u64,
                in("rsi") 0_u64)
        };
    }
    // SAFETY: as for `hypercall` in the parent module: the hypervisor changes no register except
    // rax for an unknown number. Registers are named as in `cpuid_loop`.
    timed(|| unsafe {
        if has_vmmcall() {
            loops!("vmmcall");
        } else {
            loops!("vmcall");
        }
    })
}

/// Reads four bytes, possibly from a device, `count` times.
///
/// # Safety
///
/// The address must be mapped for reading, and a multiple of four.
pub(crate) unsafe fn read_loop(from: *const u32, count: u64) -> u64 {
    timed(|| {
        for _ in 0..count.max(1) {
            // SAFETY: guaranteed by the caller; volatile, so that no read is optimized away.
            let _ = unsafe { std::ptr::read_volatile(from) };
        }
    })
}

/// This thread's permission to read an I/O port; other threads do not have it, so the value cannot
/// move.
///
/// ```compile_fail
/// fn goes_to_another_thread<T: Send>() {}
/// goes_to_another_thread::<hyperscope_sys::guest_instructions::PortReader>();
/// ```
#[derive(Debug)]
pub struct PortReader(u16, OfThread);

impl PortReader {
    /// Requests the permission from the kernel; needs root.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn acquire(port: u16) -> io::Result<Self> {
        // SAFETY: the call changes only what this thread may do.
        match unsafe { libc::ioperm(port.into(), 1, 1) } {
            0 => Ok(Self(port, PhantomData)),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Reads a byte from the port `count` times; returns the cycles.
    ///
    /// The caller must select a port that reading does not change.
    #[must_use]
    pub fn read_loop(&self, count: u64) -> u64 {
        // SAFETY: `acquire` got the right for this thread, which the value does not leave, so the
        // instruction does not fault; it touches no memory.
        timed(|| unsafe {
            asm!("2:", "in al, dx", "sub {n}, 1", "jnz 2b", n = inout(reg) count.max(1) => _,
                in("dx") self.0, out("al") _, options(nomem, nostack));
        })
    }
}
