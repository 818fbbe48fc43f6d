//! Compares skipping by a plan with the field-by-field reader, on random bytes and on damaged or
//! truncated real traces.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::fmt::Write;
use std::path::Path;

use testkit::Random;

use super::*;
use crate::{Events, Layout, Packet, Packets, Taken};

const TYPES: &str = "
typealias integer { size = 8; align = 8; } := u8;
typealias integer { size = 16; align = 8; } := u16;
typealias integer { size = 64; align = 8; map = clock.c.value; } := stamp;
typealias integer { size = 64; align = 64; map = clock.c.value; } := aligned;
typealias integer { size = 27; align = 1; map = clock.c.value; } := u27;
typealias integer { size = 5; align = 1; } := u5;
";

/// Event headers, and whether they have a plan.
const HEADS: [(&str, bool); 9] = [
    (
        "struct { enum : u5 { a = 0 ... 30, b = 31 } id;
          variant <id> { struct { u27 timestamp; } a; struct { u8 id; stamp timestamp; } b; } v; } align(8)",
        true,
    ),
    (
        "struct { enum : u16 { b = 65535, a = 0 ... 65534 } id;
          variant <id> { struct { u16 timestamp; } a; struct { u8 id; stamp timestamp; } b; } v; } align(32)",
        true,
    ),
    ("struct { u8 id; stamp timestamp; }", true),
    ("struct { u5 id; u27 timestamp; } align(8)", true),
    ("struct { u27 timestamp; u5 id; } align(64)", true),
    // Headers without a plan: fields that are not byte-aligned, positions that depend on an
    // alignment, more than eight bytes, none.
    ("struct { u5 id; u27 timestamp; }", false),
    (
        "struct { enum : u5 { a = 0 ... 30, b = 31 } id;
          variant <id> { struct { u27 timestamp; } a; struct { u8 id; aligned timestamp; } b; } v; } align(8)",
        false,
    ),
    ("struct { u5 id; integer { size = 64; align = 1; map = clock.c.value; } timestamp; } align(8)", false),
    ("struct { string s; u8 id; }", false),
];

fn field(numbers: &mut Random, at: u64, text: &mut String) {
    let _ = match numbers.below(9) {
        0 => write!(text, "string _f{at}; "),
        1 => write!(text, "u8 _n{at}; u16 _f{at}[_n{at}]; "),
        2 => write!(text, "integer {{ size = 3; align = 1; }} _n{at}; u8 _f{at}[_n{at}]; "),
        3 => write!(text, "struct {{ u8 a; integer {{ size = 12; align = 4; }} b; }} _f{at}; "),
        4 => write!(text, "u16 _f{at}[{}]; ", numbers.below(5)),
        5 => write!(
            text,
            "enum : u8 {{ a = 0 ... 99, b = 100 ... 200 }} _n{at};
             variant <_n{at}> {{ u16 a; string b; }} _f{at}; "
        ),
        6 => write!(text, "struct {{ u8 n; string s[n]; }} _f{at}; "),
        _ => {
            let (size, align) = (1 + numbers.below(64), 1 << numbers.below(7));
            write!(text, "integer {{ size = {size}; align = {align}; }} _f{at}; ")
        }
    };
}

fn made(numbers: &mut Random) -> (Layout, bool) {
    let order = ["le", "be"][numbers.below(2) as usize];
    let (head, has_plan) = HEADS[numbers.below(HEADS.len() as u64) as usize];
    let mut text = format!(
        "/* CTF 1.8 */ trace {{ major = 1; minor = 8; byte_order = {order}; }};
         clock {{ name = c; freq = 1000000000; }}; {TYPES} stream {{ id = 0; event.header := {head}; "
    );
    if numbers.below(3) == 0 {
        text.push_str("event.context := struct { ");
        field(numbers, 0, &mut text);
        text.push_str("}; ");
    }
    text.push_str("}; ");
    let step = 1 + numbers.below(2);
    for id in 0..32 {
        let _ = write!(
            text,
            "event {{ name = e{id}; id = {}; stream_id = 0; fields := struct {{ ",
            id * step
        );
        for at in 1..1 + numbers.below(5) {
            field(numbers, at, &mut text);
        }
        text.push_str("}; }; ");
    }
    (Layout::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}")), has_plan)
}

/// The same layout without plans.
fn plain(layout: &Layout) -> Layout {
    let mut layout = layout.clone();
    layout.streams.iter_mut().for_each(|stream| stream.skim = Skim::default());
    layout
}

/// Class, clock and position of each event, and the final error; class and clock of each event.
type Seen = (Vec<(usize, u64, u64)>, Option<Short>);

fn one_by_one(layout: &Layout, packet: &Packet, bytes: &[u8]) -> Seen {
    let mut events = Events::new(layout, packet, bytes).unwrap();
    let mut seen = Vec::new();
    while let Some(event) = events.next_event() {
        match event {
            Ok(event) => seen.push((event.index, event.cycles, events.event_at())),
            Err(short) => return (seen, Some(short)),
        }
    }
    (seen, None)
}

/// Checks that a run that is taken as a whole equals its only step.
fn compare_runs(fast: &Layout, slow: &Layout, packet: &Packet, bytes: &[u8]) -> usize {
    let mut runs = 0;
    let (mut fast, mut slow) =
        (Events::new(fast, packet, bytes).unwrap(), Events::new(slow, packet, bytes).unwrap());
    while let (Some(Ok(_)), Some(Ok(_))) = (fast.next_event(), slow.next_event()) {
        let Some(run) = fast.take_run() else { continue };
        let mut parts = Vec::new();
        slow.take(|_, step, value| {
            let (Step::Fixed { bits, .. }, Taken::Fixed(cursor, at)) = (step, value) else {
                panic!("{step:?} is no run");
            };
            parts.push(cursor.bytes_at(at, u64::from(*bits) / 8).unwrap().to_vec());
        })
        .unwrap();
        assert_eq!(parts.concat(), run);
        runs += 1;
    }
    runs
}

/// Compares both readers; returns the number of events.
fn compare(fast: &Layout, slow: &Layout, packet: &Packet, bytes: &[u8]) -> usize {
    let (seen, short) = one_by_one(slow, packet, bytes);
    assert_eq!(one_by_one(fast, packet, bytes), (seen.clone(), short));
    let mut events = Events::new(fast, packet, bytes).unwrap();
    let mut heads = Vec::new();
    let end = events.heads(|class, cycles| heads.push((class, cycles)));
    let expected: Vec<_> = seen.iter().map(|&(class, cycles, _)| (class, cycles)).collect();
    assert_eq!((heads, end.err()), (expected, short));
    assert_eq!(events.event_at(), seen.last().map_or(0, |last| last.2));
    assert!(events.next_event().is_none(), "nothing follows");
    let mut events = Events::new(fast, packet, bytes).unwrap();
    let (mut some, mut end) = (Vec::new(), None);
    while let Some(event) = events.next_of(|class| class % 3 == 1) {
        match event {
            Ok(event) => some.push((event.index, event.cycles, events.event_at())),
            Err(short) => end = Some(short),
        }
    }
    let expected: Vec<_> = seen.iter().copied().filter(|event| event.0 % 3 == 1).collect();
    assert_eq!((some, end), (expected, short));
    seen.len()
}

#[test]
fn plans_give_what_a_walk_gives_on_bytes_left_to_chance() {
    let mut numbers = Random(1);
    let (mut most, mut ended, mut runs) = ([0, 0], [0, 0], 0);
    for round in 0..2_000 {
        let (fast, has_plan) = made(&mut numbers);
        assert_eq!(fast.streams[0].skim.head.is_some(), has_plan);
        let slow = plain(&fast);
        // Small numbers are short lengths and known ids; zeros end strings.
        let below = [2, 32, 256][round % 3];
        let len = numbers.below(400);
        let bytes: Vec<u8> = (0..len).map(|_| numbers.below(below) as u8).collect();
        for content in [len * 8, numbers.below(len * 8 + 1)] {
            let packet = Packet { len, content, begin: Some(7), ..Packet::default() };
            let seen = compare(&fast, &slow, &packet, &bytes);
            most[usize::from(has_plan)] = seen.max(most[usize::from(has_plan)]);
            ended[usize::from(seen > 3)] += 1;
            runs += compare_runs(&fast, &slow, &packet, &bytes);
        }
    }
    assert!(most.iter().all(|&max| max > 30), "events in a packet: {most:?}");
    assert!(runs > 1_000, "events that are one run: {runs}");
    assert!(ended.iter().all(|&ended| ended > 300), "packets of few and of more events: {ended:?}");
}

#[test]
fn plans_give_what_a_walk_gives_on_damaged_traces() {
    let mut numbers = Random(2);
    let mut counts = Vec::new();
    let mut runs = 0;
    for trace in [
        "x86-svm/lttng/kernel",
        "x86-svm/lttng-context/kernel",
        "x86-svm/lttng-lossy/kernel",
        "arm64/D.ctf",
    ] {
        let folder =
            Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../fixtures")).join(trace);
        let fast = Layout::parse(&std::fs::read(folder.join("metadata")).unwrap()).unwrap();
        let slow = plain(&fast);
        let mut count = 0;
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if !path.is_file() || path.ends_with("metadata") {
                continue;
            }
            let file = std::fs::read(&path).unwrap();
            for packet in Packets::new(&fast, &file).map(Result::unwrap) {
                let from = packet.offset as usize;
                let mut bytes = file[from..from + packet.len as usize].to_vec();
                count += compare(&fast, &slow, &packet, &bytes);
                for _ in 0..4 {
                    let at = numbers.below(packet.len) as usize;
                    bytes[at] = numbers.below(256) as u8;
                    let content =
                        packet.events_at + numbers.below(packet.content - packet.events_at + 1);
                    compare(&fast, &slow, &packet, &bytes);
                    runs += compare_runs(&fast, &slow, &packet, &bytes);
                    compare(&fast, &slow, &Packet { content, ..packet.clone() }, &bytes);
                    compare(&fast, &slow, &packet, &bytes[..numbers.below(packet.len) as usize]);
                }
            }
        }
        counts.push(count);
    }
    assert!(counts.iter().all(|&count| count > 1_000), "events of the traces: {counts:?}");
    assert!(runs > 1_000, "events that are one run: {runs}");
}
