//! Aligns guests' recordings to their hosts' clocks where several recordings are read as one, and
//! reports the method.

use analyses::align::{GuestAlignment, Method, align};
use anyhow::bail;
use sources::Recording;

use crate::belonging::{refuse_guest_of_another, refuse_other_processor};

/// Corrects the times of all guests among `recordings`.
///
/// # Errors
/// When the requested method can't be used, or a guest belongs to another host.
pub(crate) fn apply(
    recordings: &mut [Recording],
    method: Option<Method>,
) -> anyhow::Result<Vec<GuestAlignment>> {
    let guests = match recordings.len() {
        0 | 1 => Vec::new(),
        _ => align(recordings, method, &|_| ()),
    };
    if method.is_some() && guests.is_empty() {
        bail!("--method needs the recordings of a guest and of its host");
    }
    refuse_strangers(&guests, recordings)?;
    for guest in &guests {
        if let Some(wanted) = method.filter(|_| guest.chosen.is_none()) {
            let result = guest.methods.iter().find(|tried| tried.method == wanted);
            let reason =
                result.and_then(|tried| tried.reason.as_deref()).unwrap_or("no method applies");
            bail!("cannot align {} by {}: {reason}", guest.vm, wanted.name());
        }
        if let Some(recording) = recordings.get_mut(guest.guest) {
            guest.apply(recording);
        }
    }
    Ok(guests)
}

/// Refuses guests that can't have run on the given hosts.
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
