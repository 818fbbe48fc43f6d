//! Perfetto's trace format: packets of protobuf, written as a stream.
//!
//! Everything except the scheduling of hosts is track events on named tracks. No track claims to be
//! a process, because recordings hold thread ids but no process ids. Scheduling is written as the
//! kernel's events (`FtraceEventBundle`), from which Perfetto makes its CPU and thread tracks.

mod interned;
mod messages;
mod scheduling;
mod track_events;
mod wire;

use std::io::{self, Write};

use prost::Message;

use crate::raw_events::RawEvent;
use crate::{Flow, Instant, Role, Scene, Slice, TimelineWriter};
use interned::Interned;
use messages::{
    Clock, ClockSnapshot, CounterDescriptor, SystemInfo, TracePacket, TrackDescriptor, TrackEvent,
    Utsname, event_type,
};
use scheduling::Bundles;
use track_events::{Named, TrackEventEncoder};

/// `BUILTIN_CLOCK_BOOTTIME`, the default clock of packet times.
const BOOTTIME: i32 = 6;
/// `TrackDescriptor.ChildTracksOrdering.EXPLICIT`.
const EXPLICIT: i32 = 3;
/// `TrackDescriptor.SiblingMergeBehavior.NONE`: tracks with equal names stay separate.
const NO_MERGE: i32 = 2;
/// `CounterDescriptor.Unit.UNIT_COUNT`.
const COUNT: i32 = 2;
/// `SEQ_INCREMENTAL_STATE_CLEARED` and `SEQ_NEEDS_INCREMENTAL_STATE`.
const STATE_BEGINS: u32 = 1;
const NEEDS_STATE: u32 = 2;
/// The sequence of all packets that use interned strings.
const SEQUENCE: u32 = 1;
/// The sequence of scheduling events.
const SCHEDULING: u32 = 2;
/// The field of `Trace` that holds its packets, with the wire type of length-delimited data.
const PACKET_TAG: u8 = (1 << 3) | 2;

/// The track for facts about whole recordings.
const RECORDINGS: u64 = 1;
/// First number of groups; tracks and counters follow.
const GROUPS: u64 = 1 << 20;
const TRACKS: u64 = 1 << 32;
const COUNTERS: u64 = 1 << 33;

/// Writes a Perfetto trace.
#[derive(Debug)]
pub struct PerfettoWriter<W> {
    out: W,
    buffer: Vec<u8>,
    interned: Interned,
    track_events: TrackEventEncoder,
    /// Scheduling not written yet, by CPU.
    bundles: Bundles,
}

impl<W: Write + Send> PerfettoWriter<W> {
    /// A writer to `out`.
    pub fn new(out: W) -> Self {
        let (buffer, interned) = (Vec::new(), Interned::default());
        let track_events = TrackEventEncoder::default();
        Self { out, buffer, interned, track_events, bundles: Bundles::default() }
    }

    fn packet(&mut self, packet: &TracePacket) -> io::Result<()> {
        self.buffer.clear();
        self.buffer.push(PACKET_TAG);
        packet.encode_length_delimited(&mut self.buffer).map_err(io::Error::other)?;
        self.track_events.write(&mut self.out)?;
        self.out.write_all(&self.buffer)
    }

    fn descriptor(&mut self, descriptor: TrackDescriptor) -> io::Result<()> {
        self.packet(&TracePacket {
            trusted_packet_sequence_id: Some(SEQUENCE),
            track_descriptor: Some(descriptor),
            ..TracePacket::default()
        })
    }

    fn event(&mut self, stamp_ns: u64, event: TrackEvent) -> io::Result<()> {
        let packet = TracePacket {
            timestamp: Some(stamp_ns),
            trusted_packet_sequence_id: Some(SEQUENCE),
            sequence_flags: Some(NEEDS_STATE),
            interned_data: self.interned.take_new(),
            track_event: Some(event),
            ..TracePacket::default()
        };
        self.packet(&packet)
    }

    fn named(&mut self, stamp_ns: u64, named: &Named<'_>) -> io::Result<()> {
        self.track_events.named(stamp_ns, named, &mut self.interned);
        self.track_events.write_many(&mut self.out)
    }

    /// Writes the packets that Perfetto must read first.
    fn head(&mut self, scene: &Scene) -> io::Result<()> {
        let begin_ns = scene.span_ns.as_ref().map_or(0, |span| *span.start());
        let clock = Clock { clock_id: Some(BOOTTIME as u32), timestamp: Some(begin_ns) };
        let uname = scene.scheduled.and_then(|host| scene.unames.get(host)?.as_deref());
        self.packet(&TracePacket {
            trusted_packet_sequence_id: Some(SEQUENCE),
            sequence_flags: Some(STATE_BEGINS),
            clock_snapshot: Some(ClockSnapshot {
                clocks: vec![clock],
                primary_trace_clock: Some(BOOTTIME),
            }),
            ..TracePacket::default()
        })?;
        // The meaning of thread states' numbers depends on the kernel's version.
        let Some(utsname) = uname.and_then(utsname) else { return Ok(()) };
        self.packet(&TracePacket {
            trusted_packet_sequence_id: Some(SEQUENCE),
            system_info: Some(SystemInfo { utsname: Some(utsname) }),
            ..TracePacket::default()
        })
    }

    /// Writes the source and the losses of each recording.
    fn recordings(&mut self, scene: &Scene) -> io::Result<()> {
        let begin_ns = scene.span_ns.as_ref().map_or(0, |span| *span.start());
        self.descriptor(TrackDescriptor {
            uuid: Some(RECORDINGS),
            name: Some("recordings".to_owned()),
            sibling_merge_behavior: Some(NO_MERGE),
            ..TrackDescriptor::default()
        })?;
        for at in 0..scene.sources.len() {
            let facts = scene.facts(at);
            let args: Vec<_> = facts.iter().map(|(name, value)| (*name, value.arg())).collect();
            let (kind, name, category) = (event_type::INSTANT, "recording", "recording");
            let named = Named { kind, track: RECORDINGS, name, category, args: &args };
            self.named(begin_ns, &named)?;
        }
        Ok(())
    }

    fn flush(&mut self, cpu: u32) -> io::Result<()> {
        self.track_events.write(&mut self.out)?;
        self.bundles.take(cpu).map_or(Ok(()), |packet| self.out.write_all(&packet))
    }
}

/// The parts of a line such as `Linux host 6.1.0 x86_64`, as recorders write it.
fn utsname(line: &str) -> Option<Utsname> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let word = |at: usize| words.get(at).map(|word| (*word).to_owned());
    let machine = words.last().map(|word| (*word).to_owned());
    (words.len() >= 4).then(|| Utsname { sysname: word(0), release: word(2), machine })
}

fn track_uuid(track: usize) -> u64 {
    TRACKS + track as u64
}

impl<W: Write + Send> TimelineWriter for PerfettoWriter<W> {
    const OWN_SCHEDULING: bool = true;
    const CALLS: bool = true;
    const FLOWS: bool = true;

    fn begin(&mut self, scene: &Scene) -> io::Result<()> {
        self.head(scene)?;
        self.recordings(scene)?;
        for (at, group) in scene.groups.iter().enumerate() {
            self.descriptor(TrackDescriptor {
                uuid: Some(GROUPS + at as u64),
                name: Some(group.name.clone()),
                child_ordering: Some(EXPLICIT),
                sibling_merge_behavior: Some(NO_MERGE),
                ..TrackDescriptor::default()
            })?;
        }
        for (at, track) in scene.tracks.iter().enumerate() {
            let rank = i32::try_from(at * 2).unwrap_or(i32::MAX);
            let parent_uuid = Some(GROUPS + track.group as u64);
            let thread = track.thread.filter(|_| track.role == Role::Vcpu);
            self.descriptor(TrackDescriptor {
                uuid: Some(track_uuid(at)),
                name: Some(track.name.clone()),
                parent_uuid,
                sibling_order_rank: Some(rank),
                sibling_merge_behavior: Some(NO_MERGE),
                description: thread.map(|thread| format!("thread {thread} of the host")),
                ..TrackDescriptor::default()
            })?;
            if track.role == Role::Vcpu {
                self.descriptor(TrackDescriptor {
                    uuid: Some(COUNTERS + at as u64),
                    name: Some(format!("{} exits", track.name)),
                    parent_uuid,
                    sibling_order_rank: Some(rank.saturating_add(1)),
                    counter: Some(CounterDescriptor {
                        unit: Some(COUNT),
                        unit_name: Some("exits/s".to_owned()),
                    }),
                    ..TrackDescriptor::default()
                })?;
            }
        }
        Ok(())
    }

    fn slice(&mut self, track: usize, slice: &Slice<'_>) -> io::Result<()> {
        let Slice { from_ns, to_ns, name, category, args } = *slice;
        let (kind, track) = (event_type::SLICE_BEGIN, track_uuid(track));
        let begin = Named { kind, track, name, category, args };
        self.track_events.named(from_ns, &begin, &mut self.interned);
        self.track_events.end(to_ns, track, &mut self.interned);
        self.track_events.write_many(&mut self.out)
    }

    fn instant(&mut self, track: usize, instant: &Instant<'_>) -> io::Result<()> {
        let Instant { stamp_ns, name, category, args } = *instant;
        let (kind, track) = (event_type::INSTANT, track_uuid(track));
        self.named(stamp_ns, &Named { kind, track, name, category, args })
    }

    /// Each end is a separate instant with the flow's number; the last one terminates the flow.
    fn flow(&mut self, flow: &Flow<'_>) -> io::Result<()> {
        let last = flow.ends.len().saturating_sub(1);
        for (at, &(track, stamp_ns)) in flow.ends.iter().enumerate() {
            let mut event = TrackEvent {
                r#type: Some(event_type::INSTANT),
                track_uuid: Some(track_uuid(track)),
                name_iid: Some(self.interned.name(flow.name)),
                category_iids: vec![self.interned.category("flow")],
                ..TrackEvent::default()
            };
            if at == last {
                event.terminating_flow_ids.push(flow.id)
            } else {
                event.flow_ids.push(flow.id)
            }
            self.event(stamp_ns, event)?;
        }
        Ok(())
    }

    fn exit_rate(&mut self, track: usize, stamp_ns: u64, exits: u64) -> io::Result<()> {
        self.event(
            stamp_ns,
            TrackEvent {
                r#type: Some(event_type::COUNTER),
                track_uuid: Some(COUNTERS + track as u64),
                counter_value: Some(i64::try_from(exits).unwrap_or(i64::MAX)),
                ..TrackEvent::default()
            },
        )
    }

    fn scheduling(&mut self, event: &RawEvent<'_>) -> io::Result<()> {
        if self.bundles.add(event) { self.flush(event.cpu) } else { Ok(()) }
    }

    fn end(&mut self, _: &Scene) -> io::Result<()> {
        self.bundles.cpus().into_iter().try_for_each(|cpu| self.flush(cpu))?;
        self.track_events.write(&mut self.out)?;
        self.out.flush()
    }
}
