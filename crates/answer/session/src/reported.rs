//! What a session's recorder reported of itself, in `session.json` next to the recording.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use analyses::boot::EventCost;
use analyses::vmm::VmDevices;
use report::{AgentCost, Covered, RecorderCost};
use serde_json::Value;
use sources::guest_named;

/// Longer `session.json` files are ignored.
const MAX_BYTES: u64 = 16 << 20;

/// What a recorder reported.
#[derive(Clone, Debug, Default)]
pub struct Reported {
    /// What recording cost.
    pub cost: Option<RecorderCost>,
    /// Processes of VMs by their vCPU threads.
    pub processes: HashMap<u32, u32>,
    /// Processes of VMs by all their threads: those of vCPUs, and others.
    pub vmm_threads: HashMap<u32, u32>,
    /// Devices of guests whose VMM's process is known.
    pub devices: VmDevices,
    /// When it began, in Unix time.
    pub begun_unix_ns: Option<u64>,
    /// Moments by the trace clock, by Unix time, and how far apart those were read.
    pub clock_pairs: Vec<(u64, u64, u64)>,
    /// The name of the host that no other has.
    pub host_id: Option<String>,
    /// The model of its CPUs.
    pub cpu_model: Option<String>,
    /// Their microcode.
    pub microcode: Option<String>,
    /// What the recorder says went wrong with this recording.
    pub faults: Vec<String>,
    /// How long guests were recorded while their host was: of a host's recording all of its session's guests, of a
    /// guest's itself.
    pub covered: Vec<Covered>,
    /// What an event costs the guest whose recording this is, as its agent has measured it.
    pub event_cost: Option<EventCost>,
}

/// What the recorder of this recording reported, if it is one of a session and did.
pub(crate) fn reported(recording: &Path) -> Reported {
    let Some(session) = read(recording) else { return Reported::default() };
    let of_host = |key| Some(session.get("host")?.get(key)?.as_str()?.to_owned());
    Reported {
        cost: cost(&session),
        processes: processes(&session, &["vcpus"]),
        vmm_threads: processes(&session, &["vcpus", "threads"]),
        devices: devices(&session),
        begun_unix_ns: session.get("begun_unix_ns").and_then(Value::as_u64),
        clock_pairs: clock_pairs(&session),
        host_id: of_host("id"),
        cpu_model: of_host("cpu_model"),
        microcode: of_host("microcode"),
        faults: faults(&session, recording),
        covered: covered(&session, recording),
        event_cost: event_cost(&session, recording),
    }
}

fn clock_pairs(reported: &Value) -> Vec<(u64, u64, u64)> {
    let pair = |pair: &Value| {
        let number = |key| pair.get(key).and_then(Value::as_u64);
        Some((number("trace_ns")?, number("unix_ns")?, number("error_ns")?))
    };
    list(reported, "clock_pairs").iter().filter_map(pair).collect()
}

fn faults(session: &Value, recording: &Path) -> Vec<String> {
    let reported = match guest_named(recording) {
        None => Some(session),
        Some(name) => of_guest(session, name),
    };
    let faults = reported.map_or(&[][..], |reported| list(reported, "faults"));
    faults.iter().filter_map(|fault| fault.as_str().map(str::to_owned)).collect()
}

fn covered(session: &Value, recording: &Path) -> Vec<Covered> {
    let Some(of_ns) = session.get("duration_ns").and_then(Value::as_u64) else {
        return Vec::new();
    };
    let recorded_guest = guest_named(recording);
    let is_covered = |name: &&str| recorded_guest.is_none_or(|guest| guest == *name);
    let covered = |guest: &Value| {
        let name = guest.get("name")?.as_str().filter(is_covered)?;
        let time_ns = guest.get("recorded_ns")?.as_u64()?;
        Some(Covered { guest: name.to_owned(), time_ns, of_ns })
    };
    list(session, "guests").iter().filter_map(covered).collect()
}

fn event_cost(session: &Value, recording: &Path) -> Option<EventCost> {
    let cost = of_guest(session, guest_named(recording)?)?.get("event_cost")?;
    let times = |key| {
        let times = cost.get(key)?.as_array()?.iter();
        times.map(Value::as_u64).collect::<Option<Vec<u64>>>()
    };
    let repeats = u32::try_from(cost.get("repeats")?.as_u64()?).ok()?;
    EventCost::of_rounds(cost.get("event")?.as_str()?, repeats, &times("off_ns")?, &times("on_ns")?)
}

fn of_guest<'t>(reported: &'t Value, name: &str) -> Option<&'t Value> {
    let mut guests = list(reported, "guests").iter();
    guests.find(|guest| guest.get("name").and_then(Value::as_str) == Some(name))
}

fn read(recording: &Path) -> Option<Value> {
    let mut text = Vec::new();
    let file = File::open(recording.parent()?.join("session.json")).ok()?;
    file.take(MAX_BYTES).read_to_end(&mut text).ok()?;
    let mut session: Value = serde_json::from_slice(&text).ok()?;
    session.get_mut("recorded").map(Value::take)
}

/// The elements of a list; none where it is missing.
fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn cost(recorded: &Value) -> Option<RecorderCost> {
    Some(RecorderCost {
        cpu_ns: recorded.get("recorder_cpu_ns")?.as_u64()?,
        duration_ns: recorded.get("duration_ns")?.as_u64()?,
        cpus: recorded.get("cpus")?.as_array()?.len() as u64,
        agents: agents(list(recorded, "guests")),
    })
}

fn agents(guests: &[Value]) -> Vec<AgentCost> {
    let number = |guest: &Value, key| guest.get(key).and_then(Value::as_u64);
    let cost = |guest: &Value| {
        Some(AgentCost {
            guest: guest.get("name")?.as_str()?.to_owned(),
            cpu_ns: number(guest, "agent_cpu_ns"),
            wakeups: number(guest, "agent_wakeups"),
            channel_exits: number(guest, "channel_exits"),
        })
    };
    guests.iter().filter_map(cost).collect()
}

/// Processes of VMs by the threads in these lists.
fn processes(recorded: &Value, lists: &[&str]) -> HashMap<u32, u32> {
    let number = |value: &Value, key| u32::try_from(value.get(key)?.as_u64()?).ok();
    let mut processes = HashMap::new();
    for vm in list(recorded, "vms") {
        let Some(pid) = number(vm, "pid") else { continue };
        for name in lists {
            let threads = list(vm, name).iter();
            processes.extend(threads.filter_map(|thread| Some((number(thread, "tid")?, pid))));
        }
    }
    processes
}

/// Devices of guests, as their agents say: names of disks and interfaces, else of virtio's devices.
fn devices(recorded: &Value) -> VmDevices {
    let text = |value: &Value, key| Some(value.get(key)?.as_str()?.to_owned());
    let mut devices = VmDevices::default();
    for guest in list(recorded, "guests") {
        let pid = guest.get("pid").and_then(Value::as_u64);
        let Some(pid) = pid.and_then(|pid| u32::try_from(pid).ok()) else { continue };
        for device in list(guest, "devices") {
            let name = text(device, "called").or_else(|| text(device, "name"));
            let Some(name) = name else { continue };
            for (kind, ports) in [("memory", false), ("ports", true)] {
                for range in list(device, kind) {
                    let at = |place| range.get(place).and_then(Value::as_u64);
                    if let (Some(first), Some(last)) = (at(0), at(1)) {
                        devices.add(pid, &name, ports, first..=last);
                    }
                }
            }
        }
    }
    devices
}
