//! The processor's counter, read as the kernel's trace clock `x86-tsc` reads it.

/// Ticks of the TSC now; `None` on processors of other kinds.
#[must_use]
pub fn tsc() -> Option<u64> {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: both instructions are there on every x86-64 processor, and change nothing but the
        // registers that hold the result; the fence keeps the counter from being read ahead of
        // loads that came before.
        #[allow(unused_unsafe, reason = "safe in newer compilers")]
        let ticks = unsafe {
            std::arch::x86_64::_mm_lfence();
            std::arch::x86_64::_rdtsc()
        };
        Some(ticks)
    }
    #[cfg(not(target_arch = "x86_64"))]
    None
}
