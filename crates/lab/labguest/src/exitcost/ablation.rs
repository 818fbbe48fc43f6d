//! Measures the cost of exits with one setting changed at a time.

use std::sync::atomic::AtomicBool;

use crate::exitcost::ablation_sheet::{AblationOptions, AblationSheet};

/// Measures until it is stopped, then restores all settings.
///
/// # Errors
/// When there is no KVM, a machine stops, or this was stopped.
pub fn ablate(options: &AblationOptions, stop: &AtomicBool) -> Result<AblationSheet, String> {
    #[cfg(target_arch = "x86_64")]
    return crate::exitcost::steps::ablate(options, stop);
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = (options, stop);
        Err(crate::exitcost::measure::REFUSED.into())
    }
}
