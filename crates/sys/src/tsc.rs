//! The processor's counter.

/// The counter now; `None` on processors that have none of this kind.
#[must_use]
pub fn tsc() -> Option<u64> {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: the instruction reads a counter and touches no memory. Where a program may not read
        // it (PR_SET_TSC, which nobody sets here), it raises a signal.
        Some(unsafe { std::arch::x86_64::_rdtsc() })
    }
    #[cfg(not(target_arch = "x86_64"))]
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_forward() {
        if let Some(one) = tsc() {
            assert!(tsc().is_some_and(|other| other > one));
        }
    }
}
