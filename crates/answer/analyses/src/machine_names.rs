//! Names of recorded machines.

use sources::{Guest, Recording};

use crate::align::GuestAlignment;

/// Name of a host.
const HOST: &str = "host";
/// Name of a guest if no recording has its name.
const GUEST: &str = "guest";

/// Name of a recording's machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineName {
    /// For a guest, the VM's name in the exits report.
    pub name: String,
    /// The recording was aligned to a host, or a host's recording lists its guest.
    pub is_guest: bool,
}

impl MachineName {
    /// The name of the machine of recording `at` in `all`; `guests` has the alignments.
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

/// The entry in `host` for the guest in which `recording` was made.
#[must_use]
pub fn guest_of<'h>(recording: &Recording, host: &'h Recording) -> Option<&'h Guest> {
    let id = recording.trace_id()?;
    host.info().guests.iter().find(|guest| guest.trace_id == id)
}

/// The guest's name in the exits report.
fn guest_name(guest: &Guest) -> String {
    if !guest.name.is_empty() {
        return guest.name.clone();
    }
    let threads = guest.vcpus.iter().map(|vcpu| vcpu.pid).filter(|&thread| thread != 0);
    threads.min().map_or_else(|| GUEST.to_owned(), |first| format!("vm-{first}"))
}
