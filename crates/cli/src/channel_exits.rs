//! Counts the exits that the channels to a session's guests caused, in the host's own recording.

use analyses::device_exits::{DeviceAddresses, device_exits};
use anyhow::Context;
use recorder::SessionFolder;
use session_json::{DeviceRanges, GuestSummary, Recorded};

use command::progress::Progress;

/// Counts them, and rewrites `session.json` with the counts. Skips the reading if no guest has
/// reported its channel's device, or none of them is a known VM.
///
/// # Errors
/// When the host's recording can't be read, or the session can't be written.
pub(crate) fn count(recorded: &mut Recorded, session: &SessionFolder) -> anyhow::Result<()> {
    let devices: Vec<(usize, DeviceAddresses)> = (0..)
        .zip(&recorded.guests)
        .filter_map(|(at, guest)| Some((at, addresses(guest, recorded)?)))
        .collect();
    if devices.is_empty() {
        return Ok(());
    }
    let failed = "exits caused by channels are not counted";
    let host = sources::open(&session.path().join("host.dat")).context(failed)?;
    let bar = Progress::new(host.stored_len());
    let (guests, devices): (Vec<usize>, Vec<DeviceAddresses>) = devices.into_iter().unzip();
    let counts = device_exits(&host, &devices, &|bytes| bar.advance(bytes));
    bar.finish();
    for (at, exits) in guests.into_iter().zip(counts) {
        if let Some(guest) = recorded.guests.get_mut(at) {
            guest.channel_exits = exits.is_known.then(|| exits.memory.saturating_add(exits.ports));
        }
    }
    recorder::write_session(recorded, session).context(failed)
}

/// The addresses whose exits belong to a guest's channel, if they are known.
fn addresses(guest: &GuestSummary, recorded: &Recorded) -> Option<DeviceAddresses> {
    let vm = recorded.vms.iter().find(|vm| Some(vm.pid) == guest.pid)?;
    if guest.channel_device == DeviceRanges::default() {
        return None;
    }
    let ranges = |ranges: &[(u64, u64)]| ranges.iter().map(|&(first, last)| first..=last).collect();
    Some(DeviceAddresses {
        vcpus: Some(vm.vcpus.iter().map(|vcpu| vcpu.tid).collect()),
        memory: ranges(&guest.channel_device.memory),
        ports: ranges(&guest.channel_device.ports),
    })
}
