//! What the machines are called that recordings were made on.

use sources::{Guest, Recording};

use crate::align::GuestAlignment;

/// The name of the recorded host.
const HOST: &str = "host";
/// The name of a guest that no recording names.
const GUEST: &str = "guest";

/// The machine of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineName {
    /// A guest's as the exits report calls its VM.
    pub name: String,
    /// It was aligned to a host, or another recording names it as its guest.
    pub is_guest: bool,
}

impl MachineName {
    /// The name of the machine of a recording among `all`; `guests` says which were aligned.
    #[must_use]
    pub fn for_recording(at: usize, all: &[Recording], guests: &[GuestAlignment]) -> Self {
        let guest = |name: String| Self { name, is_guest: true };
        let Some(recording) = all.get(at) else { return guest(GUEST.to_owned()) };
        let aligned = guests.iter().find(|alignment| alignment.guest == at);
        if let Some(aligned) = aligned.filter(|alignment| !alignment.vm.is_empty()) {
            return guest(aligned.vm.clone());
        }
        let named = |host| Some((host, guest_of(recording, host)?));
        if let Some((host, named)) = all.iter().find_map(named) {
            return guest(host.vm_name(&guest_name(named)).to_owned());
        }
        if aligned.is_some() || recording.peer().is_some() {
            guest(GUEST.to_owned())
        } else {
            Self { name: HOST.to_owned(), is_guest: false }
        }
    }
}

/// What `host` says of the guest that `recording` was made in.
#[must_use]
pub fn guest_of<'h>(recording: &Recording, host: &'h Recording) -> Option<&'h Guest> {
    let id = recording.trace_id()?;
    host.info().guests.iter().find(|guest| guest.trace_id == id)
}

/// The guest's name, as the exits report calls its VM.
fn guest_name(guest: &Guest) -> String {
    if !guest.name.is_empty() {
        return guest.name.clone();
    }
    let threads = guest.vcpus.iter().map(|vcpu| vcpu.pid).filter(|&thread| thread != 0);
    threads.min().map_or_else(|| GUEST.to_owned(), |first| format!("vm-{first}"))
}
