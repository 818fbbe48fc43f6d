//! Measures all requested kinds, in one of the two ways.

use crate::exitcost::measure_options::MeasureOptions;
use crate::exitcost::sheet::{ExitSource, Sheet};

/// Measures. The row of a kind that can't be measured here tells why.
///
/// # Errors
/// When nothing can be measured: on another processor, or when a machine fails in the middle.
pub fn measure(options: &MeasureOptions) -> Result<Sheet, String> {
    #[cfg(target_arch = "x86_64")]
    return match options.way {
        ExitSource::Vm => crate::exitcost::vm::measure(options),
        ExitSource::Guest => Ok(crate::exitcost::guest::measure(options)),
    };
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = options.run();
        Err(REFUSED.into())
    }
}

/// The error on other processors.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) const REFUSED: &str = "exits can be made only on x86-64";
