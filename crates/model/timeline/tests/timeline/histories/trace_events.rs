//! Events of several recordings in one order, with their fields, names and losses.

use std::collections::BTreeMap;
use std::path::Path;

use ftrace::eventfmt::EventFormat;
use sources::Recording;
use timeline::reading::each_trace_event;
use timeline::trace_events::{
    EventRequest, Gap, TraceEvent, TraceEventPass, TraceEventSink, WantsTraceEvents,
};

use super::host::Host;

const V: i32 = 100;
const OTHER: i32 = 7;
const SWITCH: u16 = 1;
const EXIT: u16 = 2;

struct Seen {
    wanted: fn(&EventFormat) -> Option<EventRequest>,
    events: Vec<TraceEvent>,
    gaps: Vec<Gap>,
}

impl Seen {
    fn new(wanted: fn(&EventFormat) -> Option<EventRequest>) -> Self {
        Self { wanted, events: Vec::new(), gaps: Vec::new() }
    }
}

impl WantsTraceEvents for Seen {
    fn wanted(&self, _: usize, format: &EventFormat) -> Option<EventRequest> {
        (self.wanted)(format)
    }
}

impl TraceEventSink for Seen {
    fn event(&mut self, event: &TraceEvent) {
        self.events.push(*event);
    }

    fn gap(&mut self, gap: &Gap) {
        self.gaps.push(*gap);
    }
}

fn wanted(format: &EventFormat) -> Option<EventRequest> {
    match format.name() {
        "sched_switch" => Some(EventRequest {
            tag: SWITCH,
            fields: &["prev_pid", "prev_state", "none|next_pid", "no"],
        }),
        "kvm_exit" => Some(EventRequest { tag: EXIT, fields: &["exit_reason"] }),
        _ => None,
    }
}

fn read(recordings: &[Recording]) -> (Seen, TraceEventPass) {
    let mut seen = Seen::new(wanted);
    let pass = each_trace_event(recordings, &mut seen, &|_| ());
    (seen, pass)
}

fn open(host: &Host) -> Recording {
    sources::open_bytes(Path::new("made.dat"), host.file()).unwrap()
}

#[test]
fn events_of_all_cpus_and_recordings_are_in_the_order_of_their_times() {
    let (mut first, mut other) = (Host::x86(), Host::x86());
    first.exit(0, 1_000, V, 7).switch(0, 1_010, V, 1, OTHER).exit(1, 1_005, 101, 8);
    other.switch(3, 1_007, OTHER, 0, V);
    let (seen, pass) = read(&[open(&first), open(&other)]);
    let brief = |event: &TraceEvent| (event.stamp_ns, event.recording, event.cpu, event.thread);
    let order = [(1_000, 0, 0, 100), (1_005, 0, 1, 101), (1_007, 1, 3, 7), (1_010, 0, 0, 100)];
    assert_eq!(seen.events.iter().map(brief).collect::<Vec<_>>(), order);
    assert_eq!(seen.events[1].value(0), Some(8));
    let switch = seen.events[3];
    let values = [0, 1, 2, 3].map(|at| switch.value(at));
    assert_eq!(values, [Some(100), Some(1), Some(7), None]);
    assert_eq!(switch.thread_value(2), Some(7));
    assert_eq!(pass.spans_ns, [Some((1_000, 1_010)), Some((1_007, 1_007))]);
}

#[test]
fn more_fields_than_an_event_has_room_for_come_with_the_tags_that_follow() {
    let mut host = Host::x86();
    host.switch(0, 1_010, V, 1, OTHER).exit(0, 1_020, V, 7);
    let mut seen = Seen::new(|format| {
        let fields = &["none", "none", "none", "none", "none", "prev_pid", "next_pid"];
        (format.name() == "sched_switch").then_some(EventRequest { tag: 5, fields })
    });
    each_trace_event(&[open(&host)], &mut seen, &|_| ());
    let brief = |event: &TraceEvent| (event.tag, event.stamp_ns, [0, 1].map(|at| event.value(at)));
    let expected = [(5, 1_010, [None, None]), (6, 1_010, [Some(100), Some(7)])];
    assert_eq!(seen.events.iter().map(brief).collect::<Vec<_>>(), expected);
}

#[test]
fn losses_stand_between_what_was_before_and_after() {
    let mut host = Host::x86();
    host.shape.events_per_page = 1;
    host.exit(0, 1_000, V, 7).lose(0).exit(0, 3_000, V, 7).exit(1, 500, V, 7);
    let (seen, pass) = read(&[open(&host)]);
    assert_eq!(seen.gaps, [Gap { recording: 0, cpu: 0, from_ns: 1_000, to_ns: 3_000 }]);
    assert_eq!(pass.losses[0].uncounted_losses, 1);
    assert_eq!(seen.events.len(), 3);
}

#[test]
fn what_two_buffers_have_comes_once() {
    let mut host = Host::x86();
    for round in 1..=3 {
        let fields = [("exit_reason", 7), ("isa", 2)];
        host.event_in("", 0, 1_000 * round, V, "kvm_exit", &fields);
        host.event_in("instance", 0, 1_000 * round + 3, V, "kvm_exit", &fields);
        host.event_in("instance", 0, 1_000 * round + 5, OTHER, "kvm_exit", &fields);
    }
    let (seen, _) = read(&[open(&host)]);
    let given: Vec<_> = seen.events.iter().map(|event| (event.stamp_ns, event.thread)).collect();
    let of_round = |round: u64| [(1_000 * round, 100), (1_000 * round + 5, 7)];
    assert_eq!(given, [1, 2, 3].map(of_round).concat());
}

/// Real recordings: as many as trace-cmd counts, none before another, and names that fit.
#[test]
fn real_recordings_are_complete_and_in_order() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fixtures");
    for name in ["x86-svm/host-guest", "arm64/A", "x86-vmx/smp"] {
        let truth = std::fs::read(fixtures.join(format!("{name}.truth.json"))).unwrap();
        let truth: BTreeMap<String, serde_json::Value> = serde_json::from_slice(&truth).unwrap();
        let recording = sources::open(&fixtures.join(format!("{name}.dat"))).unwrap();
        let (seen, pass) = read(&[recording]);
        let count = |tag| seen.events.iter().filter(|event| event.tag == tag).count() as u64;
        for (tag, event) in [(SWITCH, "sched_switch"), (EXIT, "kvm_exit")] {
            assert_eq!(Some(count(tag)), truth["events"][event].as_u64(), "{name} {event}");
        }
        assert!(seen.events.is_sorted_by_key(|event| event.stamp_ns), "{name}");
        assert_eq!(seen.gaps, [], "{name}");
        let switches = seen.events.iter().filter(|event| event.tag == SWITCH);
        for thread in switches.filter_map(|event| event.thread_value(2)) {
            assert!(thread == 0 || pass.names[0].get(thread).is_some(), "{name} {thread}");
        }
    }
}
