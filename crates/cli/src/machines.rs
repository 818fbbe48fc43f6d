//! What the machines are called that recordings were made on.

use analyses::align::GuestAlignment;
use report::events::Machine;
use sources::Recording;

use crate::inputs::{Guest, guest_of};

/// The name of the recorded host.
pub(crate) const HOST: &str = "host";

/// The machines of all recordings.
pub(crate) fn machines(all: &[Recording], guests: &[GuestAlignment]) -> Vec<Machine> {
    (0..all.len()).map(|at| machine(at, all, guests)).collect()
}

/// What a recording's machine is called.
pub(crate) fn machine_name(at: usize, all: &[Recording], guests: &[GuestAlignment]) -> String {
    machine(at, all, guests).name
}

/// The machine that a recording was made on: a guest if it was aligned to a host or another recording
/// names it as its guest.
fn machine(at: usize, all: &[Recording], guests: &[GuestAlignment]) -> Machine {
    let guest = |name: String| Machine { name, level: 1, threads: None };
    let Some(recording) = all.get(at) else { return guest("guest".to_owned()) };
    let guest_info = all.iter().find_map(|host| guest_of(recording, host));
    if let Some(guest_info) = guest_info {
        return guest(guest_name(guest_info));
    }
    if let Some(found) = guests.iter().find(|one| one.guest == at && !one.vm.is_empty()) {
        return guest(found.vm.clone());
    }
    if recording.peer().is_some() || guests.iter().any(|one| one.guest == at) {
        return guest("guest".to_owned());
    }
    Machine { name: HOST.to_owned(), level: 0, threads: None }
}

/// The guest's name, as the exits report calls its VM.
fn guest_name(guest: &Guest) -> String {
    if !guest.name.is_empty() {
        return guest.name.clone();
    }
    let threads = guest.vcpus.iter().map(|vcpu| vcpu.pid).filter(|&thread| thread != 0);
    threads.min().map_or_else(|| "guest".to_owned(), |first| format!("vm-{first}"))
}
