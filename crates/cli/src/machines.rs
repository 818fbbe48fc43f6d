//! Names of the machines that recordings were made on.

use analyses::GuestAlignment;
use sources::Recording;

use crate::inputs::{Guest, guest_of};

/// The name of the recorded host.
pub(crate) const HOST: &str = "host";
/// That of a guest that no recording names.
const GUEST: &str = "guest";

/// What a recording's machine is called: a guest if it was aligned to a host or another recording
/// names it as its guest, else the host.
pub(crate) fn machine_name(at: usize, all: &[Recording], guests: &[GuestAlignment]) -> String {
    let Some(recording) = all.get(at) else { return GUEST.to_owned() };
    let told = all.iter().find_map(|host| guest_of(recording, host));
    if let Some(told) = told {
        return guest_name(told);
    }
    if let Some(found) = guests.iter().find(|one| one.guest == at && !one.vm.is_empty()) {
        return found.vm.clone();
    }
    if recording.peer().is_some() || guests.iter().any(|one| one.guest == at) {
        return GUEST.to_owned();
    }
    HOST.to_owned()
}

/// The guest's name, as the exits report calls its VM.
fn guest_name(guest: &Guest) -> String {
    if !guest.name.is_empty() {
        return guest.name.clone();
    }
    let threads = guest.vcpus.iter().map(|vcpu| vcpu.pid).filter(|&thread| thread != 0);
    threads.min().map_or_else(|| GUEST.to_owned(), |first| format!("vm-{first}"))
}
