//! One thing switched at a time, and what exits cost then.

use std::sync::atomic::AtomicBool;

use crate::exitcost::ablation_sheet::{AblationOptions, AblationSheet};

/// Measures, until it is stopped; all is as before then.
///
/// # Errors
/// When there is no KVM here, a machine stops, or this was stopped.
pub fn ablate(options: &AblationOptions, stop: &AtomicBool) -> Result<AblationSheet, String> {
    #[cfg(target_arch = "x86_64")]
    return crate::exitcost::steps::ablate(options, stop);
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = (options, stop);
        Err(crate::exitcost::measure::REFUSED.into())
    }
}
