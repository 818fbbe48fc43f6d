//! Reads the recordings and passes the content of each track to a writer.

use std::borrow::Cow;
use std::io;

use analyses::align::GuestAlignment;
use analyses::critical::CriticalWait;
use analyses::path::flows;
use analyses::states::{
    GuestCpu, OccupantSpan, StateSink, StateSpan, VcpuRef, VcpuState, states_for_all,
};
use analyses::view::View;
use ftrace::eventfmt::{EventFormat, Value};
use ftrace::ringbuf::Missed;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use timeline::reading::Reading;
use timeline::reasons::{Code, ReasonNames};

use crate::calls::write_calls;
use crate::exit_rate::ExitRate;
use crate::flows::write_wait;
use crate::raw_events::{RawEvent, RawSink, each_raw};
use crate::{Arg, Flow, Instant, Scene, Slice, TimelineWriter, Window};

/// Events that are instants by default: requests of guests to their host, and its answers.
const INSTANTS: [&str; 16] = [
    "kvm:kvm_mmio",
    "kvm:kvm_pio",
    "kvm:kvm_msr",
    "kvm:kvm_hypercall",
    "kvm:kvm_hvc_arm64",
    "kvm:kvm_page_fault",
    "kvm:kvm_guest_fault",
    "kvm:kvm_inj_virq",
    "kvm:kvm_inj_exception",
    "kvm:kvm_set_irq",
    "kvm:kvm_msi_set_irq",
    "kvm:vgic_update_irq_pending",
    "kvm:kvm_nested_vmenter",
    "kvm:kvm_nested_vmexit",
    "kvm:kvm_nested_vmexit_inject",
    "kvm:kvm_nested_intercepts",
];

/// Events from which Perfetto derives its view of scheduling.
const SCHEDULING: [&str; 2] = ["sched:sched_switch", "sched:sched_waking"];

/// The content to write, and its recordings.
#[derive(Clone, Copy, Debug)]
pub struct Question<'q> {
    /// The recordings, with guests on their hosts' clock.
    pub view: View<'q>,
    /// The time to write.
    pub window: Window,
    /// Patterns of events to show as instants; empty: events of devices, interrupts and nested guests.
    pub events: &'q [String],
    /// Waits to show with arrows.
    pub waits: &'q [CriticalWait],
}

/// Counts of what was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// Intervals.
    pub slices: u64,
    /// Instants.
    pub instants: u64,
    /// Arrows between tracks.
    pub flows: u64,
    /// Spans of guests' tasks that overlapped the same task on another CPU, at least in part, because the clocks of its
    /// CPUs are not aligned exactly.
    pub overlaps: u64,
    /// Places where events were lost.
    pub losses: u64,
}

/// Writes all tracks.
///
/// # Errors
/// When the output can't be written.
pub fn write_timeline<W: TimelineWriter>(
    question: &Question<'_>,
    writer: &mut W,
    progress: &(dyn Fn(u64) + Sync),
) -> io::Result<Exported> {
    let View { recordings, .. } = question.view;
    let mut scene = Scene::find(question.view, W::OWN_SCHEDULING, progress);
    let (from_ns, until_ns) = (question.window.from_ns, question.window.until_ns);
    scene.span_ns = scene.span_ns.map(|span| {
        let from_ns = from_ns.map_or(*span.start(), |from_ns| from_ns.max(*span.start()));
        from_ns..=until_ns.map_or(*span.end(), |until_ns| until_ns.min(*span.end()))
    });
    if W::CALLS {
        scene.find_calls(recordings, progress);
    }
    writer.begin(&scene)?;
    let mut walk = Walk::new(question, &scene, writer);
    let reading = Reading::on_one_clock(question.view.recordings);
    states_for_all(question.view, vec![&mut walk], (&reading, &mut []), progress);
    walk.finish_rates();
    write_calls(&mut walk, recordings, progress);
    if W::FLOWS && walk.out.result.is_ok() {
        flows(question.view, &scene.vms, &mut walk, progress);
        question.waits.iter().for_each(|wait| write_wait(&mut walk, wait));
    }
    if walk.out.result.is_ok() {
        let wanted = ShownEvents::new(question, scene.scheduled);
        let any = |at: usize, format: &EventFormat| {
            wanted.is_instant(at, format.id()) || wanted.is_scheduling(at, format.id())
        };
        each_raw(recordings, &any, &mut walk, progress);
    }
    let Output { result, exported, .. } = walk.out;
    result?;
    writer.end(&scene)?;
    Ok(exported)
}

/// Ids of events to show, and of scheduling events, by recording.
#[derive(Debug)]
struct ShownEvents {
    instants: Vec<FxHashSet<u16>>,
    scheduling: Vec<FxHashSet<u16>>,
}

impl ShownEvents {
    fn new(question: &Question<'_>, scheduled: Option<usize>) -> Self {
        let ids = |at: usize, wants: &dyn Fn(&EventFormat) -> bool| {
            let formats =
                question.view.recordings.get(at).map(|recording| recording.formats().iter());
            formats
                .into_iter()
                .flatten()
                .filter(|entry| wants(entry.1))
                .map(|entry| entry.0)
                .collect()
        };
        let is_requested = |format: &EventFormat| {
            let by_name = question.events.iter().any(|pattern| format.is_named(pattern));
            let unasked = question.events.is_empty();
            by_name || (unasked && INSTANTS.contains(&format.full_name().as_str()))
        };
        let scheduling = |at: usize| {
            ids(at, &|format| {
                scheduled == Some(at) && SCHEDULING.contains(&format.full_name().as_str())
            })
        };
        let all = 0..question.view.recordings.len();
        let instants = all.clone().map(|at| ids(at, &is_requested)).collect();
        Self { instants, scheduling: all.map(scheduling).collect() }
    }

    fn is_instant(&self, recording: usize, id: u16) -> bool {
        self.instants.get(recording).is_some_and(|ids| ids.contains(&id))
    }

    fn is_scheduling(&self, recording: usize, id: u16) -> bool {
        self.scheduling.get(recording).is_some_and(|ids| ids.contains(&id))
    }
}

/// The key of a slice's label: its state and, in an exit, the reason.
type Label = (VcpuState, usize, u8, u64);

/// The label of all spans of one kind.
#[derive(Debug)]
struct SpanLabel {
    name: String,
    /// For an exit: its reason, and the reason's code.
    reason: Option<String>,
    code: Option<String>,
}

/// The labels of spans, by key.
#[derive(Debug)]
struct SpanLabels {
    /// By recording.
    reasons: Vec<ReasonNames>,
    known: FxHashMap<Label, SpanLabel>,
}

impl SpanLabels {
    /// The label of a span; `host` is the recording whose reasons it uses.
    fn label(&mut self, host: usize, span: &StateSpan) -> &SpanLabel {
        let Self { reasons, known } = self;
        let key = match span.exit {
            Some(exit) => (span.state, host, exit.isa, exit.code),
            None => (span.state, usize::MAX, 0, 0),
        };
        known.entry(key).or_insert_with(|| {
            let state = span.state.name();
            let Some(exit) = span.exit else {
                return SpanLabel { name: state.to_owned(), reason: None, code: None };
            };
            let names = reasons.get_mut(host);
            let isa = names.as_ref().map_or(analyses::Isa::Unknown, |names| names.isa(exit.isa));
            let reason = names.map_or_else(String::new, |names| names.name(exit.isa, exit.code));
            let code = Some(Code::new(isa, exit.code).to_string());
            SpanLabel { name: format!("{state}: {reason}"), reason: Some(reason), code }
        })
    }
}

/// The writer, limited to the wanted time.
struct Output<'q, W> {
    window: Window,
    writer: &'q mut W,
    /// By track: from its first slice to its last.
    covered_ns: Vec<Option<(u64, u64)>>,
    exported: Exported,
    result: io::Result<()>,
}

impl<W: TimelineWriter> Output<'_, W> {
    /// Writes, unless a write has failed before: the pass continues to its end anyway.
    fn write(&mut self, write: impl FnOnce(&mut W) -> io::Result<()>) {
        if self.result.is_ok() {
            self.result = write(self.writer);
        }
    }

    fn slice(&mut self, track: usize, slice: &Slice<'_>) {
        let Some((from_ns, to_ns)) = self.window.cut(slice.from_ns, slice.to_ns) else {
            return;
        };
        self.exported.slices += 1;
        if let Some(covered) = self.covered_ns.get_mut(track) {
            let (first_ns, last_ns) = covered.unwrap_or((from_ns, to_ns));
            *covered = Some((first_ns.min(from_ns), last_ns.max(to_ns)));
        }
        self.write(|writer| writer.slice(track, &Slice { from_ns, to_ns, ..*slice }));
    }
}

/// The pass over all spans and events.
pub(crate) struct Walk<'q, W> {
    question: &'q Question<'q>,
    pub(crate) scene: &'q Scene,
    out: Output<'q, W>,
    labels: SpanLabels,
    /// The tracks of vCPUs.
    vcpus: FxHashMap<VcpuRef, Option<usize>>,
    /// The thread of the vCPU whose states follow.
    thread: u32,
    /// By track; only tracks of vCPUs have exits.
    rates: Vec<ExitRate>,
    /// By track of a task: the end of its last slice.
    written_ns: FxHashMap<usize, u64>,
    wanted: ShownEvents,
}

impl<'q, W: TimelineWriter> Walk<'q, W> {
    fn new(question: &'q Question<'q>, scene: &'q Scene, writer: &'q mut W) -> Self {
        let reasons = question.view.recordings.iter().map(ReasonNames::new).collect();
        let covered_ns = vec![None; scene.tracks.len()];
        let (exported, result) = (Exported::default(), Ok(()));
        Self {
            question,
            scene,
            out: Output { window: question.window, writer, covered_ns, exported, result },
            labels: SpanLabels { reasons, known: FxHashMap::default() },
            vcpus: FxHashMap::default(),
            thread: 0,
            rates: vec![ExitRate::default(); scene.tracks.len()],
            written_ns: FxHashMap::default(),
            wanted: ShownEvents::new(question, scene.scheduled),
        }
    }

    /// Writes an interval on a track.
    pub(crate) fn slice(&mut self, track: usize, slice: &Slice<'_>) {
        self.out.slice(track, slice);
    }

    /// Whether a point is in the wanted time, and within the slices of its track.
    pub(crate) fn is_there(&self, (track, ns): (usize, u64)) -> bool {
        let covered = self.out.covered_ns.get(track).copied().flatten();
        let is_covered = covered.is_some_and(|(from_ns, to_ns)| (from_ns..=to_ns).contains(&ns));
        is_covered && self.question.window.has(ns)
    }

    /// Writes an arrow if all its ends exist.
    pub(crate) fn flow(&mut self, name: &'static str, ends: &[(usize, u64)]) {
        if ends.iter().all(|end| self.is_there(*end)) {
            self.out.exported.flows += 1;
            let id = self.out.exported.flows;
            self.out.write(|writer| writer.flow(&Flow { id, name, ends }));
        }
    }

    /// Writes a span of a vCPU, or of the task that ran on it.
    fn state(&mut self, track: usize, host: usize, span: &StateSpan, guest: Option<usize>) {
        let label = self.labels.label(host, span);
        let scene = self.scene;
        let task = guest.zip(span.task).map(|(guest, task)| scene.thread_name(guest, task));
        let mut args: SmallVec<[(&str, Arg<'_>); 8]> = SmallVec::new();
        if let Some(reason) = label.reason.as_deref() {
            args.push(("reason", Arg::Name(reason)));
        }
        if let Some(code) = label.code.as_deref() {
            args.push(("code", Arg::Name(code)));
        }
        if let Some(exit) = span.exit {
            args.push(("exit_ns", Arg::Number(exit.start_ns)));
            args.push(("paired", Arg::Bool(exit.paired)));
        }
        args.push(("level", Arg::Number(span.level.into())));
        args.push(("cpu", Arg::Number(span.cpu.into())));
        if let (Some(task), Some(id)) = (task, span.task) {
            args.push(("task", Arg::Name(task)));
            args.push(("tid", Arg::Number(id.into())));
        }
        let (from_ns, to_ns) = (span.from_ns, span.to_ns);
        let category = span.state.name();
        self.out.slice(track, &Slice { from_ns, to_ns, name: &label.name, category, args: &args });
    }

    fn exit_rate(&mut self, track: usize, start_ns: u64) {
        let Some(mut rate) = self.rates.get(track).copied() else { return };
        rate.exit(start_ns, |stamp_ns, exits| self.rate(track, stamp_ns, exits));
        if let Some(place) = self.rates.get_mut(track) {
            *place = rate;
        }
    }

    fn rate(&mut self, track: usize, stamp_ns: u64, exits: u64) {
        if self.question.window.has(stamp_ns) {
            self.out.write(|writer| writer.exit_rate(track, stamp_ns, exits));
        }
    }

    fn finish_rates(&mut self) {
        for (track, mut rate) in std::mem::take(&mut self.rates).into_iter().enumerate() {
            rate.flush(None, |stamp_ns, exits| self.rate(track, stamp_ns, exits));
        }
    }

    /// The guest's recording that names the tasks of a vCPU.
    fn guest_of(&self, host: usize, thread: Option<u32>) -> Option<usize> {
        let of_host = self.question.view.guests.iter().filter(|guest| guest.host == host);
        let runs = |guest: &&GuestAlignment| {
            let rows = guest.result().map_or(&[][..], |result| &result.rows);
            rows.iter().any(|row| Some(row.thread) == thread)
        };
        of_host.into_iter().find(runs).map(|guest| guest.guest)
    }
}

impl<W: TimelineWriter> StateSink for Walk<'_, W> {
    fn runs_in(&mut self, _: VcpuRef, thread: u32) {
        self.thread = thread;
    }

    fn vcpu(&mut self, vcpu: VcpuRef, span: &StateSpan) {
        let (scene, thread) = (self.scene, self.thread);
        let host = usize::from(vcpu.recording);
        // The first state of a vCPU begins with the vCPU.
        let first = || scene.vcpu(host, thread, span.from_ns);
        let Some(at) = *self.vcpus.entry(vcpu).or_insert_with(first) else { return };
        let Some(track) = scene.tracks.get(at) else { return };
        let guest = span.task.and_then(|_| self.guest_of(host, track.thread));
        if let Some(exit) = span.exit {
            self.exit_rate(at, exit.start_ns);
        }
        self.state(at, host, span, guest);
    }

    fn task(&mut self, guest: GuestCpu, task: u32, span: &StateSpan) {
        let recording = usize::from(guest.recording);
        let Some(track) = self.scene.task(recording, task) else { return };
        let written_ns = self.written_ns.entry(track).or_default();
        let from_ns = span.from_ns.max(*written_ns);
        if from_ns > span.from_ns {
            self.out.exported.overlaps += 1;
        }
        *written_ns = span.to_ns.max(*written_ns);
        if from_ns >= span.to_ns {
            return;
        }
        let host = self.question.view.guests.iter().find(|guest| guest.guest == recording);
        let host = host.map_or(recording, |guest| guest.host);
        self.state(track, host, &StateSpan { from_ns, task: None, ..*span }, None);
    }

    fn cpu(&mut self, cpu: GuestCpu, span: &OccupantSpan) {
        let recording = usize::from(cpu.recording);
        if self.scene.scheduled == Some(recording) {
            return;
        }
        let Some(thread) = span.thread.filter(|thread| *thread != 0) else { return };
        let scene = self.scene;
        let (from_ns, to_ns, category) = (span.from_ns, span.to_ns, "running");
        if let Some(track) = scene.cpu(recording, cpu.cpu.into()) {
            let name = scene.thread_name(recording, thread);
            let args = [("tid", Arg::Number(thread.into()))];
            self.slice(track, &Slice { from_ns, to_ns, name, category, args: &args });
        }
        if let Some(track) = scene.thread(recording, thread) {
            let args = [("cpu", Arg::Number(cpu.cpu.into()))];
            self.slice(track, &Slice { from_ns, to_ns, name: "running", category, args: &args });
        }
    }
}

/// Number of an event's fields that need no allocation.
const INLINE: usize = 12;

/// The values of an event's fields.
type Values<'e> = SmallVec<[Option<Value<'e>>; INLINE]>;

fn values<'e>(event: &RawEvent<'e>) -> Values<'e> {
    let mut values = SmallVec::new();
    for field in event.format.fields() {
        values.push(field.value(event.payload, event.order));
    }
    values
}

fn texts<'e>(values: &Values<'e>) -> SmallVec<[Option<Cow<'e, str>>; INLINE]> {
    let text = |value: &Option<Value<'e>>| match value {
        Some(Value::Text(bytes)) => Some(String::from_utf8_lossy(bytes)),
        _ => None,
    };
    values.iter().map(text).collect()
}

/// The fields with their names; arrays are left out as too long. If no field is a text, `texts` may be empty.
fn args<'a, 'e: 'a>(
    event: &RawEvent<'e>,
    values: &Values<'e>,
    texts: &'a [Option<Cow<'e, str>>],
) -> SmallVec<[(&'a str, Arg<'a>); INLINE]> {
    let arg = |value: Option<Value<'e>>, at: usize| {
        Some(match value? {
            Value::Unsigned(number) | Value::Pointer(number) => Arg::Number(number),
            Value::Signed(number) => Arg::Signed(number),
            Value::Bool(yes) => Arg::Bool(yes),
            Value::Text(_) => Arg::Text(texts.get(at)?.as_deref()?),
            Value::Array(_) => return None,
        })
    };
    let mut args = SmallVec::new();
    for (at, (field, value)) in event.format.fields().iter().zip(values).enumerate() {
        if let Some(arg) = arg(*value, at) {
            args.push((&*field.name, arg));
        }
    }
    args
}

impl<W: TimelineWriter> RawSink for Walk<'_, W> {
    fn event(&mut self, event: &RawEvent<'_>) {
        let (question, scene) = (self.question, self.scene);
        if !question.window.has(event.stamp_ns) {
            return;
        }
        if self.wanted.is_scheduling(event.recording, event.format.id()) {
            self.out.write(|writer| writer.scheduling(event));
        }
        if !self.wanted.is_instant(event.recording, event.format.id()) {
            return;
        }
        let Some(track) = scene.of_event(event.recording, event.cpu, event.thread) else { return };
        let values = values(event);
        let has_texts = values.iter().any(|value| matches!(value, Some(Value::Text(_))));
        let texts = if has_texts { texts(&values) } else { SmallVec::new() };
        let args = args(event, &values, &texts);
        let (stamp_ns, name, category) =
            (event.stamp_ns, event.format.name(), event.format.system());
        self.out.exported.instants += 1;
        self.out.write(|writer| {
            writer.instant(track, &Instant { stamp_ns, name, category, args: &args })
        });
    }

    fn lost(&mut self, recording: usize, cpu: u32, stamp_ns: u64, missed: Missed) {
        let Some(track) = self.scene.cpu(recording, cpu) else { return };
        if missed == Missed::Nothing || !self.question.window.has(stamp_ns) {
            return;
        }
        self.out.exported.losses += 1;
        let count = match missed {
            Missed::Events(count) => vec![("events", Arg::Number(count))],
            _ => Vec::new(),
        };
        let name = "events lost";
        let instant = Instant { stamp_ns, name, category: "loss", args: &count };
        self.out.write(|writer| writer.instant(track, &instant));
    }
}
