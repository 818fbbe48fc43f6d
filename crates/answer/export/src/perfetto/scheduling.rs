//! The kernel's scheduling events, encoded as a stream. A test compares the bytes with an encoding of the
//! [messages](super::messages).

use ftrace::eventfmt::{EventFormat, Value};
use rustc_hash::FxHashMap;

use super::wire::{bytes, nested, number, varint};
use super::{PACKET_TAG, SCHEDULING};
use crate::raw_events::RawEvent;

/// Events of a CPU that are written together.
const BUNDLE: usize = 512;

/// Keys before fields: the field's number and its wire type (0: a varint; 2: a length and bytes).
mod key {
    /// `TracePacket.ftrace_events`, `.trusted_packet_sequence_id`.
    pub(super) const BUNDLE: u8 = 1 << 3 | 2;
    pub(super) const SEQUENCE: u8 = 10 << 3;
    /// `FtraceEventBundle.cpu`, `.event`.
    pub(super) const CPU: u8 = 1 << 3;
    pub(super) const EVENT: u8 = 2 << 3 | 2;
    /// `FtraceEvent.timestamp`, `.pid`.
    pub(super) const TIMESTAMP: u8 = 1 << 3;
    pub(super) const PID: u8 = 2 << 3;
    /// `FtraceEvent.sched_switch`, `.sched_waking` (20 << 3 | 2, in two bytes).
    pub(super) const SWITCH: &[u8] = &[4 << 3 | 2];
    pub(super) const WAKING: &[u8] = &[0xa2, 0x01];
}

/// The source of a message field.
#[derive(Clone, Copy, Debug)]
enum Says {
    /// A text field of the event.
    Text(&'static str),
    /// A 32-bit number of the event.
    Int(&'static str),
    /// A 64-bit number of the event.
    Long(&'static str),
    /// The constant 1.
    One,
}

/// The fields of `SchedSwitchFtraceEvent`, from number 1 on.
const SWITCH: [Says; 7] = [
    Says::Text("prev_comm"),
    Says::Int("prev_pid"),
    Says::Int("prev_prio"),
    Says::Long("prev_state"),
    Says::Text("next_comm"),
    Says::Int("next_pid"),
    Says::Int("next_prio"),
];

/// The fields of `SchedWakingFtraceEvent`; its `success` is obsolete.
const WAKING: [Says; 5] =
    [Says::Text("comm"), Says::Int("pid"), Says::Int("prio"), Says::One, Says::Int("target_cpu")];

/// How events of a format are encoded: the key of the message, and its fields with their positions in the event.
#[derive(Debug)]
struct Plan {
    key: &'static [u8],
    fields: Vec<(u8, Says, Option<usize>)>,
}

impl Plan {
    fn new(format: &EventFormat) -> Self {
        let is_switch = format.name() == "sched_switch";
        let (key, says) =
            if is_switch { (key::SWITCH, &SWITCH[..]) } else { (key::WAKING, &WAKING[..]) };
        let place = |says: &Says| match says {
            Says::Text(name) | Says::Int(name) | Says::Long(name) => {
                format.fields().iter().position(|field| *field.name == **name)
            }
            Says::One => None,
        };
        let field = |(number, says): (u8, &Says)| (number, *says, place(says));
        Self { key, fields: (1..).zip(says).map(field).collect() }
    }

    fn write(&self, event: &RawEvent<'_>, out: &mut Vec<u8>) {
        let field = |place: Option<usize>| event.format.fields().get(place?);
        let signed = |place| {
            field(place).and_then(|field| field.signed(event.payload, event.order)).unwrap_or(0)
        };
        for &(at, says, place) in &self.fields {
            match says {
                Says::Text(_) => {
                    let value =
                        field(place).and_then(|field| field.value(event.payload, event.order));
                    let text = match value {
                        Some(Value::Text(text)) => String::from_utf8_lossy(text),
                        _ => "".into(),
                    };
                    bytes(out, at << 3 | 2, text.as_bytes());
                }
                Says::Int(_) => {
                    number(out, at << 3, i64::from(signed(place) as i32).cast_unsigned())
                }
                Says::Long(_) => number(out, at << 3, signed(place).cast_unsigned()),
                Says::One => number(out, at << 3, 1),
            }
        }
    }
}

/// Events of one CPU to be written.
#[derive(Debug, Default)]
struct Bundle {
    events: usize,
    bytes: Vec<u8>,
}

/// Gathers the scheduling of one machine by CPU.
#[derive(Debug, Default)]
pub(super) struct Bundles {
    by_cpu: FxHashMap<u32, Bundle>,
    /// By id of the event.
    plans: FxHashMap<u16, Plan>,
    /// The encoding of one event; reused to save allocations.
    message: Vec<u8>,
}

impl Bundles {
    /// Adds an event of its CPU; returns whether there are enough events for a packet.
    pub(super) fn add(&mut self, event: &RawEvent<'_>) -> bool {
        let plan = self.plans.entry(event.format.id()).or_insert_with(|| Plan::new(event.format));
        let bundle = self.by_cpu.entry(event.cpu).or_default();
        let message = &mut self.message;
        message.clear();
        plan.write(event, message);
        nested(&mut bundle.bytes, key::EVENT, |out| {
            number(out, key::TIMESTAMP, event.stamp_ns);
            number(out, key::PID, event.thread.into());
            out.extend_from_slice(plan.key);
            varint(out, message.len() as u64);
            out.extend_from_slice(message);
        });
        bundle.events += 1;
        bundle.events >= BUNDLE
    }

    /// Takes the packet of a CPU's events; `None` without events.
    pub(super) fn take(&mut self, cpu: u32) -> Option<Vec<u8>> {
        let bundle = self.by_cpu.remove(&cpu).filter(|bundle| bundle.events > 0)?;
        let mut packet = Vec::with_capacity(bundle.bytes.len() + 16);
        nested(&mut packet, PACKET_TAG, |out| {
            nested(out, key::BUNDLE, |out| {
                number(out, key::CPU, cpu.into());
                out.extend_from_slice(&bundle.bytes);
            });
            number(out, key::SEQUENCE, SCHEDULING.into());
        });
        Some(packet)
    }

    /// CPUs with events, ascending.
    pub(super) fn cpus(&self) -> Vec<u32> {
        let mut cpus: Vec<u32> = self.by_cpu.keys().copied().collect();
        cpus.sort_unstable();
        cpus
    }
}

#[cfg(test)]
#[allow(clippy::indexing_slicing)]
mod tests {
    use prost::Message;
    use raw_bytes::ByteOrder;

    use super::super::messages::{
        FtraceEvent, FtraceEventBundle, SchedSwitch, SchedWaking, TracePacket,
    };
    use super::*;

    const FORMATS: [(&str, &str); 2] = [
        (
            "sched_switch",
            "field:unsigned short common_type; offset:0; size:2; signed:0;\n\
             field:char prev_comm[16]; offset:8; size:16; signed:0;\n\
             field:pid_t prev_pid; offset:24; size:4; signed:1;\n\
             field:int prev_prio; offset:28; size:4; signed:1;\n\
             field:long prev_state; offset:32; size:8; signed:1;\n\
             field:char next_comm[16]; offset:40; size:16; signed:0;\n\
             field:pid_t next_pid; offset:56; size:4; signed:1;\n\
             field:int next_prio; offset:60; size:4; signed:1;\n",
        ),
        (
            "sched_waking",
            "field:unsigned short common_type; offset:0; size:2; signed:0;\n\
             field:char comm[16]; offset:8; size:16; signed:0;\n\
             field:pid_t pid; offset:24; size:4; signed:1;\n\
             field:int target_cpu; offset:28; size:4; signed:1;\n",
        ),
    ];

    fn format(at: usize) -> EventFormat {
        let (name, fields) = FORMATS[at];
        let text = format!("name: {name}\nID: {}\nformat:\n{fields}\nprint fmt: \"\"\n", at + 7);
        EventFormat::parse("sched", text.as_bytes()).unwrap()
    }

    fn payload(parts: &[(usize, &[u8])]) -> Vec<u8> {
        let mut payload = vec![0; 64];
        for (at, part) in parts {
            payload[*at..at + part.len()].copy_from_slice(part);
        }
        payload
    }

    #[test]
    fn bundles_are_what_the_messages_say() {
        let formats = [format(0), format(1)];
        let payloads = [
            payload(&[
                (8, b"CPU 0/KVM"),
                (24, &700i32.to_le_bytes()),
                (28, &(-1i32).to_le_bytes()),
                (32, &0x100i64.to_le_bytes()),
                (40, b"sw\xffapper"),
                (60, &120i32.to_le_bytes()),
            ]),
            payload(&[(8, b"vhost-700"), (24, &701i32.to_le_bytes()), (28, &3i32.to_le_bytes())]),
        ];
        let mut bundles = Bundles::default();
        let mut expected = Vec::new();
        for number in 0..BUNDLE {
            let at = number % 2;
            let stamp_ns = 1_000_000_000 + number as u64;
            let (format, payload) = (&formats[at], payloads[at].as_slice());
            let (recording, cpu, thread, order) = (0, 1, 700, ByteOrder::Little);
            let event = RawEvent { recording, cpu, stamp_ns, thread, format, payload, order };
            assert_eq!(bundles.add(&event), number == BUNDLE - 1);
            let sched_switch = (at == 0).then(|| SchedSwitch {
                prev_comm: Some("CPU 0/KVM".to_owned()),
                prev_pid: Some(700),
                prev_prio: Some(-1),
                prev_state: Some(0x100),
                next_comm: Some("sw\u{fffd}apper".to_owned()),
                next_pid: Some(0),
                next_prio: Some(120),
            });
            let sched_waking = (at == 1).then(|| SchedWaking {
                comm: Some("vhost-700".to_owned()),
                pid: Some(701),
                // Kernels without this field.
                prio: Some(0),
                success: Some(1),
                target_cpu: Some(3),
            });
            let (timestamp, pid) = (Some(stamp_ns), Some(thread));
            expected.push(FtraceEvent { timestamp, pid, sched_switch, sched_waking });
        }
        assert_eq!(bundles.cpus(), [1]);
        let packet = TracePacket {
            trusted_packet_sequence_id: Some(SCHEDULING),
            ftrace_events: Some(FtraceEventBundle { cpu: Some(1), event: expected }),
            ..TracePacket::default()
        };
        let expected = [vec![PACKET_TAG], packet.encode_length_delimited_to_vec()].concat();
        assert_eq!(bundles.take(1), Some(expected));
        assert_eq!(bundles.take(1), None);
    }
}
