//! Reads recordings that were printed as text; the oracle is the recording itself.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use analyses::contents::contents;
use analyses::exits::{Exits, exits};
use analyses::group::By;
use report::events::{Machine, Style, write_events};
use sources::Recording;
use timeline::event_filter::Filter;
use timeline::reasons::Code;

/// Both kinds of x86, a nested guest, and arm64, whose exits have another form.
const RECORDINGS: [&str; 4] =
    ["x86-vmx/smp.dat", "x86-vmx/nested.dat", "x86-svm/host-guest.dat", "arm64/D.dat"];

pub(crate) fn path_of(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fixtures").join(name)
}

pub(crate) fn exits_of(recording: &Recording) -> Exits {
    exits(recording, &By::DEFAULT, &|_| ())
}

pub(crate) fn read(text: Vec<u8>) -> Recording {
    sources::open_bytes(Path::new("text"), text).unwrap()
}

/// The text of a recording, to the microsecond.
pub(crate) fn printed(recording: &Recording) -> Vec<u8> {
    let machine = Machine { name: "host".to_owned(), level: 0, threads: None };
    let (filter, mut text) = (Filter::default(), Vec::new());
    let recordings = std::slice::from_ref(recording);
    write_events(recordings, &[machine], &filter, Style::Text, &mut text, &|_| ()).unwrap();
    text
}

/// Exits, exits with times, and the sum of times, by VM, level and reason.
fn sums(exits: &Exits) -> BTreeMap<String, (u64, u64, u64)> {
    let row = |row: &analyses::exits::ExitRow| {
        let (group, tally) = (&row.group, &row.tally);
        let time = tally.durations.sum();
        let key = format!("{:?} {:?} {:?} {}", group.vm, group.level, group.reason, row.waiting);
        (key, (tally.count, tally.paired(), time))
    };
    exits.rows.iter().map(row).collect()
}

/// Counts equal those of the recording; times differ by at most `rounding_ns` per exit.
pub(crate) fn compare(name: &str, text: &Exits, recording: &Exits, rounding_ns: u64) {
    let (text, recording) = (sums(text), sums(recording));
    let counts = |by_reason: &BTreeMap<String, (u64, u64, u64)>| -> Vec<(String, u64, u64)> {
        by_reason.iter().map(|(key, sum)| (key.clone(), sum.0, sum.1)).collect()
    };
    assert_eq!(counts(&text), counts(&recording), "{name}");
    for (key, (count, _, time)) in &recording {
        let off = text[key].2.abs_diff(*time);
        assert!(off <= count * rounding_ns, "{name}: {key} is {off} ns off");
    }
}

#[test]
pub(crate) fn exits_of_what_events_prints_are_those_of_the_recording() {
    for name in RECORDINGS {
        let recording = sources::open(&path_of(name)).unwrap();
        let text = read(printed(&recording));
        let (found, expected) = (contents(&text, &|_| ()), contents(&recording, &|_| ()));
        assert_eq!((found.total(), found.damage.count()), (expected.total(), 0), "{name}");
        assert_eq!((text.damage(), text.cpus()), (recording.damage(), recording.cpus()));
        assert_eq!(text.info().resolution_ns, Some(1000));
        let (found, expected) = (exits_of(&text), exits_of(&recording));
        // An exit has two ends, each rounded by half a microsecond.
        compare(name, &found, &expected, 1000);
        assert!(found.rows.iter().all(|row| row.group.code == Some(Code::NotRecorded)), "{name}");
        assert_eq!(found.losses.resolution_ns, Some(1000));
    }
}

#[test]
pub(crate) fn exits_of_what_trace_cmd_prints_are_those_of_the_recording() {
    for name in RECORDINGS {
        let path = path_of(name);
        let report =
            Command::new("trace-cmd").args(["report", "-N", "-t", "-i"]).arg(&path).output();
        let Ok(report) = report else { return testkit::skip!("trace-cmd is not installed") };
        let text = read(report.stdout);
        // No rounding.
        assert_eq!(text.info().resolution_ns, Some(1));
        let recording = sources::open(&path).unwrap();
        assert_eq!(contents(&text, &|_| ()).total(), contents(&recording, &|_| ()).total());
        compare(name, &exits_of(&text), &exits_of(&recording), 0);
    }
}

/// The output of perf script for the exits that `perf kvm stat` counts: fields are pairs, systems are
/// named, and threads may have no name.
#[test]
fn lines_of_perf_script_are_exits() {
    let text = "           :1237  1237 [000]   355.524918688: kvm:kvm_entry: PC: 0x00000000004fcbbc\n\
        \x20          :1237  1237 [000]   355.526279360:  kvm:kvm_exit: IRQ: HSR_EC: 0x0000 (UNKNOWN), PC: 0x4fcbbc\n\
        \x20          :1237  1237 [000]   355.526352784: kvm:kvm_entry: PC: 0x00000000004fcbbc\n\
        CPU 1/KVM 12/1240 [001]   355.6: kvm:kvm_exit: TRAP: HSR_EC: 0x0001 (WFx), PC: 0x4fcbbc\n\
        CPU 1/KVM 12/1240 [001]   355.7: sched:sched_switch: prev_comm=CPU 1/KVM prev_pid=1240 \
        prev_prio=120 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120\n\
        CPU 1/KVM 12/1240 [001]   355.9: kvm:kvm_entry: PC: 0x00000000004fcbbc\n";
    let recording = read(text.as_bytes().to_vec());
    assert_eq!((recording.damage(), recording.comm(1240)), (&[][..], Some("CPU 1/KVM")));
    assert_eq!(recording.comm(1237), None);
    let exits = exits_of(&recording);
    let found = sums(&exits);
    let sum_of = |reason: &str| *found.iter().find(|(key, _)| key.contains(reason)).unwrap().1;
    assert_eq!(sum_of("IRQ"), (1, 1, 73_424));
    assert_eq!(sum_of("WFx"), (1, 1, 300_000_000));
    assert!(exits.rows.iter().any(|row| row.waiting), "a wait is known by its name");
    // The text is as exact as its coarsest time.
    assert_eq!(recording.info().resolution_ns, Some(100_000_000));
}

#[test]
fn losses_and_rubbish_in_a_text_are_reported() {
    let text = "cpus=4\n\
        vmm-7 [002]     1.000010: kvm_exit:             reason HLT rip 0x1 info 0 0\n\
        CPU:2 [LOST 30 EVENTS]\n\
        vmm-7 [002]     1.000090: kvm_entry:             vcpu 0 rip 0x1\n\
        somebody pasted this\n\
        CPU:3 [EVENTS DROPPED]\n";
    let recording = read(text.as_bytes().to_vec());
    assert_eq!(recording.cpus(), 4);
    let damage: Vec<String> = recording.damage().iter().map(ToString::to_string).collect();
    assert_eq!(damage.len(), 1);
    assert!(
        damage[0].contains("line 5") && damage[0].contains("somebody pasted this"),
        "{damage:?}"
    );
    let exits = exits_of(&recording);
    assert_eq!((exits.losses.events_lost, exits.losses.uncounted_losses), (30, 1));
    // The exit spans the loss: it counts, but has no time.
    assert_eq!(sums(&exits).into_values().collect::<Vec<_>>(), [(1, 0, 0)]);
}

#[test]
fn an_event_is_one_with_and_without_its_system() {
    let text = "vmm-7 [002] 1.000010: kvm_exit: reason HLT rip 0x1 info 0 0\n\
        vmm-7 [002] 1.000020: kvm:kvm_entry: vcpu 0 rip 0x1\n\
        vmm-7 [002] 1.000030: kvm:kvm_exit: reason HLT rip 0x1 info 0 0\n\
        vmm-7 [002] 1.000050: kvm_entry: vcpu 0 rip 0x1\n";
    let recording = read(text.as_bytes().to_vec());
    let counted = contents(&recording, &|_| ()).events;
    let expected = [("kvm:kvm_entry".to_owned(), 2), ("kvm:kvm_exit".to_owned(), 2)];
    assert_eq!(counted, expected.into());
    assert_eq!(sums(&exits_of(&recording)).into_values().collect::<Vec<_>>(), [(2, 2, 30_000)]);
}
