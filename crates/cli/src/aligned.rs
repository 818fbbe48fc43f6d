//! Brings guests' recordings to the clock of their hosts where several are read as one, and says so.

use std::io::Write;

use analyses::{GuestAlignment, align};
use anyhow::bail;
use printable::messages;
use sources::Recording;

use crate::args::MethodArg;

/// Corrects the times of all guests among `recordings`.
///
/// # Errors
/// When the method asked for can't be used.
pub(crate) fn align_guests(
    recordings: &mut [Recording],
    method: Option<MethodArg>,
) -> anyhow::Result<Vec<GuestAlignment>> {
    let guests = match recordings.len() {
        0 | 1 => Vec::new(),
        _ => align(recordings, method.map(|method| method.0), &|_| ()),
    };
    if method.is_some() && guests.is_empty() {
        bail!("--method takes the recording of a guest and that of its host");
    }
    for guest in &guests {
        if let Some(MethodArg(wanted)) = method.filter(|_| guest.chosen.is_none()) {
            let result = guest.methods.iter().find(|one| one.method == wanted);
            let reason = result.and_then(|one| one.reason.as_deref()).unwrap_or("nothing to go by");
            bail!("{} can't be aligned by {}: {reason}", guest.vm, wanted.name());
        }
        if let Some(recording) = recordings.get_mut(guest.guest) {
            guest.apply(recording);
        }
    }
    Ok(guests)
}

/// Reports on standard error how guests were aligned, where the output has no place for it.
pub(crate) fn report(guests: &[GuestAlignment]) {
    for guest in guests {
        let _ = writeln!(messages(), "hyperscope: {}", report::align_summary(guest));
    }
}
