//! Compares boots and shutdowns: duration and host cost of each phase. A run has each phase once, so only several
//! runs per side show variation.

use sources::Collected;

use super::exits::metric;
use super::question::{
    Estimator, KeyValue, Lost, MeasuredGroup, Metric, Question, Run, RunInput, RunVm, Unit,
};
use super::series::{Series, Sums};
use crate::boot::{BootMarks, BootedMachine, Phase, PhaseKind, boot};
use crate::contents;

/// Names of the groups of all boot phases up to the mark, and of all shutdown phases.
const BOOT: &str = "boot";
const SHUTDOWN: &str = "shutdown";

const COUNT: usize = 0;
const TIME: usize = 1;
const EXITS: usize = 2;
const EXIT_TIME: usize = 3;
const KERNEL: usize = 4;
const USER: usize = 5;
const OFF_CPU: usize = 6;
const EVENTS: usize = 7;

/// The question of `hyperscope diff boot`.
pub(super) const QUESTION: Question = Question {
    name: "boot",
    columns: &["vm", "phase"],
    metrics: &METRICS,
    weight: TIME,
    count: COUNT,
    aligned: true,
    sampled: false,
    measure,
    settle: |_| (),
};

const METRICS: [Metric; 7] = [
    metric("duration_ns", "duration", Unit::Time, Estimator::Per(TIME, COUNT)),
    metric("exits", "exits", Unit::Times, Estimator::Per(EXITS, COUNT)),
    metric("exit_time_ns", "exit_time", Unit::Time, Estimator::Per(EXIT_TIME, COUNT)),
    metric("kernel_ns", "kernel", Unit::Time, Estimator::Per(KERNEL, COUNT)),
    metric("user_ns", "user", Unit::Time, Estimator::Per(USER, COUNT)),
    metric("off_cpu_ns", "off_cpu", Unit::Time, Estimator::Per(OFF_CPU, COUNT)),
    metric("events", "events", Unit::Times, Estimator::Per(EVENTS, COUNT)),
];
/// The bit of the metric of a sum: metrics and sums have the same order.
const fn metric_of(sum: usize) -> u32 {
    1 << (sum - 1)
}

/// Bits of the metrics that need the host's recording, and of the metric that needs the guest's.
const OF_HOST: u32 = metric_of(EXITS)
    | metric_of(EXIT_TIME)
    | metric_of(KERNEL)
    | metric_of(USER)
    | metric_of(OFF_CPU);
const OF_GUEST: u32 = metric_of(EVENTS);

fn measure(input: RunInput<'_>, progress: &(dyn Fn(u64) + Sync)) -> Run {
    let RunInput { view, .. } = input;
    // An unreadable file adds nothing; `boot` reports it.
    let collected: Vec<_> = view
        .recordings
        .iter()
        .map(|recording| Collected::for_recording(recording).unwrap_or_default())
        .collect();
    let found = boot(view, &collected, &BootMarks::default(), progress);
    let mut run = Run::empty();
    for machine in &found.machines {
        let vm = run.vms.len();
        let nameless = || match vm {
            0 => "guest".into(),
            _ => format!("guest {}", vm + 1),
        };
        let name = machine.vm.clone().unwrap_or_else(nameless);
        run.vms.push(RunVm { name, vcpus: machine.vcpus });
        run.groups.extend(groups(machine, vm));
        run.nanoseconds = machine.nanoseconds;
        let first_ns = machine.phases.first().map_or(0, |phase| phase.from_ns);
        let last_ns = machine.phases.last().map_or(0, |phase| phase.to_ns);
        run.span_ns = match run.span_ns {
            (0, 0) => (first_ns, last_ns),
            (from_ns, to_ns) => (from_ns.min(first_ns), to_ns.max(last_ns)),
        };
        let lost = machine.phases.iter().filter_map(|phase| phase.guest.as_ref());
        let events = lost.map(|guest| guest.weight.lost).fold(0, u64::saturating_add);
        run.lost = run.lost.with(Lost { events, places: 0 });
    }
    // If no machine boots, the recordings were not read for losses.
    let read_again = || view.recordings.iter().filter_map(contents::losses).collect::<Vec<_>>();
    let losses = if found.losses.is_empty() { read_again() } else { found.losses };
    run.lost = run.lost.with(Lost::from_losses(&losses));
    run
}

fn groups(machine: &BootedMachine, vm: usize) -> Vec<MeasuredGroup> {
    // Phases with the same name are merged, such as a shutdown step that a mark and the kernel name alike.
    let mut named: Vec<(String, Vec<&Phase>)> = Vec::new();
    for phase in &machine.phases {
        let name = name(phase);
        match named.iter_mut().find(|(known, _)| *known == name) {
            Some((_, phases)) => phases.push(phase),
            None => named.push((name, vec![phase])),
        }
    }
    let mut groups: Vec<MeasuredGroup> =
        named.iter().map(|(name, phases)| group(name, phases, vm)).collect();
    let is_boot = |phase: &&Phase| {
        matches!(
            phase.kind,
            PhaseKind::Before | PhaseKind::Kernel | PhaseKind::Level | PhaseKind::User
        )
    };
    let boot_phases: Vec<&Phase> = machine.phases.iter().filter(is_boot).collect();
    // Without a mark, user space lasts until the end of the recording, which says nothing about the boot.
    if machine.mark.is_some() {
        groups.push(group(BOOT, &boot_phases, vm));
    }
    let is_down = |phase: &&Phase| phase.kind == PhaseKind::Shutdown;
    let down: Vec<&Phase> = machine.phases.iter().filter(is_down).collect();
    if !down.is_empty() {
        groups.push(group(SHUTDOWN, &down, vm));
    }
    groups
}

/// A name that is equal in all runs: texts of marks may differ.
fn name(phase: &Phase) -> String {
    match phase.kind {
        PhaseKind::Running => "after the mark".into(),
        PhaseKind::Shutdown => format!("down: {}", phase.name),
        // Guests choose the names of levels and programs, so reserved names are quoted.
        _ if [BOOT, SHUTDOWN].contains(&phase.name.as_str()) => format!("{:?}", phase.name),
        _ => phase.name.clone(),
    }
}

fn group(name: &str, phases: &[&Phase], vm: usize) -> MeasuredGroup {
    let (mut sums, mut unrecorded) = (Sums::default(), 0);
    let mut add = |at: usize, number: u64| {
        if let Some(sum) = sums.get_mut(at) {
            *sum = sum.saturating_add(number);
        }
    };
    add(COUNT, 1);
    for phase in phases {
        add(TIME, phase.duration_ns());
        match &phase.host {
            Some(cost) => {
                add(EXITS, cost.exits);
                add(EXIT_TIME, cost.working_ns());
                let user_ns = cost.parts.user_ns.or(cost.parts.user_and_return_ns);
                for (at, part_ns) in [
                    (KERNEL, cost.parts.kernel_ns),
                    (USER, user_ns),
                    (OFF_CPU, cost.parts.off_cpu_ns),
                ] {
                    add(at, part_ns.unwrap_or(0));
                    if part_ns.is_none() {
                        unrecorded |= metric_of(at);
                    }
                }
            }
            None => unrecorded |= OF_HOST,
        }
        match &phase.guest {
            Some(guest) => add(EVENTS, guest.weight.events),
            None if phases.len() == 1 => unrecorded |= OF_GUEST,
            None => {}
        }
    }
    let mut series = Series::default();
    let from_ns = phases.first().map_or(0, |phase| phase.from_ns);
    series.add(from_ns, &sums, None);
    let key = vec![KeyValue::Vm(vm), KeyValue::Text(name.to_owned())];
    MeasuredGroup { key, series, whole_index: None, unrecorded }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::HostCost;

    fn phase(kind: PhaseKind, name: &str, (from_ns, to_ns): (u64, u64), exits: u64) -> Phase {
        let host = Some(HostCost { exits, ..HostCost::default() });
        Phase { kind, name: name.into(), from_ns, to_ns, guest: None, host }
    }

    fn sums(groups: &[MeasuredGroup], name: &str) -> Vec<[u64; 3]> {
        let key = KeyValue::Text(name.into());
        let its = groups.iter().filter(|group| group.key.get(1) == Some(&key));
        its.map(|group| [COUNT, TIME, EXITS].map(|sum| group.series.total(sum))).collect()
    }

    #[test]
    fn phases_of_one_name_are_one_group() {
        let machine = BootedMachine {
            mark: Some(("up".into(), 60)),
            phases: vec![
                phase(PhaseKind::Level, "fs", (0, 10), 1),
                phase(PhaseKind::Level, "boot", (10, 30), 2),
                phase(PhaseKind::Level, "fs", (30, 60), 4),
                phase(PhaseKind::Running, "up", (60, 100), 8),
                phase(PhaseKind::Shutdown, "reboot", (100, 150), 16),
                phase(PhaseKind::Shutdown, "devices", (150, 151), 32),
                phase(PhaseKind::Shutdown, "reboot", (151, 160), 64),
            ],
            ..BootedMachine::default()
        };
        let groups = groups(&machine, 0);
        for (name, expected) in [
            ("fs", [1, 40, 5]),
            ("\"boot\"", [1, 20, 2]),
            ("boot", [1, 60, 7]),
            ("after the mark", [1, 40, 8]),
            ("down: reboot", [1, 59, 80]),
            ("down: devices", [1, 1, 32]),
            ("shutdown", [1, 60, 112]),
        ] {
            assert_eq!(sums(&groups, name), [expected], "{name}");
        }
    }
}
