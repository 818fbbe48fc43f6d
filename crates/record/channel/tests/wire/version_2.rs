//! Messages as the first release of host and agent sends them, byte by byte: those of other releases have
//! to understand them, and to send what it understands.

use channel::wire::{
    ControlDecoder, EventFilter, GuestHello, Message, Start, Started, Status, encode,
};

fn messages() -> Vec<Message> {
    let start = Start {
        events: vec!["sched:sched_switch".into()],
        filters: vec![EventFilter { event: "irq".into(), filter: "irq == 1".into() }],
        probes: vec!["vfs_read".into()],
        clock: Some("mono".into()),
        status_ms: 1000,
        flush_ms: 999,
        ..Start::default()
    };
    let hello = GuestHello {
        version: 2,
        boot_id: [7; 16],
        uname: "Linux g 6.1".into(),
        host_name: "g".into(),
        agent: "0.1.0".into(),
        big_endian: false,
        long_bytes: 8,
        page_bytes: 4096,
        cpus: 2,
        streams: 1,
    };
    let started =
        Started { events: 1, clock: "mono".into(), cpus: vec![0, 1], ..Started::default() };
    vec![
        Message::HostHello,
        Message::GuestHello(hello),
        Message::Attach(3),
        Message::Start(Box::new(start)),
        Message::Started(started),
        Message::Ended(Status { agent_cpu_ns: 5, wakeups: 6, cpus: Vec::new() }),
        Message::Refused("busy".into()),
    ]
}

const SENT: &str = include_str!("version_2.hex");

#[test]
fn the_first_release_is_understood_and_understands() {
    let lines: Vec<&str> = SENT.lines().collect();
    assert_eq!(lines.len(), messages().len());
    for (message, line) in messages().iter().zip(lines) {
        let bytes = encode(0x0123_4567_89ab_cdef, message).unwrap();
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, line, "{message:?}");
        let mut decoder = ControlDecoder::new();
        decoder.push(&bytes);
        assert_eq!(decoder.next(), Some((0x0123_4567_89ab_cdef, message.clone())));
    }
    assert_eq!(channel::wire::VERSION, 2);
}
