//! Guests' events in their host's recording: streams of vCPUs, order, losses.

use crate::machinery::Machinery;
use analyses::hypertrace::{
    Carrier, GuestEvent, GuestEventSink, HypertraceFiles, HypertraceSummary, VcpuThread, hypertrace,
};
use hypertrace::collected::{Begin, ClockPair, Entry, Hypercall, VERSION, Words};
use hypertrace::{Kind, MARK_NUMBER, NUMBER, mark_words};
use sources::Collected;

/// Two frames of a guest in the lab, explained in `docs/formats/hypertrace.md`.
const FRAMES: [[u64; 4]; 2] = [
    [0x013c_e850_0000_4700, 0x3c80_1900_0e01_8428, 0x027b_237b_6b9b_734b, 0x4],
    [0xbb5d_bc80_0023_1e01, 0xd181_7b93_2b5b_937b, 0x386d_be40_9663_8989, 0x31e1],
];
/// Time from the first frame's second event to the end of the second frame.
const AGE_NS: u64 = 2_518_319;

#[derive(Default)]
struct Seen(Vec<(u32, u64, GuestEvent)>, Vec<Carrier>);

impl GuestEventSink for Seen {
    fn event(&mut self, from: VcpuThread, event: &GuestEvent, by: &Carrier) {
        self.0.push((from.thread, event.stamp_ns(), event.clone()));
        self.1.push(*by);
    }
}

fn hypercall(host: &mut Machinery, cpu: u32, ns: u64, thread: i32, number: u64, words: [u64; 4]) {
    let [a0, a1, a2, a3] = words;
    let fields = [("nr", number), ("a0", a0), ("a1", a1), ("a2", a2), ("a3", a3)];
    host.event(cpu, ns, thread, "kvm_hypercall", &fields);
}

fn read(host: Machinery) -> (Vec<(u32, u64, GuestEvent)>, HypertraceSummary) {
    let mut seen = Seen::default();
    let summary =
        hypertrace(&[host.recording()], HypertraceFiles::default(), NUMBER, &mut seen, &|_| ());
    (seen.0, summary)
}

#[test]
fn vcpus_have_streams_of_their_own_and_one_order() {
    let mut host = Machinery::new("local");
    // A vCPU's thread migrates to another host CPU.
    hypercall(&mut host, 0, 10_000_000, 100, NUMBER, FRAMES[0]);
    hypercall(&mut host, 1, 10_500_000, 101, NUMBER, FRAMES[0]);
    hypercall(&mut host, 0, 14_000_000, 101, NUMBER, FRAMES[1]);
    hypercall(&mut host, 1, 14_100_000, 100, NUMBER, FRAMES[1]);
    // A hypercall with another number.
    hypercall(&mut host, 1, 14_200_000, 100, 5, [1, 2, 3, 4]);
    let (seen, summary) = read(host);
    let second = |sent: u64| sent - AGE_NS;
    let first = |sent: u64| second(sent) - 692_582;
    let order: Vec<(u32, u64)> = seen.iter().map(|(thread, ns, _)| (*thread, *ns)).collect();
    let expected = [
        (101, first(14_000_000)),
        (100, first(14_100_000)),
        (101, second(14_000_000)),
        (100, second(14_100_000)),
    ];
    assert_eq!(order, expected);
    let of_stream = |at: usize| (summary.streams[at].from.thread, summary.streams[at].events);
    assert_eq!([0, 1].map(of_stream), [(100, 2), (101, 2)]);
    assert_eq!((summary.sum(), summary.late), (hypertrace::Losses::default(), 0));
}

#[test]
fn what_the_host_lost_is_not_guessed() {
    let mut host = Machinery::new("local");
    hypercall(&mut host, 0, 10_000_000, 100, NUMBER, FRAMES[0]);
    host.lose(0);
    hypercall(&mut host, 0, 14_000_000, 100, NUMBER, FRAMES[1]);
    let (seen, summary) = read(host);
    let GuestEvent::Event(event) = &seen[0].2 else { panic!("{seen:?}") };
    assert_eq!(event.running, None);
    let GuestEvent::Event(event) = &seen[1].2 else { panic!("{seen:?}") };
    // The second frame defines the worker, but not task 1.
    assert_eq!(event.running.map(|task| task.pid), Some(17));
    assert!(matches!(event.kind, Kind::Switch { next: None, .. }), "{event:?}");
    assert_eq!(summary.losses[0].uncounted_losses, 1);
}

#[test]
fn marks_are_put_together_across_vcpus() {
    let mut host = Machinery::new("local");
    let text = "a text that two hypercalls carry";
    let pieces = mark_words(7, text);
    hypercall(&mut host, 0, 10_000_000, 100, MARK_NUMBER, pieces[0]);
    hypercall(&mut host, 1, 10_000_900, 101, MARK_NUMBER, pieces[1]);
    let (seen, summary) = read(host);
    let GuestEvent::Mark(mark, None) = &seen[0].2 else { panic!("{seen:?}") };
    assert_eq!((mark.text.as_str(), mark.stamp_ns), (text, 10_000_000));
    assert_eq!(summary.marks_damaged, 0);
}

/// The same hypercalls in a collector's file, on a clock that is 7 us ahead.
fn collected(hypercalls: &[(u64, u32, u64, [u64; 4], u16)]) -> Option<Collected> {
    let begin = Begin { version: VERSION, clock: "local".into(), ..Begin::default() };
    let pair = |mono_ns: u64| {
        let (mono_before_ns, mono_after_ns) = (mono_ns - 10, mono_ns + 10);
        Entry::Pair(ClockPair { mono_before_ns, trace: mono_ns - 7_000, mono_after_ns })
    };
    let mut entries = vec![Entry::Begin(begin), pair(1_000_000), pair(90_000_000)];
    entries.extend(hypercalls.iter().map(|(ns, thread, number, words, lost)| {
        let hypercall = Hypercall {
            exit_mono_ns: ns + 7_000 - 600,
            hypercall_after_ns: 600,
            entry_after_ns: Some(1500),
            number: *number,
            guest_rip: Some(0xffff_8000_0000_1234),
            thread: *thread,
            lost: *lost,
            words: Words::new(words),
            ..Hypercall::default()
        };
        Entry::Hypercall(hypercall)
    }));
    let bytes = entries.iter().flat_map(Entry::to_bytes).collect();
    Some(Collected::of_bytes("host.collected".as_ref(), bytes).unwrap())
}

#[test]
fn the_collector_has_what_events_have_and_what_that_has_cost() {
    let times = [(10_000_000, 100), (10_500_000, 101), (14_000_000, 101), (14_100_000, 100)];
    let mut host = Machinery::new("local");
    let mut all = Vec::new();
    for (at, (ns, thread)) in times.into_iter().enumerate() {
        hypercall(&mut host, 0, ns, thread, NUMBER, FRAMES[at / 2]);
        all.push((ns, thread.cast_unsigned(), NUMBER, FRAMES[at / 2], 0));
    }
    let host = host.recording();
    let (mut by_events, mut by_collector) = (Seen::default(), Seen::default());
    let recordings = [host];
    hypertrace(&recordings, HypertraceFiles::default(), NUMBER, &mut by_events, &|_| ());
    let collected = [collected(&all)];
    let summary =
        hypertrace(&recordings, of_collector(&collected), NUMBER, &mut by_collector, &|_| ());
    assert_eq!(format!("{:?}", by_events.0), format!("{:?}", by_collector.0));
    assert_eq!(by_events.0.len(), 4);
    assert!(by_events.1.iter().all(|by| *by == Carrier::default()));
    let known = Carrier { overhead_ns: Some(1500), guest_rip: Some(0xffff_8000_0000_1234) };
    assert!(by_collector.1.iter().all(|by| *by == known));
    assert_eq!((summary.overheads_ns.count(), summary.untimed), (4, 0));
}

#[test]
fn what_the_collector_lost_is_not_guessed() {
    let all = [(10_000_000, 100, NUMBER, FRAMES[0], 0), (14_000_000, 100, NUMBER, FRAMES[1], 1)];
    let (mut seen, host) = (Seen::default(), Machinery::new("local").recording());
    let collected = [collected(&all)];
    hypertrace(&[host], of_collector(&collected), NUMBER, &mut seen, &|_| ());
    let GuestEvent::Event(event) = &seen.0[0].2 else { panic!("{:?}", seen.0) };
    assert_eq!((event.running, seen.0.len()), (None, 2));
}

/// Only the collectors' files.
fn of_collector(collected: &[Option<Collected>]) -> HypertraceFiles<'_> {
    HypertraceFiles { collected, ..HypertraceFiles::default() }
}
