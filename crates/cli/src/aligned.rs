//! Brings guests' recordings to the clock of their hosts where several are read as one, and says so.

use std::io::Write;

use analyses::align::{GuestAlignment, align};
use anyhow::bail;
use printable::messages;
use sources::Recording;

use crate::args::MethodArg;
use crate::misuse::Misuse;

/// Corrects the times of all guests among `recordings`.
///
/// # Errors
/// When the method asked for can't be used, or a guest is another host's.
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
        refuse_foreign(guest, recordings)?;
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

/// Refuses a guest that says it was measured against another host than those given: its times would
/// be read on a clock that they are not of.
fn refuse_foreign(guest: &GuestAlignment, recordings: &[Recording]) -> anyhow::Result<()> {
    let Some(recording) = recordings.get(guest.guest) else { return Ok(()) };
    let Some(peer) = recording.peer().filter(|_| guest.chosen.is_none()) else { return Ok(()) };
    if recordings.iter().any(|one| one.trace_id() == Some(peer)) {
        return Ok(());
    }
    bail!(Misuse(format!(
        "{} is of a guest of another host: the recorder measured its clock against a recording that is \
         not among those given; give that host's recording with it",
        recording.path().display()
    )))
}

/// Reports on standard error which guests keep the times of their own clock.
pub(crate) fn report_unaligned(guests: &[GuestAlignment]) {
    for guest in guests.iter().filter(|guest| guest.chosen.is_none()) {
        let _ = writeln!(
            messages(),
            "hyperscope: {}; hyperscope align says why",
            report::align_summary(guest)
        );
    }
}

/// Reports on standard error how guests were aligned, where the output has no place for it.
pub(crate) fn report(guests: &[GuestAlignment]) {
    for guest in guests {
        let _ = writeln!(messages(), "hyperscope: {}", report::align_summary(guest));
    }
}
