//! Streams as they come: in pieces, with the rests of others in them, and damaged.

use std::convert::Infallible;

use channel::wire::{
    CodePiece, CodeRequest, ControlDecoder, CostRound, CpuCounts, CpuEnd, CpuUse, DeviceRange,
    EventCost, EventFilter, GuestHello, GuestView, Message, NamedDevice, PAGE_HEAD_BYTES,
    PageDecoder, PageHead, Piece, SampleEvent, SampleFile, SamplePart, SampleRequest, SamplesEnd,
    Start, Started, Status, TaskUse, Text, TextKind, TracedFunctions, ViewRequest, encode,
};
use proptest::prelude::*;

fn filters() -> Vec<EventFilter> {
    vec![EventFilter { event: "sched:*".into(), filter: "prev_pid != 0".into() }]
}

fn messages() -> Vec<Message> {
    let hello = GuestHello {
        version: channel::wire::VERSION,
        boot_id: *b"0123456789abcdef",
        uname: "Linux l2 6.1".into(),
        host_name: "l2".into(),
        agent: "0.1.0".into(),
        big_endian: true,
        long_bytes: 8,
        page_bytes: 4096,
        cpus: 2,
        streams: 1,
    };
    let start = Start {
        events: vec!["kvm".into(), "sched:sched_switch".into()],
        optional: vec!["irq".into()],
        filters: filters(),
        probes: vec!["do_exit".into()],
        clock: Some("x86-tsc".into()),
        buffer_kib: Some(512),
        kallsyms: true,
        status_ms: 1000,
        flush_ms: 500,
        boot: false,
        tracer: Some(TracedFunctions {
            returns: true,
            functions: vec!["kvm_*".into()],
            except: vec!["*lock*".into(), "*rcu*".into()],
            within: vec!["do_syscall_64".into()],
            depth: 3,
        }),
    };
    let started = Started {
        events: 7,
        clock: "mono".into(),
        clock_line: "local [mono]".into(),
        conversion: Some((1, 2, 3)),
        buffer_kib: 4,
        cpus: vec![0, 3],
        traced: Some(48_111),
    };
    let counts = CpuCounts { cpu: 3, lost: 1, sent_bytes: 4096 };
    let status = Status { agent_cpu_ns: 5, wakeups: 6, cpus: vec![counts] };
    let end =
        CpuEnd { cpu: 1, sent_bytes: 2, stats: "overrun: 0\n".into(), fault: Some("x".into()) };
    vec![
        Message::HostHello,
        Message::GuestHello(hello),
        Message::Attach(3),
        Message::Start(Box::new(start)),
        Message::Start(Box::default()),
        Message::Started(started),
        Message::Started(Started::default()),
        Message::Text(Text { kind: TextKind::Event, last: true, bytes: vec![0; 20_000] }),
        Message::Text(Text { kind: TextKind::Cmdlines, last: false, bytes: Vec::new() }),
        Message::Status(status.clone()),
        Message::Stop,
        Message::CpuEnd(end),
        Message::CpuEnd(CpuEnd::default()),
        Message::Ended(status),
        Message::Refused("there is no event x".into()),
        Message::Alive,
        Message::Filter(filters()),
        Message::Device(vec![
            DeviceRange { ports: false, first: 0xfebf_d000, last: 0xfebf_dfff },
            DeviceRange { ports: true, first: 0xc000, last: 0xc03f },
        ]),
        Message::Device(Vec::new()),
        Message::EventCost(cost(2)),
        Message::Sample(SampleRequest { hz: 397, event: SampleEvent::CpuClock }),
        Message::Samples(SamplePart { file: SampleFile::Clocks, offset: 9, bytes: vec![1, 2] }),
        Message::SamplesEnd(SamplesEnd { samples: 3, lost: Some(1), ..SamplesEnd::default() }),
        Message::KeepCode(CodeRequest { pieces: 7, bytes: 1 << 20 }),
        Message::Code(piece(channel::wire::MAX_CODE_BYTES)),
        Message::Code(piece(0)),
        Message::AskView(ViewRequest { tasks: 20 }),
        Message::View(Box::new(view(
            channel::wire::MAX_VIEW_CPUS as u32,
            channel::wire::MAX_VIEW_TASKS,
        ))),
        Message::View(Box::default()),
        Message::Devices(vec![device(); channel::wire::MAX_NAMED_DEVICES]),
        Message::Devices(vec![NamedDevice::default()]),
    ]
}

fn piece(len: usize) -> CodePiece {
    CodePiece { before: 5, elf_machine: 62, address: 0xffff_ffff_8100_0000, bytes: vec![0x90; len] }
}

/// The most that one says, of names as long as they may be.
fn view(cpus: u32, tasks: usize) -> GuestView {
    let used = CpuUse { user_ns: 1, system_ns: 2, irq_ns: 3, steal_ns: 4, idle_ns: 5, guest_ns: 6 };
    let name = "x".repeat(channel::wire::MAX_TASK_NAME_BYTES);
    let task = TaskUse { pid: 7, name, threads: 8, run_ns: 9, waited_ns: 10 };
    GuestView {
        span_ns: 1_000_000_000,
        agent_cpu_ns: 11,
        all_cpus: used,
        cpu_count: 12,
        cpus: (0..cpus).map(|cpu| (cpu, used)).collect(),
        task_count: 13,
        unread_threads: 14,
        tasks_run_ns: 15,
        tasks_waited_ns: 16,
        tasks: vec![task; tasks],
    }
}

/// As long as it may be.
fn device() -> NamedDevice {
    let name = "x".repeat(channel::wire::MAX_DEVICE_NAME_BYTES);
    let range = DeviceRange { ports: true, first: 1, last: 2 };
    let ranges = vec![range; channel::wire::MAX_RANGES_OF_ONE];
    NamedDevice { called: Some(name.clone()), name, ranges }
}

fn cost(rounds: usize) -> EventCost {
    let round = CostRound { off_ns: 300, on_ns: 1 << 40 };
    EventCost { event: "task:task_rename".into(), repeats: 200, rounds: vec![round; rounds] }
}

/// What a decoder finds in bytes that come in pieces of a length.
fn found(bytes: &[u8], at_once: usize) -> (Vec<(u64, Message)>, u64) {
    let (mut decoder, mut messages) = (ControlDecoder::new(), Vec::new());
    for piece in bytes.chunks(at_once) {
        decoder.push(piece);
        messages.extend(std::iter::from_fn(|| decoder.next()));
    }
    (messages, decoder.skipped())
}

#[test]
fn every_message_comes_back_however_it_is_cut() {
    let sent: Vec<(u64, Message)> = (0..).zip(messages()).collect();
    let bytes: Vec<u8> =
        sent.iter().flat_map(|(session, message)| encode(*session, message).unwrap()).collect();
    for at_once in [1, 7, 24, 25, 4096, bytes.len()] {
        assert_eq!(found(&bytes, at_once), (sent.clone(), 0), "{at_once} at once");
    }
}

#[test]
fn what_is_no_message_is_skipped_and_counted() {
    let stop = encode(1, &Message::Stop).unwrap();
    let mut wrong_sum = stop.clone();
    wrong_sum[9] ^= 1;
    let long = [b"HSCM".as_slice(), &[1, 0, 0, 0], &[0; 8], &[0xff; 8]].concat();
    let cut = &encode(2, &Message::Refused("cut".into())).unwrap()[..26];
    let bytes = [b"HSC", &wrong_sum[..], &long, cut, &stop, b"rest", &stop].concat();
    // What was cut off swallows what comes after it, up to the length it promises.
    let skipped = (bytes.len() - 2 * stop.len()) as u64;
    for at_once in [1, 5, 1000] {
        let (messages, left_out) = found(&bytes, at_once);
        assert_eq!(messages, [(1, Message::Stop), (1, Message::Stop)]);
        assert_eq!(left_out, skipped);
    }
}

#[test]
fn the_rest_of_a_message_is_not_waited_for_for_ever() {
    let long = encode(1, &Message::Refused("x".repeat(1000))).unwrap();
    let hello = encode(2, &Message::HostHello).unwrap();
    let mut decoder = ControlDecoder::new();
    decoder.push(&[&long[..500], &hello].concat());
    assert_eq!(decoder.next(), None);
    decoder.give_up();
    assert_eq!(decoder.next(), Some((2, Message::HostHello)));
    assert_eq!(decoder.skipped(), 500);
    decoder.give_up();
    assert_eq!(decoder.next(), None);
}

#[test]
fn messages_that_are_too_long_are_not_made() {
    let text = |length| Text { kind: TextKind::Kallsyms, last: false, bytes: vec![0; length] };
    assert!(encode(0, &Message::Text(text(channel::wire::MAX_PAYLOAD_BYTES - 2))).is_some());
    assert!(encode(0, &Message::Text(text(channel::wire::MAX_PAYLOAD_BYTES))).is_none());
}

#[test]
fn a_device_has_few_ranges_and_none_ends_before_it_begins() {
    let range = |first, last| DeviceRange { ports: false, first, last };
    let sent = encode(1, &Message::Device(vec![range(1, 2); 100])).unwrap();
    let expected = Message::Device(vec![range(1, 2); channel::wire::MAX_DEVICE_RANGES]);
    assert_eq!(found(&sent, sent.len()).0, [(1, expected)]);
    let wrong = encode(1, &Message::Device(vec![range(2, 1)])).unwrap();
    assert_eq!(found(&wrong, wrong.len()).0, []);
}

#[test]
fn what_an_event_costs_has_few_rounds_and_each_has_events() {
    let sent = encode(1, &Message::EventCost(cost(1000))).unwrap();
    let expected = Message::EventCost(cost(channel::wire::MAX_COST_ROUNDS));
    assert_eq!(found(&sent, sent.len()).0, [(1, expected)]);
    let wrong = encode(1, &Message::EventCost(EventCost { repeats: 0, ..cost(1) })).unwrap();
    assert_eq!(found(&wrong, wrong.len()).0, []);
}

#[test]
fn a_view_has_few_cpus_and_tasks_and_short_names() {
    let (cpus, tasks) = (channel::wire::MAX_VIEW_CPUS, channel::wire::MAX_VIEW_TASKS);
    let full_view = view(cpus as u32, tasks);
    for longer in [view(cpus as u32 + 1, 0), view(0, tasks + 1)] {
        let sent = encode(1, &Message::View(Box::new(longer))).unwrap();
        let [(1, Message::View(received))] = &found(&sent, sent.len()).0[..] else { panic!() };
        assert!(received.cpus.len() <= cpus && received.tasks.len() <= tasks);
    }
    let mut long_name = full_view;
    long_name.tasks[0].name.push('x');
    let sent = encode(1, &Message::View(Box::new(long_name))).unwrap();
    assert_eq!(found(&sent, sent.len()).0, []);
}

#[test]
fn a_piece_of_code_has_a_longest_one() {
    let longer = encode(1, &Message::Code(piece(channel::wire::MAX_CODE_BYTES + 1))).unwrap();
    assert_eq!(found(&longer, longer.len()).0, []);
    let mut cut = encode(1, &Message::Code(piece(0))).unwrap();
    cut.pop();
    cut[16] -= 1;
    let crc = crc32fast::hash(&[&cut[..20], &cut[24..]].concat());
    cut[20..24].copy_from_slice(&crc.to_le_bytes());
    assert_eq!(found(&cut, cut.len()).0, []);
}

/// As a host meets them whose program is older: it continues with the next message.
#[test]
fn messages_of_an_unknown_kind_are_left_out() {
    let (mut unknown, known) = (encode(1, &Message::Alive).unwrap(), Message::Stop);
    unknown[4] = 99;
    let crc = crc32fast::hash(&unknown[..20]);
    unknown[20..24].copy_from_slice(&crc.to_le_bytes());
    let bytes = [unknown.clone(), encode(1, &known).unwrap()].concat();
    assert_eq!(found(&bytes, bytes.len()), (vec![(1, known)], unknown.len() as u64));
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Pages {
    heads: Vec<PageHead>,
    bytes: Vec<u8>,
    skipped: u64,
}

fn pages(bytes: &[u8], at_once: usize) -> Pages {
    let (mut decoder, mut pages) = (PageDecoder::new(7), Pages::default());
    for piece in bytes.chunks(at_once) {
        let Ok(()) = decoder.push(piece, |piece| {
            match piece {
                Piece::Head(head) => pages.heads.push(head),
                Piece::Pages(bytes) => pages.bytes.extend_from_slice(bytes),
                Piece::Skipped(count) => pages.skipped += count,
            }
            Ok::<(), Infallible>(())
        });
    }
    pages
}

fn head(offset: u64, bytes: u32) -> PageHead {
    PageHead { cpu: 3, session: 7, offset, bytes }
}

#[test]
fn pages_come_back_however_they_are_cut() {
    let (first, second, last) = (head(0, 8192), head(8192, 4096), head(12_288, 0));
    let content: Vec<u8> = (0..12_288_u32).map(|at| (at % 251) as u8).collect();
    let stream = [
        b"HSPGrest of another".as_slice(),
        // The last that somebody sent who was killed then.
        &PageHead { session: 6, ..first }.encode(),
        b"its page",
        &first.encode(),
        &content[..8192],
        &second.encode(),
        &content[8192..],
        &last.encode(),
    ]
    .concat();
    for at_once in [1, 31, 32, 33, 5000, stream.len()] {
        let expected = Pages {
            heads: vec![first, second, last],
            bytes: content.clone(),
            skipped: 19 + 32 + 8,
        };
        assert_eq!(pages(&stream, at_once), expected, "{at_once} at once");
    }
}

#[test]
fn heads_of_absurd_length_are_none() {
    assert!(PageHead::decode(&head(0, channel::wire::MAX_PAGES_BYTES).encode()).is_some());
    assert!(PageHead::decode(&head(0, channel::wire::MAX_PAGES_BYTES + 1).encode()).is_none());
    let mut flipped = head(0, 4096).encode();
    flipped[4] ^= 1;
    assert!(PageHead::decode(&flipped).is_none());
}

proptest! {
    /// A guest may send anything; whatever comes, the next message is found after it.
    #[test]
    fn garbage_hides_no_message(garbage: Vec<u8>, at_once in 1_usize..100) {
        let message = encode(9, &Message::Alive).unwrap();
        // Garbage may end in what looks like the head of a longer message.
        let padding = vec![0; channel::wire::MAX_PAYLOAD_BYTES + 24];
        let (messages, _) = found(&[&garbage[..], &padding, &message].concat(), at_once);
        prop_assert_eq!(messages.last(), Some(&(9, Message::Alive)));
    }

    #[test]
    fn every_byte_of_a_page_stream_is_accounted_for(
        bytes in proptest::collection::vec(prop_oneof![Just(b'H'), Just(b'S'), any::<u8>()], 0..200),
        at_once in 1_usize..50,
    ) {
        let stream = [&bytes[..], &head(5, 0).encode()].concat();
        let found = pages(&stream, at_once);
        let heads = found.heads.len() * PAGE_HEAD_BYTES;
        prop_assert_eq!(found.heads.last(), Some(&head(5, 0)));
        prop_assert_eq!(heads as u64 + found.bytes.len() as u64 + found.skipped, stream.len() as u64);
    }
}
