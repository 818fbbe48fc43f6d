//! Reads the TSC as the kernel's trace clock `x86-tsc` does.

/// The current TSC; `None` on other architectures.
#[must_use]
pub fn tsc() -> Option<u64> {
    #[cfg(target_arch = "x86_64")]
    {
        Some(crate::guest_instructions::time_stamp_counter())
    }
    #[cfg(not(target_arch = "x86_64"))]
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_forward() {
        if let Some(first) = tsc() {
            assert!(tsc().is_some_and(|other| other > first));
        }
    }
}
