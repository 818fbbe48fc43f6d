//! States of vCPUs over time: they have no gaps, and add up to the exits report.

use std::collections::BTreeMap;

use analyses::align::align;
use analyses::exits::exits;
use analyses::group::By;
use analyses::states::{
    GuestCpu, OccupantSpan, StateSink, StateSpan, States, VcpuRef, VcpuState, states,
    states_by_thread,
};
use analyses::view::View;
use sources::Recording;

use super::{flat, naive_guests, open};

/// Hosts with their guests, and the number of guest changes outside of windows. In host-guest, the host's clock
/// stood still during these changes.
const PAIRS: [([&str; 2], u64); 3] = [
    (["arm64/A.dat", "arm64/A.guest.dat"], 0),
    (["x86-svm/host-guest.dat", "x86-svm/host-guest.guest.dat"], 7),
    (["x86-svm/tsc.dat", "x86-svm/tsc.guest.dat"], 0),
];

/// Stores all spans.
#[derive(Default)]
pub(crate) struct Kept {
    pub(crate) vcpus: BTreeMap<VcpuRef, Vec<StateSpan>>,
    pub(crate) tasks: BTreeMap<(GuestCpu, u32), Vec<StateSpan>>,
    pub(crate) cpus: BTreeMap<GuestCpu, Vec<OccupantSpan>>,
}

impl StateSink for Kept {
    fn vcpu(&mut self, vcpu: VcpuRef, span: &StateSpan) {
        self.vcpus.entry(vcpu).or_default().push(*span);
    }

    fn task(&mut self, guest: GuestCpu, task: u32, span: &StateSpan) {
        self.tasks.entry((guest, task)).or_default().push(*span);
    }

    fn cpu(&mut self, cpu: GuestCpu, span: &OccupantSpan) {
        self.cpus.entry(cpu).or_default().push(*span);
    }
}

/// The states in recordings, with aligned guests.
pub(crate) fn aligned_states(names: &[&str]) -> (Vec<Recording>, Kept, States) {
    let mut recordings: Vec<Recording> = names.iter().map(|name| open(name)).collect();
    let guests = align(&recordings, None, &|_| ());
    for guest in &guests {
        guest.apply(&mut recordings[guest.guest]);
    }
    let mut all_spans = Kept::default();
    let states = states(View::new(&recordings, &guests), &mut all_spans, &|_| ());
    (recordings, all_spans, states)
}

/// Spans by thread and first time of their vCPU, because the order of vCPU indexes may differ.
fn of_vcpus(all_spans: &Kept, states: &States) -> BTreeMap<(u32, u64), Vec<StateSpan>> {
    let vcpus = states.vcpus[0].iter().zip(0..);
    let spans_of = |(info, index): (&timeline::VcpuInfo, u32)| {
        let spans = all_spans.vcpus.get(&VcpuRef { recording: 0, index }).cloned();
        ((info.thread, info.first_ns), spans.unwrap_or_default())
    };
    vcpus.map(spans_of).collect()
}

#[test]
fn thread_by_thread_all_is_as_in_the_order_of_all_cpus() {
    let mut checked = 0;
    for name in super::ALL {
        let recordings = [open(name)];
        let (mut merged, mut by_thread) = (Kept::default(), Kept::default());
        let in_order = states(View::on_own_clocks(&recordings), &mut merged, &|_| ());
        let found = states_by_thread(View::on_own_clocks(&recordings), &mut by_thread, &|_| ());
        assert_eq!(of_vcpus(&by_thread, &found), of_vcpus(&merged, &in_order), "{name}");
        assert_eq!(by_thread.cpus, merged.cpus, "{name}");
        let rest = |states: &States| {
            let pass = &states.pass;
            format!(
                "{:?} {:?} {:?} {:?}",
                states.recorded, pass.losses, pass.spans_ns, pass.event_ids
            )
        };
        assert_eq!(rest(&found), rest(&in_order), "{name}");
        for thread in merged.cpus.values().flatten().filter_map(|span| span.thread) {
            let name_of = |states: &States| states.pass.names[0].get(thread).map(str::to_owned);
            assert_eq!(name_of(&found), name_of(&in_order), "{name}: {thread}");
        }
        checked += merged.vcpus.len();
    }
    assert!(checked > 15, "{checked}");
}

fn sum(spans: &[StateSpan], counts: impl Fn(&StateSpan) -> bool) -> u64 {
    spans.iter().filter(|span| counts(span)).map(StateSpan::duration_ns).sum()
}

/// Spans cover the time from the vCPU's first event to its last.
fn partitions(recordings: &[Recording], all_spans: &Kept, states: &States) {
    for (at, recording) in recordings.iter().enumerate() {
        let all = flat::events(recording);
        let threads = flat::by_vcpu_thread(&all);
        for (index, info) in states.vcpus[at].iter().enumerate() {
            let vcpu = VcpuRef { recording: at as u16, index: index as u32 };
            let Some(spans) = all_spans.vcpus.get(&vcpu) else { continue };
            for pair in spans.windows(2) {
                assert_eq!(pair[0].to_ns, pair[1].from_ns, "no gap, no overlap");
            }
            assert!(spans.iter().all(|span| span.from_ns < span.to_ns), "no empty span");
            let (thread, events) = (u64::from(info.thread), &threads[&u64::from(info.thread)]);
            let is_edge = |event: &&&flat::Event<'_>| {
                let edge = event.ran() == thread && (event.is("kvm_exit") || event.is("kvm_entry"));
                edge || event.leaves(thread) || event.resumes(thread) || event.wakes(thread)
            };
            let end = events.iter().rfind(is_edge).unwrap().ns..=events.last().unwrap().ns;
            let all_on_thread =
                states.vcpus[at].iter().filter(|candidate| candidate.thread == info.thread);
            if all_on_thread.count() == 1 {
                assert_eq!(spans.first().map(|span| span.from_ns), Some(info.first_ns));
                assert!(end.contains(&spans.last().unwrap().to_ns), "up to the last event");
            }
        }
    }
}

/// Sums of states equal the parts of exits.
fn adds_up_to_exits(name: &str, recording: &Recording, all_spans: &Kept, states: &States) {
    let report = exits(&open(name), &[By::Code], &|_| ());
    let spans: Vec<StateSpan> = all_spans.vcpus.values().flatten().copied().collect();
    for row in &report.rows {
        let code = row.group.code.as_ref().unwrap().to_string();
        let of_it = |span: &StateSpan, states: &[VcpuState]| {
            let pair = |code: u64| format!("{}:{}", code >> 32, code as u32);
            let is_of_code = span.exit.is_some_and(|exit| {
                exit.paired && (exit.code.to_string() == code || pair(exit.code) == code)
            });
            is_of_code && states.contains(&span.state)
        };
        let total = |states: &[VcpuState]| sum(&spans, |span| of_it(span, states));
        let parts = &row.tally.parts;
        let halted_ns = total(&[VcpuState::Halted]);
        // Without switches, waiting exits count as halted, and the rest is not split.
        let kernel_ns = if report.recorded.is_split() {
            total(&[VcpuState::ExitKernel])
        } else if !report.recorded.off_cpu && row.waiting {
            halted_ns
        } else {
            total(&[VcpuState::NotSplit])
        };
        let blocked_ns = total(&[VcpuState::Blocked]) + halted_ns;
        let found = [
            kernel_ns,
            total(&[VcpuState::ExitUser]),
            total(&[VcpuState::Waiting, VcpuState::Preempted]),
            if report.recorded.off_cpu { blocked_ns } else { 0 },
            total(&[VcpuState::HaltPoll]),
        ];
        let expected = [
            parts.kernel_ns,
            parts.user_ns,
            parts.runnable_ns,
            parts.blocked_ns,
            parts.halt_poll_ns,
        ];
        assert_eq!(found, expected, "{name}: exits of {code}");
    }
    let (mut guest_ns, mut before_ns) = (0, 0);
    let all = flat::events(recording);
    let threads = flat::by_vcpu_thread(&all);
    for (vcpu, spans) in all_spans.vcpus.iter().filter(|(vcpu, _)| vcpu.recording == 0) {
        let thread = u64::from(states.vcpus[0][vcpu.index as usize].thread);
        let edge = |event: &&&flat::Event<'_>| event.is("kvm_entry") || event.is("kvm_exit");
        let last =
            threads[&thread].iter().filter(|event| event.ran() == thread).rfind(edge).unwrap();
        // Time after the last entry belongs to no exit.
        let account_ns = if last.is("kvm_entry") { last.ns } else { u64::MAX };
        let end = spans.partition_point(|span| span.to_ns <= account_ns);
        let seen = &spans[..end];
        guest_ns += sum(seen, |span| span.state.is_guest());
        before_ns += sum(seen, |span| {
            let known = !span.state.is_guest() && span.state != VcpuState::Unknown;
            known && span.exit.is_none()
        });
    }
    let total = |value_of: fn(&analyses::tally::Tally) -> u64| -> u64 {
        report.rows.iter().map(|row| value_of(&row.tally)).sum()
    };
    assert_eq!(guest_ns, total(|tally| tally.guest_ns), "{name}: time in the guest");
    assert_eq!(before_ns, total(|tally| tally.before_exit_ns), "{name}: before kvm_exit");
}

fn check(names: &[&str]) -> (Vec<Recording>, Kept, States) {
    let (recordings, all_spans, states) = aligned_states(names);
    partitions(&recordings, &all_spans, &states);
    adds_up_to_exits(names[0], &recordings[0], &all_spans, &states);
    (recordings, all_spans, states)
}

#[test]
fn states_of_hosts_add_up_to_their_exits() {
    for name in super::ALL {
        if !name.contains("guest.dat") {
            check(&[name]);
        }
    }
}

#[test]
fn states_with_guests_add_up_to_the_same() {
    for (names, outside) in PAIRS {
        let (_, _, states) = check(&names);
        let [(1, placed)] = states.placed.as_slice() else { panic!("{:?}", states.placed) };
        assert!(placed.changes > 2000, "{placed:?}");
        assert_eq!(placed.outside, outside, "{placed:?}");
    }
}

/// Activity of each guest thread while its vCPU ran, compared with a second implementation.
#[test]
fn guests_did_what_looking_back_shows() {
    for (names, outside) in PAIRS {
        if outside > 0 {
            continue;
        }
        let (recordings, all_spans, _) = aligned_states(&names);
        let rows = align(&recordings, None, &|_| ());
        let rows = rows[0].result().unwrap().rows.clone();
        let (host, guest) = (flat::events(&recordings[0]), flat::events(&recordings[1]));
        let end_ns = guest.last().unwrap().ns;
        let threads = flat::by_vcpu_thread(&host);
        for (thread, events) in &threads {
            let cpu = rows.iter().find(|row| u64::from(row.thread) == *thread).unwrap().guest_cpu;
            let on_cpu: Vec<_> = guest.iter().filter(|event| event.cpu == cpu).collect();
            let expected = naive_guests::ran(*thread, events, &on_cpu, end_ns);
            let mut found = naive_guests::Ran::new();
            for ((guest, task), spans) in &all_spans.tasks {
                for span in spans.iter().filter(|_| u32::from(guest.cpu) == cpu) {
                    let what = match span.state {
                        VcpuState::GuestIrq => "irq",
                        VcpuState::GuestIdle => "idle",
                        VcpuState::Guest => "some",
                        _ => continue,
                    };
                    *found.entry((u64::from(*task), what)).or_default() += span.duration_ns();
                }
            }
            assert!(
                expected.len() > 20 && expected == found,
                "{names:?} {thread}: {expected:?}\n{found:?}"
            );
        }
    }
}
