//! Compares a boot with the output of `trace-cmd report` for both files, which another program counted (`boot` in
//! the guest's truth file).

use analyses::align::align;
use analyses::boot::{Boot, BootMarks, BootedMachine, Initcall, Phase, PhaseKind, boot};
use analyses::exits::exits;
use analyses::view::View;
use serde_json::Value;
use sources::Recording;

use super::{open, truth};

const HOST: &str = "x86-svm/boot.dat";
const GUEST: &str = "x86-svm/boot.guest.dat";

fn recordings() -> Vec<Recording> {
    let mut recordings = vec![open(HOST), open(GUEST)];
    let guests = align(&recordings, None, &|_| ());
    for guest in &guests {
        guest.apply(&mut recordings[guest.guest]);
    }
    recordings
}

fn found(marks: &BootMarks) -> (Vec<Recording>, Boot) {
    let recordings = recordings();
    let guests = align(&[open(HOST), open(GUEST)], None, &|_| ());
    let boot = boot(View::new(&recordings, &guests), &[], marks, &|_| ());
    (recordings, boot)
}

fn the_machine(boot: &Boot) -> &BootedMachine {
    assert_eq!(boot.machines.len(), 1);
    &boot.machines[0]
}

fn phase<'b>(machine: &'b BootedMachine, kind: PhaseKind, name: &str) -> &'b Phase {
    machine.phases.iter().find(|phase| (phase.kind, &*phase.name) == (kind, name)).unwrap()
}

/// trace-cmd and this program round ticks differently, by at most two nanoseconds.
#[track_caller]
fn about(ns: u64, expected: &Value, what: &str) {
    assert!(ns.abs_diff(expected.as_u64().unwrap()) <= 2, "{what}: {ns} {expected}");
}

#[test]
fn levels_are_those_of_trace_cmd() {
    let (_, boot) = found(&BootMarks::default());
    let machine = the_machine(&boot);
    let truth = &truth(GUEST)["boot"];
    let all_expected = truth["levels"].as_array().unwrap();
    let is_level = |phase: &&Phase| phase.kind == PhaseKind::Level;
    let levels: Vec<&Phase> = machine.phases.iter().filter(is_level).collect();
    let names: Vec<&str> = levels.iter().map(|level| &*level.name).collect();
    assert_eq!(
        names,
        ["console", "early", "pure", "core", "postcore", "arch", "subsys", "fs", "device", "late"]
    );
    for (level, expected) in levels.iter().zip(all_expected) {
        let name = level.name.as_str();
        assert_eq!(name, expected["level"]);
        about(level.from_ns, &expected["from_ns"], name);
        let guest = level.guest.as_ref().unwrap();
        assert_eq!(guest.initcalls, expected["initcalls"], "{name}");
        // Rounding at both ends of each initcall.
        let sum_ns = expected["in_ns"].as_u64().unwrap();
        assert!(guest.initcalls_ns.abs_diff(sum_ns) <= 4 * guest.initcalls, "{name}");
        // The truth has no phase between the first and the second level.
        let rest = (name == "console").then(|| phase(machine, PhaseKind::Kernel, "start_kernel"));
        let host = |phase: &Phase| phase.host.as_ref().unwrap().exits;
        let exits = host(level) + rest.map_or(0, host);
        assert!(
            expected["exits"].is_null() || expected["exits"] == exits,
            "{name}: {exits} {expected}"
        );
    }
}

#[test]
fn init_the_mark_and_the_shutdown_are_those_of_trace_cmd() {
    let (_, boot) = found(&BootMarks::default());
    let machine = the_machine(&boot);
    let truth = &truth(GUEST)["boot"];
    let (program, init_ns) = machine.init.as_ref().unwrap();
    assert_eq!(truth["init"]["program"], *program);
    about(*init_ns, &truth["init"]["at_ns"], "init");
    let (text, mark_ns) = machine.mark.as_ref().unwrap();
    assert_eq!(truth["mark"]["text"], *text);
    about(*mark_ns, &truth["mark"]["at_ns"], "mark");
    let user = phase(machine, PhaseKind::User, "/init").host.as_ref().unwrap();
    assert_eq!(truth["exits_between_init_and_mark"], user.exits);
    let names = ["reboot", "devices", "other CPUs", "syscore", "machine"];
    for (name, expected) in names.iter().zip(truth["steps"].as_array().unwrap()) {
        about(phase(machine, PhaseKind::Shutdown, name).from_ns, &expected["at_ns"], name);
    }
    assert_eq!(machine.phases.last().map(|phase| phase.kind), Some(PhaseKind::After));
}

#[test]
fn initcalls_are_those_of_trace_cmd() {
    let (_, boot) = found(&BootMarks::default());
    let machine = the_machine(&boot);
    let truth = &truth(GUEST)["boot"];
    assert_eq!(truth["initcalls"], machine.initcalls.len());
    assert_eq!((machine.strays, machine.damaged), (0, 0));
    let mut named = 0;
    for expected in truth["slowest"].as_array().unwrap() {
        let from_ns = expected["from_ns"].as_u64().unwrap();
        let matches_start = |initcall: &&Initcall| initcall.from_ns.abs_diff(from_ns) <= 2;
        let initcall = machine.initcalls.iter().find(matches_start).unwrap();
        about(initcall.duration_ns().unwrap(), &expected["duration_ns"], "duration");
        assert_eq!(expected["result"], initcall.result.unwrap());
        assert_eq!(expected["level"].as_str(), initcall.level.as_deref());
        assert_eq!(initcall.is_loaded, expected["level"].is_null());
        // The symbols of modules' functions may belong to other modules by then.
        if !initcall.is_loaded {
            assert_eq!(expected["function"].as_str(), initcall.function.as_deref());
            named += 1;
        }
    }
    assert!(named > 10);
    let initcall_of = |function: &str| {
        let matches_function =
            |initcall: &&Initcall| initcall.function.as_deref() == Some(function);
        machine.initcalls.iter().find(matches_function).unwrap()
    };
    assert_eq!(initcall_of("populate_rootfs").section.as_deref(), Some("rootfs"));
    assert_eq!(initcall_of("pci_apply_final_quirks").section.as_deref(), Some("5s"));
    assert_eq!(initcall_of("con_init").section.as_deref(), Some("con"));
    let without = |initcall: &&Initcall| !initcall.is_loaded && initcall.section.is_none();
    assert_eq!(machine.initcalls.iter().find(without), None);
}

#[test]
fn phases_are_without_gaps_and_their_exits_are_all() {
    let (recordings, boot) = found(&BootMarks::default());
    let machine = the_machine(&boot);
    for (phase, next) in machine.phases.iter().zip(&machine.phases[1..]) {
        assert_eq!(phase.to_ns, next.from_ns, "{} {}", phase.name, next.name);
    }
    let all: u64 = exits(&recordings[0], &[], &|_| ()).rows.iter().map(|row| row.tally.count).sum();
    let host = |value_of: &dyn Fn(&analyses::boot::HostCost) -> u64| -> u64 {
        machine.phases.iter().map(|phase| value_of(phase.host.as_ref().unwrap())).sum()
    };
    assert_eq!((host(&|cost| cost.exits), machine.exits), (all, Some(all)));
    for phase in &machine.phases {
        let cost = phase.host.as_ref().unwrap();
        let sum = |value_of: fn(&analyses::boot::ReasonCost) -> u64| {
            cost.reasons.iter().map(value_of).sum::<u64>()
        };
        assert_eq!(sum(|reason| reason.exits), cost.exits, "{}", phase.name);
        let parts = &cost.parts;
        let of_time =
            [parts.user_ns, parts.user_and_return_ns, parts.off_cpu_ns, parts.halt_poll_ns];
        let known: u64 = of_time.into_iter().flatten().sum();
        let kernel_ns = parts.kernel_ns.unwrap_or(parts.not_split_ns);
        assert_eq!(known + kernel_ns, cost.time_ns, "{}", phase.name);
        assert_eq!(sum(|reason| reason.time_ns), cost.time_ns, "{}", phase.name);
    }
    let guest = machine.phases.iter().filter_map(|phase| phase.guest.as_ref());
    let events: u64 = guest.clone().map(|guest| guest.weight.events).sum();
    let expected: u64 =
        truth(GUEST)["events"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
    assert_eq!(events, expected);
    let sections = guest.flat_map(|guest| &guest.sections).map(|(_, count, _)| count).sum::<u64>();
    let of_table = machine.initcalls.iter().filter(|initcall| initcall.section.is_some()).count();
    assert_eq!(sections, of_table as u64);
}

#[test]
fn marks_end_the_boot_and_begin_the_shutdown() {
    let marks = BootMarks { until: Some("no such text".into()), down: Some("up".into()) };
    let (_, boot) = found(&marks);
    let machine = the_machine(&boot);
    assert_eq!(machine.mark, None);
    let down = phase(machine, PhaseKind::Shutdown, "up");
    about(down.from_ns, &truth(GUEST)["boot"]["mark"]["at_ns"], "mark");
    assert!(machine.phases.iter().all(|phase| phase.kind != PhaseKind::Running));
}

#[test]
fn either_side_alone_gives_its_part() {
    let guest = [open(GUEST)];
    let alone = boot(View::on_own_clocks(&guest), &[], &BootMarks::default(), &|_| ());
    let machine = the_machine(&alone);
    assert!(machine.phases.iter().all(|phase| phase.host.is_none() && phase.guest.is_some()));
    assert_eq!(machine.initcalls.len(), 585);
    // Without hypercalls, a host only knows when its guest ran, and the number of exits.
    let host = [open(HOST)];
    let alone = boot(View::on_own_clocks(&host), &[], &BootMarks::default(), &|_| ());
    let machine = the_machine(&alone);
    assert!(machine.initcalls.is_empty() && machine.init.is_none());
    assert_eq!(machine.phases.len(), 1);
    assert_eq!(machine.exits, Some(24_215));
}
