//! What a session's recorder reported about itself, in `session.json` next to the recording.

use std::collections::HashMap;
use std::path::Path;

use analyses::boot::EventCost;
use analyses::vmm::VmDevices;
use report::{AgentCost, Covered, RecorderCost};
use session_json::{ClockPair, EventCostSummary, GuestSummary, Recorded, Session, Vm};
use sources::guest_named;

/// A recorder's report.
#[derive(Clone, Debug, Default)]
pub struct Reported {
    /// The cost of recording.
    pub cost: Option<RecorderCost>,
    /// Processes of VMs by their vCPUs' threads.
    pub processes: HashMap<u32, u32>,
    /// Processes of VMs by all their threads, of vCPUs and others.
    pub vmm_threads: HashMap<u32, u32>,
    /// Devices of guests whose VMM's process is known.
    pub devices: VmDevices,
    /// The start of the recording, in Unix time.
    pub begun_unix_ns: Option<u64>,
    /// Instants by the trace clock, by Unix time, and the time between the two readings.
    pub clock_pairs: Vec<(u64, u64, u64)>,
    /// The unique name of the host.
    pub host_id: Option<String>,
    /// The model of the host's CPUs.
    pub cpu_model: Option<String>,
    pub microcode: Option<String>,
    /// The faults that the recorder reported for this recording.
    pub faults: Vec<String>,
    /// How long guests were recorded while their host was: in a host's recording, all guests of its session; in a
    /// guest's, only that guest.
    pub covered: Vec<Covered>,
    /// The cost of an event in this recording's guest, as its agent measured it.
    pub event_cost: Option<EventCost>,
}

/// The recorder's report about this recording; empty if it belongs to no session.
pub(crate) fn reported(recording: &Path) -> Reported {
    let session = recording.parent().and_then(|folder| Session::read(folder).ok());
    let Some(recorded) = session.and_then(|session| session.recorded) else {
        return Reported::default();
    };
    let guest_name = guest_named(recording);
    let is_its = |guest: &&GuestSummary| Some(guest.name.as_str()) == guest_name;
    let guest = recorded.guests.iter().find(is_its);
    let faults = match guest_name {
        None => Some(&recorded.faults),
        Some(_) => guest.map(|guest| &guest.faults),
    };
    let host = recorded.host.as_ref();
    let pair = |pair: &ClockPair| (pair.trace_ns, pair.unix_ns, pair.error_ns);
    let vcpus = |vm: &Vm| vm.vcpus.iter().map(|vcpu| vcpu.tid).collect::<Vec<_>>();
    let threads = |vm: &Vm| {
        let others = vm.threads.iter().map(|thread| thread.tid);
        vcpus(vm).into_iter().chain(others).collect()
    };
    Reported {
        cost: Some(cost(&recorded)),
        processes: processes(&recorded.vms, vcpus),
        vmm_threads: processes(&recorded.vms, threads),
        devices: devices(&recorded.guests),
        begun_unix_ns: Some(recorded.begun_unix_ns).filter(|&unix_ns| unix_ns > 0),
        clock_pairs: recorded.clock_pairs.iter().map(pair).collect(),
        host_id: host.and_then(|host| host.id.clone()),
        cpu_model: host.and_then(|host| host.cpu_model.clone()),
        microcode: host.and_then(|host| host.microcode.clone()),
        faults: faults.cloned().unwrap_or_default(),
        covered: covered(&recorded, guest_name),
        event_cost: guest.and_then(|guest| event_cost(guest.event_cost.as_ref()?)),
    }
}

/// How long each guest was recorded, or only the guest `only`.
fn covered(recorded: &Recorded, only: Option<&str>) -> Vec<Covered> {
    let of_ns = recorded.duration_ns;
    let guests = recorded.guests.iter().filter(|guest| only.is_none_or(|name| guest.name == name));
    let covered = |guest: &GuestSummary| {
        Some(Covered { guest: guest.name.clone(), time_ns: guest.recorded_ns?, of_ns })
    };
    guests.filter_map(covered).collect()
}

fn event_cost(cost: &EventCostSummary) -> Option<EventCost> {
    EventCost::of_rounds(&cost.event, cost.repeats, &cost.off_ns, &cost.on_ns)
}

fn cost(recorded: &Recorded) -> RecorderCost {
    let agent = |guest: &GuestSummary| AgentCost {
        guest: guest.name.clone(),
        cpu_ns: guest.agent_cpu_ns,
        wakeups: guest.agent_wakeups,
        channel_exits: guest.channel_exits,
    };
    RecorderCost {
        cpu_ns: recorded.recorder_cpu_ns,
        duration_ns: recorded.duration_ns,
        cpus: recorded.cpus.len() as u64,
        agents: recorded.guests.iter().map(agent).collect(),
    }
}

/// Processes of VMs by the threads that `threads` selects.
fn processes(vms: &[Vm], threads: impl Fn(&Vm) -> Vec<u32>) -> HashMap<u32, u32> {
    vms.iter().flat_map(|vm| threads(vm).into_iter().map(|tid| (tid, vm.pid))).collect()
}

/// Devices of guests, as their agents report them: names of disks and interfaces, otherwise of virtio devices.
fn devices(guests: &[GuestSummary]) -> VmDevices {
    let mut devices = VmDevices::default();
    for guest in guests {
        let Some(pid) = guest.pid else { continue };
        for device in &guest.devices {
            let name = device.called.as_ref().unwrap_or(&device.name);
            for (ranges, ports) in [(&device.ranges.memory, false), (&device.ranges.ports, true)] {
                for &(first, last) in ranges {
                    devices.add(pid, name, ports, first..=last);
                }
            }
        }
    }
    devices
}
