//! Guests' events out of their host's recording: streams of vCPUs, their order, their losses.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

#[path = "../made_up/machinery.rs"]
mod machinery;

use analyses::{HypertraceSummary, Told, ToldSink, VcpuThread, hypertrace};
use hypertrace::{Kind, MARK_NUMBER, NUMBER, mark_words};
use machinery::Machinery;

/// Two frames of a guest in the lab, described in `docs/formats/hypertrace.md`.
const FRAMES: [[u64; 4]; 2] = [
    [0x013c_e850_0000_4700, 0x3c80_1900_0e01_8428, 0x027b_237b_6b9b_734b, 0x4],
    [0xbb5d_bc80_0023_1e01, 0xd181_7b93_2b5b_937b, 0x386d_be40_9663_8989, 0x31e1],
];
/// From its second event to the second frame's end.
const AGE_NS: u64 = 2_518_319;

#[derive(Default)]
struct Seen(Vec<(u32, u64, Told)>);

impl ToldSink for Seen {
    fn told(&mut self, from: VcpuThread, told: &Told) {
        self.0.push((from.thread, told.stamp_ns(), told.clone()));
    }
}

fn hypercall(host: &mut Machinery, cpu: u32, ns: u64, thread: i32, number: u64, words: [u64; 4]) {
    let [a0, a1, a2, a3] = words;
    let fields = [("nr", number), ("a0", a0), ("a1", a1), ("a2", a2), ("a3", a3)];
    host.event(cpu, ns, thread, "kvm_hypercall", &fields);
}

fn read(host: Machinery) -> (Vec<(u32, u64, Told)>, HypertraceSummary) {
    let mut seen = Seen::default();
    let summary = hypertrace(&[host.recording()], &[], NUMBER, &mut seen, &|_| ());
    (seen.0, summary)
}

#[test]
fn vcpus_have_streams_of_their_own_and_one_order() {
    let mut host = Machinery::new("local");
    // A vCPU's thread moves from one CPU of the host to another.
    hypercall(&mut host, 0, 10_000_000, 100, NUMBER, FRAMES[0]);
    hypercall(&mut host, 1, 10_500_000, 101, NUMBER, FRAMES[0]);
    hypercall(&mut host, 0, 14_000_000, 101, NUMBER, FRAMES[1]);
    hypercall(&mut host, 1, 14_100_000, 100, NUMBER, FRAMES[1]);
    // Somebody else's.
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
    let Told::Event(event) = &seen[0].2 else { panic!("{seen:?}") };
    assert_eq!(event.running, None);
    let Told::Event(event) = &seen[1].2 else { panic!("{seen:?}") };
    // The second frame says who the worker is, and not who task 1 is.
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
    let Told::Mark(mark, None) = &seen[0].2 else { panic!("{seen:?}") };
    assert_eq!((mark.text.as_str(), mark.stamp_ns), (text, 10_000_000));
    assert_eq!(summary.marks_damaged, 0);
}
