//! Measures all kinds asked for, in one of the two ways.

use crate::exitcost::measure_options::MeasureOptions;
use crate::exitcost::sheet::{ExitSource, Sheet};

/// Measures. A kind that can't be measured here has a row that says why.
///
/// # Errors
/// When nothing can be measured: on another processor, or when a machine stops in the midst of it.
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

/// What other processors get.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) const REFUSED: &str = "exits can be made only on x86-64";
