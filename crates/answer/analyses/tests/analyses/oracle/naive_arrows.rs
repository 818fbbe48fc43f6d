//! Compares arrows of the timeline with the events: each wake-up happened, and both lanes show its ends.

use std::collections::HashMap;

use analyses::align::align;
use analyses::exits::exits;
use analyses::group::By;
use analyses::lanes::{Arrow, Arrows, LaneKind, LaneMachine, LaneRoom};
use analyses::over_time::{KnownOfAll, OverTime, PageRoom, over_time};
use analyses::path::{Actor, HandoverKind};
use analyses::view::View;
use sources::Recording;

use super::flat::events;
use super::open;

fn of_page(recordings: &mut [Recording], arrow_bytes: usize) -> OverTime {
    let guests = match recordings.len() {
        1 => Vec::new(),
        _ => align(recordings, None, &|_| ()),
    };
    guests.iter().for_each(|guest| guest.apply(&mut recordings[guest.guest]));
    let vms: Vec<_> =
        recordings.iter().map(|recording| exits(recording, &By::DEFAULT, &|_| ()).vms).collect();
    let machine = |(at, vms): (usize, &Vec<timeline::Vm>)| {
        let guest = guests.iter().find(|guest| guest.guest == at);
        LaneMachine {
            name: guest.map_or("host", |guest| guest.vm.as_str()).to_owned(),
            is_guest: guest.is_some(),
            vcpu_threads: vms.iter().flat_map(|vm| &vm.vcpus).map(|vcpu| vcpu.thread).collect(),
        }
    };
    let machines: Vec<LaneMachine> = vms.iter().enumerate().map(machine).collect();
    let processes = vec![HashMap::new(); recordings.len()];
    let known = KnownOfAll { samples: &[], vms: &vms, processes: &processes, machines: &machines };
    let lanes = LaneRoom { spans: 1 << 20, bytes: 1 << 26 };
    over_time(
        View::new(recordings, &guests),
        known,
        PageRoom { lanes, code_bytes: 1 << 20, arrow_bytes, requests: 0 },
        &|_| (),
    )
}

const ROOM: usize = 1 << 24;

fn of_kind(arrows: &Arrows, kind: HandoverKind) -> impl Iterator<Item = &Arrow> {
    arrows.list.iter().filter(move |arrow| arrow.kind == kind)
}

const RECORDINGS: &[&[&str]] = &[
    &["x86-svm/host-guest.dat", "x86-svm/host-guest.guest.dat"],
    &["arm64/A.dat", "arm64/A.guest.dat"],
    &["arm64/B-vhost-on.dat"],
    &["x86-vmx/smp.dat"],
];

/// Both ends of an arrow are within spans of lanes, and the first is before the second.
#[test]
fn arrows_lie_between_spans() {
    for names in RECORDINGS {
        let mut recordings: Vec<Recording> = names.iter().map(|name| open(name)).collect();
        let OverTime { lanes, arrows, paths, .. } = of_page(&mut recordings, ROOM);
        assert!(arrows.list.len() > 100, "{names:?}: {}", arrows.list.len());
        assert_eq!((arrows.left_out, arrows.left_out_below_ns), (0, 0), "{names:?}");
        assert!(arrows.list.is_sorted_by_key(|arrow| arrow.to_ns), "{names:?}");
        let spans: Vec<Vec<(u64, u64)>> = lanes
            .lanes()
            .iter()
            .map(|lane| lane.items().map(|item| (item.from_ns, item.to_ns())).collect())
            .collect();
        let is_within = |lane: u32, ns: u64| {
            let spans = &spans[lane as usize];
            let next = spans.partition_point(|(from_ns, _)| *from_ns <= ns);
            spans[next.saturating_sub(2)..next]
                .iter()
                .any(|(from_ns, to_ns)| (*from_ns..=*to_ns).contains(&ns))
        };
        for arrow in &arrows.list {
            assert!(arrow.from_ns <= arrow.to_ns, "{names:?}: {arrow:?}");
            // A CPU is idle between its spans, where interrupts can hit it as well.
            let is_cpu = lanes.lanes()[arrow.from_lane as usize].kind == LaneKind::Cpu;
            assert!(is_cpu || is_within(arrow.from_lane, arrow.from_ns), "{names:?}: {arrow:?}");
            assert!(is_within(arrow.to_lane, arrow.to_ns), "{names:?}: {arrow:?}");
        }
        // Steps of requests are in lanes, too: all steps of vCPUs.
        for step in
            paths.paths.iter().flat_map(|path| &path.examples).flat_map(|example| &example.steps)
        {
            let lane = arrows.places.lane(step.place, step.on);
            assert!(lane.is_some() || step.on != Actor::Vcpu, "{names:?}: {step:?}");
            assert!(lane.is_none_or(|lane| (lane as usize) < spans.len()), "{names:?}: {step:?}");
        }
    }
}

/// Each arrow of a host starts with an event of its kind, and ends with the event that this one causes.
#[test]
fn arrows_have_happened() {
    for name in ["x86-svm/host-guest.dat", "arm64/B-vhost-on.dat", "x86-vmx/smp.dat"] {
        let recording = open(name);
        let all = events(&recording);
        let at = |ns: u64| {
            let from = all.partition_point(|event| event.ns < ns);
            all[from..].iter().take_while(move |event| event.ns == ns)
        };
        let OverTime { arrows, .. } = of_page(&mut [open(name)], ROOM);
        for arrow in of_kind(&arrows, HandoverKind::Wake) {
            let woken = at(arrow.from_ns)
                .filter(|event| event.is("sched_waking") || event.is("sched_wakeup"));
            let mut woken = woken.filter_map(|event| event.get("pid"));
            let ran = |thread: u64| {
                at(arrow.to_ns)
                    .any(|event| event.is("sched_switch") && event.get("next_pid") == Some(thread))
            };
            assert!(woken.any(ran), "{name}: {arrow:?}");
        }
        for arrow in of_kind(&arrows, HandoverKind::Inject) {
            assert!(at(arrow.to_ns).any(|event| event.is("kvm_entry")), "{name}: {arrow:?}");
        }
        // Each wake-up that is followed by a switch to the thread has an arrow, unless the thread switches out in
        // between.
        let mut woken = HashMap::new();
        let mut expected = 0;
        for event in &all {
            match event.format.name() {
                "sched_waking" if event.get("pid") != Some(event.ran()) => {
                    woken.entry(event.get("pid")).or_insert(event.ns);
                }
                "sched_switch" => {
                    woken.remove(&event.get("prev_pid"));
                    expected += u64::from(woken.remove(&event.get("next_pid")).is_some());
                }
                _ => (),
            }
        }
        let found = of_kind(&arrows, HandoverKind::Wake).count() as u64 + arrows.without_lane;
        assert!(found >= expected, "{name}: {found} of {expected}");
    }
}

/// Beyond the limit, the longest arrows are kept, and the others are counted.
#[test]
fn the_shortest_arrows_are_left_out() {
    let name = "x86-svm/host-guest.dat";
    let all = of_page(&mut [open(name)], ROOM).arrows;
    let some = of_page(&mut [open(name)], 8 << 10).arrows;
    let count = |arrows: &Arrows| arrows.list.len() as u64 + arrows.left_out + arrows.without_lane;
    assert_eq!(count(&all), count(&some));
    assert!(some.left_out > 0 && some.list.len() < all.list.len());
    let is_long = |arrow: &&Arrow| arrow.to_ns - arrow.from_ns >= some.left_out_below_ns;
    let long: Vec<&Arrow> = all.list.iter().filter(is_long).collect();
    assert!(long == some.list.iter().collect::<Vec<_>>());
}
