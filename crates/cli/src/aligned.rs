//! Brings guests' recordings to the clock of their hosts where several are read as one, and says so.

use std::io::Write;

use analyses::align::{GuestAlignment, align};
use anyhow::bail;
use printable::messages;
use sources::Recording;

use crate::args::MethodArg;
use crate::belonging::{refuse_guest_of_another, refuse_other_processor};

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
    refuse_strangers(&guests, recordings)?;
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

/// Refuses guests that can't run on the hosts that they were taken for.
///
/// # Errors
/// At the first such guest.
pub(crate) fn refuse_strangers(
    guests: &[GuestAlignment],
    recordings: &[Recording],
) -> anyhow::Result<()> {
    for guest in guests {
        let (of_guest, of_host) = (recordings.get(guest.guest), recordings.get(guest.host));
        let Some((of_guest, of_host)) = of_guest.zip(of_host) else { continue };
        refuse_other_processor(of_guest, of_host)?;
        if guest.chosen.is_none() {
            refuse_guest_of_another(of_guest, recordings)?;
        }
    }
    Ok(())
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
