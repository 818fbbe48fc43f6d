//! Compares a guest's events by hypercall and in memory with its own ftrace of the same time, on a real recording.

use serde_json::Value;

use crate::tool::{assert_golden, hyperscope, output_of, repository};

const HOST: &str = "fixtures/x86-svm/hypertrace.dat";
const FRAMES: &str = "fixtures/x86-svm/hypertrace.frames";
const GUEST: &str = "fixtures/x86-svm/hypertrace.guest.dat";
/// From a module that reports the delay of each frame's begin after the previous frame.
const LATE_HOST: &str = "fixtures/x86-svm/late-hypercalls.dat";
const LATE_GUEST: &str = "fixtures/x86-svm/late-hypercalls.guest.dat";
/// A session of an Arm host that collected its guest's registers.
const ARM: &str = "fixtures/arm64/hypercalls";
const KINDS: [&str; 5] = [
    "sched:sched_switch",
    "irq:irq_handler_entry",
    "irq:irq_handler_exit",
    "raw_syscalls:sys_enter",
    "raw_syscalls:sys_exit",
];
/// The unit that the module's documentation states.
const UNIT_NS: i64 = 32;

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn sent(files: &[&str]) -> Vec<Value> {
    let run = hyperscope(&[&["hypertrace", "--format", "jsonl"], files].concat());
    assert_eq!(run.code, 0, "{}", run.err);
    lines(&run.out)
}

fn guest_events() -> Vec<Value> {
    recorded_by(GUEST)
}

fn recorded_by(guest: &str) -> Vec<Value> {
    let events = lines(&output_of(&["events", "--format", "jsonl", guest]));
    events.into_iter().filter(|event| KINDS.contains(&event["event"].as_str().unwrap())).collect()
}

fn of_kind<'e>(events: &'e [Value], kind: &str) -> Vec<&'e Value> {
    events.iter().filter(|event| event["event"] == kind).collect()
}

fn stamp(event: &Value) -> i64 {
    event["ts_ns"].as_i64().unwrap()
}

/// Whether all sent fields equal those of ftrace, which also has arguments of system calls and complete names of
/// interrupts.
fn agrees(sent: &Value, original: &Value) -> bool {
    let field = |(name, value): (&String, &Value)| match (name.as_str(), &original["fields"][name])
    {
        ("name", full_name) => full_name.as_str().unwrap().starts_with(value.as_str().unwrap()),
        (_, other) => value == other,
    };
    sent["cpu"] == original["cpu"]
        && sent["pid"] == original["pid"]
        && sent["fields"].as_object().unwrap().iter().all(field)
}

/// The begin of the longest run of equal events; the test fails unless it contains all sent ones.
fn assert_within(sent: &[&Value], originals: &[&Value]) -> usize {
    let same = |begin: usize| {
        sent.iter().zip(&originals[begin..]).take_while(|(a, b)| agrees(a, b)).count()
    };
    let (length, begin) = (0..originals.len()).map(|begin| (same(begin), begin)).max().unwrap();
    assert_eq!(length, sent.len(), "{} is not {}", sent[length], originals[begin + length]);
    begin
}

/// Events by hypercall, and events in memory.
fn parts() -> [Vec<Value>; 2] {
    let by_hypercall = sent(&[HOST]);
    let all = sent(&[HOST, FRAMES]);
    let in_memory = all[by_hypercall.len()..].to_vec();
    let stamps = |events: &[Value]| events.iter().map(stamp).collect::<Vec<_>>();
    assert_eq!(stamps(&by_hypercall), stamps(&all[..by_hypercall.len()]));
    [by_hypercall, in_memory]
}

#[test]
fn a_guest_sent_what_it_recorded_itself_event_for_event() {
    let originals = guest_events();
    for (part, most_ns) in parts().iter().zip([400_000, 10_000]) {
        assert!(part.len() > 700, "{}", part.len());
        assert!(part.iter().map(stamp).is_sorted());
        let mut late_ns = Vec::new();
        for kind in KINDS {
            let (sent, originals) = (of_kind(part, kind), of_kind(&originals, kind));
            assert!(!sent.is_empty(), "no {kind}");
            let begin = assert_within(&sent, &originals);
            late_ns.extend(sent.iter().zip(&originals[begin..]).map(|(a, b)| stamp(a) - stamp(b)));
        }
        late_ns.sort_unstable();
        let (min, median) = (late_ns[0], late_ns[late_ns.len() / 2]);
        assert!(min >= -2 * UNIT_NS && median < most_ns, "{min} {median}");
    }
}

/// The tail that docs/formats/hypertrace.md states: how late the times of events sent by hypercall are, and how
/// many of them report that.
#[test]
fn the_documented_tail_of_late_times_is_the_recordings() {
    let (originals, [by_hypercall, _]) = (guest_events(), parts());
    let mut late = Vec::new();
    for kind in KINDS {
        let (sent, originals) = (of_kind(&by_hypercall, kind), of_kind(&originals, kind));
        let begin = assert_within(&sent, &originals);
        let pairs = sent.iter().zip(&originals[begin..]);
        late.extend(pairs.map(|(a, b)| (stamp(a) - stamp(b), a["at_latest"] == true)));
    }
    late.sort_unstable();
    let beyond: Vec<_> = late.iter().filter(|(late_ns, _)| *late_ns > 200_000).collect();
    let marked = beyond.iter().filter(|(_, at_latest)| *at_latest).count();
    assert_eq!((late.len(), beyond.len(), marked), (951, 71, 1));
    let us = |per_cent: usize| late[late.len() * per_cent / 100].0 / 1000;
    assert_eq!([us(50), us(90), us(99), late[late.len() - 1].0 / 1000], [44, 102, 14_935, 19_297]);
    let docs = std::fs::read_to_string(repository().join("docs/formats/hypertrace.md")).unwrap();
    for figure in ["45 us late in the\nmedian", "71 of 951 (7.5%)", "14.9 ms", "19.3 ms at most"] {
        assert!(docs.contains(figure), "{figure}");
    }
}

/// How late times are for events that the guest recorded as well: as the host stamped their hypercalls, and after
/// correction with the guest's counter.
#[test]
fn events_of_late_hypercalls_have_their_own_times() {
    let (originals, sent) = (recorded_by(LATE_GUEST), sent(&[LATE_HOST]));
    let (mut stamped, mut put_right) = (Vec::new(), Vec::new());
    for kind in KINDS {
        let (sent, originals) = (of_kind(&sent, kind), of_kind(&originals, kind));
        let begin = assert_within(&sent, &originals);
        for (sent, original) in sent.iter().zip(&originals[begin..]) {
            let late_ns = stamp(sent) - stamp(original);
            put_right.push(late_ns);
            stamped.push(late_ns + sent["hypercall_late_ns"].as_i64().unwrap_or(0));
        }
    }
    let figures = |late_ns: &mut Vec<i64>| {
        late_ns.sort_unstable();
        assert!(late_ns[0] > 0, "{}", late_ns[0]);
        let beyond = late_ns.iter().filter(|ns| **ns > 200_000).count();
        let us = |per_cent: usize| late_ns[late_ns.len() * per_cent / 100] / 1000;
        (late_ns.len(), beyond, us(50), us(99))
    };
    assert_eq!(figures(&mut stamped), (1692, 17, 18, 249));
    assert_eq!(figures(&mut put_right), (1692, 2, 18, 43));
    let docs = std::fs::read_to_string(repository().join("docs/formats/hypertrace.md")).unwrap();
    for figure in ["17 of 1,692", "249 us at the 99th", "2 of 1,692", "43 us at the 99th"] {
        assert!(docs.contains(figure), "{figure}");
    }
}

/// From the last probe's first event to the last event before a probe is removed, all kinds are in one order.
#[test]
fn events_of_all_kinds_are_in_the_order_in_which_they_happened() {
    let originals = guest_events();
    for part in parts() {
        let first = part.iter().position(|event| event["event"] == KINDS[3]).unwrap();
        let last = part.iter().rposition(|event| event["event"] == KINDS[0]).unwrap();
        let inner: Vec<&Value> = part[first..last].iter().collect();
        let originals: Vec<&Value> = originals.iter().collect();
        let same_kind = |a: &Value, b: &Value| a["event"] == b["event"] && agrees(a, b);
        let run = |begin: usize| {
            inner.iter().zip(&originals[begin..]).take_while(|(a, b)| same_kind(a, b)).count()
        };
        let longest = (0..originals.len()).map(run).max().unwrap();
        assert!(inner.len() > 700, "{}", inner.len());
        assert_eq!(longest, inner.len());
    }
}

#[test]
fn what_is_printed() {
    let run = hyperscope(&["hypertrace", HOST, FRAMES]);
    let all: Vec<&str> = run.out.lines().collect();
    let some = all.iter().take(20).chain(all.iter().rev().take(20).rev());
    let text = some.map(|line| format!("{line}\n")).collect::<String>() + &run.err;
    assert_golden("x86-svm-hypertrace.txt", &text);
}

/// Events collected from an Arm guest's HVCs: its host's own events lack the words.
#[test]
fn an_arm_guest_sent_what_it_recorded_itself() {
    let sent = sent(&[ARM]);
    let output = hyperscope(&["events", "--format", "jsonl", "-e", "sched:sched_switch", ARM]);
    let originals = lines(&output.out);
    assert_eq!((sent.len(), originals.len()), (1750, 1829));
    let begin =
        assert_within(&sent.iter().collect::<Vec<_>>(), &originals.iter().collect::<Vec<_>>());
    let late_ns =
        sent.iter().zip(&originals[begin..]).map(|(sent, original)| stamp(sent) - stamp(original));
    let mut late_ns: Vec<i64> = late_ns.collect();
    late_ns.sort_unstable();
    // The guest's clock is known to 61.4 us.
    assert!(late_ns[0] > -61_400 && late_ns[late_ns.len() / 2] < 400_000, "{late_ns:?}");
    let run = hyperscope(&["hypertrace", ARM]);
    let some = run.out.lines().take(10).map(|line| format!("{line}\n")).collect::<String>();
    assert_golden("arm64-hypercalls.txt", &(some + &run.err));
}

#[test]
fn an_arm_host_that_collected_nothing_learns_how() {
    let run = hyperscope(&["hypertrace", "fixtures/arm64/D.dat"]);
    assert_eq!(run.code, 1);
    assert!(run.err.contains("record the host with --hypercalls\n"), "{}", run.err);
}

/// The memory of a guest with one CPU and 64 slots, with the frames of a smaller file.
fn memory_with(frames: &[u8]) -> Vec<u8> {
    const RING: usize = (48 << 10) + 4096;
    let word = |at: usize| u64::from_le_bytes(frames[at..at + 8].try_into().unwrap());
    let mut memory = vec![0; 64 << 10];
    let mut put = |at: usize, value: u64| memory[at..at + 8].copy_from_slice(&value.to_le_bytes());
    let header = [u64::from_le_bytes(*b"HSCTRACE"), 1, 16 << 10, 1, 64, 1];
    (0..).zip(header).for_each(|(at, value)| put((48 << 10) + 8 * at, value));
    let mut at = 16;
    while at < frames.len() {
        let (kind, words) = (word(at) & 0xff, usize::try_from(word(at) >> 8 & 0xff).unwrap());
        if kind < 3 {
            let position = word(at + 8);
            let slot = RING + 128 * (1 + usize::try_from(position % 64).unwrap());
            put(slot, 2 * position + 3 - kind);
            (1..words).for_each(|index| put(slot + 8 * index, word(at + 8 + 8 * index)));
            put(RING, position + 2 - kind);
        }
        at += 8 + 8 * words;
    }
    memory
}

/// Frames are read from a dead guest's memory.
#[test]
fn the_memory_of_a_dead_guest_is_read_as_it_is() {
    let frames = std::fs::read(crate::tool::repository().join(FRAMES)).unwrap();
    let memory = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(memory.path(), memory_with(&frames)).unwrap();
    let run = hyperscope(&["hypertrace", memory.path().to_str().unwrap()]);
    assert!(run.err.contains("times are in the guest's own TSC"), "{}", run.err);
    assert_eq!((run.code, run.out), (0, hyperscope(&["hypertrace", FRAMES]).out));
}

/// Frames without their host's recording have the guest's own times; a truncated file gives the part that is
/// there.
#[test]
fn frames_alone_and_in_part() {
    let alone = hyperscope(&["hypertrace", "--format", "jsonl", FRAMES]);
    assert!(alone.err.contains("times are in the guest's own TSC"), "{}", alone.err);
    let [_, in_memory] = parts();
    let alone = lines(&alone.out);
    let fields =
        |events: &[Value]| events.iter().map(|event| event["fields"].clone()).collect::<Vec<_>>();
    assert_eq!(fields(&alone), fields(&in_memory));
    let folder = tempfile::tempdir().unwrap();
    let cut = folder.path().join("guest-cut.hypertrace");
    let bytes = std::fs::read(crate::tool::repository().join(FRAMES)).unwrap();
    std::fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    let run = hyperscope(&["hypertrace", "--format", "jsonl", cut.to_str().unwrap()]);
    let some = lines(&run.out);
    assert!(some.len() > 300 && some.len() < alone.len(), "{}", some.len());
    assert_eq!(fields(&some), fields(&alone)[..some.len()]);
    assert!(some.iter().all(|event| event["machine"] == "cut"));
}
