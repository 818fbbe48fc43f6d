//! A stream of trace-cmd messages, as from an agent or a host.

use channel::wire::trace_cmd::{MAX_BYTES, Message, Request, Response, TimeSync, kvm, ptp};
use channel::wire::trace_cmd::{decode, encode, read};

/// Reads messages in order, up to the first invalid one.
pub fn run(bytes: &[u8]) {
    let mut rest = bytes;
    loop {
        let by_stream = read(&mut &*rest);
        match decode(rest) {
            Ok(Some((message, length))) => {
                assert!((12..=MAX_BYTES).contains(&length) && length <= rest.len());
                assert_eq!(by_stream.ok().as_ref(), Some(&message));
                check(&message, length);
                rest = rest.get(length..).unwrap_or_default();
            }
            Ok(None) => return assert!(by_stream.is_err(), "a message that is not there was read"),
            Err(error) => {
                assert!(by_stream.is_err() && !error.to_string().is_empty());
                return;
            }
        }
    }
}

/// A message is at most as large as its bytes, and encodes to the same bytes. The encoding can be
/// longer: protocol names get a NUL, and text that is not valid UTF-8 grows.
fn check(message: &Message, length: usize) {
    if let Ok(again) = encode(message) {
        assert_eq!(decode(&again), Ok(Some((message.clone(), again.len()))));
    }
    match message {
        Message::Request(request) | Message::Proxy { request, .. } => bounded(request, length),
        Message::Response(Response { ports, .. }) | Message::InitAnswer(ports) => {
            assert!(ports.len() <= length);
        }
        Message::Init { options, .. } => assert!(options.len() <= length),
        Message::Data(data) => assert!(data.len() <= length),
        Message::TimeSync(sync) => time_sync(sync),
        _ => {}
    }
}

fn bounded(request: &Request, length: usize) {
    assert!(request.arguments.len() <= length && request.time_sync_protocols.len() <= length);
    assert!(request.time_sync_protocols.iter().all(|name| !name.is_empty()));
}

fn time_sync(sync: &TimeSync) {
    assert!(sync.protocol.len() <= 16);
    if let Some(relation) = kvm::Relation::responded(sync) {
        assert_eq!(kvm::Relation::responded(&relation.response()), Some(relation));
    }
    if let Some(time) = kvm::Relation::requested(sync) {
        assert_eq!(kvm::Relation::requested(&kvm::Relation::request(time)), Some(time));
    }
    if let Some(offset) = ptp::Offset::parse(sync) {
        assert_eq!(ptp::Offset::parse(&offset.message()), Some(offset));
    }
    if let Some((_, samples)) = ptp::sampled(sync) {
        assert!(samples.len() * 12 <= sync.payload.len());
    }
    let kinds = [
        sync.probed_cpu().is_some(),
        ptp::Start::parse(sync).is_some(),
        ptp::probed(sync).is_some(),
        ptp::is_end(sync),
    ];
    assert!(
        kinds.iter().filter(|&&is_kind| is_kind).count() <= 1,
        "it is several messages at once"
    );
}

/// The request of `trace-cmd record -A 127.0.0.1 -b 1000 -e sched:sched_switch -f 'prev_pid > 5'`,
/// version 3.1.6.
const REQUEST: &[u8] =
    b"\0\0\0l\0\0\0\x06\0\0\0\x10\0\0\0\0\0\0\0\0\xeb\xe4E7\x0f\xf0\x8d~\0\0\0\0\0\0\
    \0;\0\0\0\x08-C\0local\0-b\x001000\0-e\0sched:sched_switch\0-f\0prev_pid > 5\0\0\0\0\x01\0\0\0\
    \x05ptp\0\0";

/// Seed conversations, by name.
pub(crate) fn conversations() -> std::io::Result<Vec<(String, Vec<u8>)>> {
    let relation = kvm::Relation { guest_time: 9, offset: -7, scaling: 1, fraction: 0 };
    let samples = [ptp::Sample { time: 5, number: 1 }, ptp::Sample { time: 6, number: 2 }];
    let response = Response {
        page_size: 4096,
        trace_id: 1,
        time_sync_protocol: "kvm".into(),
        time_sync_port: 5,
        ports: vec![1025, 1026],
        ..Response::default()
    };
    let control = [
        Message::Response(response),
        Message::Data(vec![0x17, 8, 0x44]),
        Message::EndOfData,
        Message::Close,
        Message::CloseResponse,
    ];
    let sync = [
        TimeSync::probe(1),
        kvm::Relation::request(9),
        relation.response(),
        ptp::Start { series: 1, flags: 3 }.message(),
        ptp::probe(1),
        ptp::end(),
        ptp::samples(1, &samples),
        ptp::Offset { guest_time: 1, offset: 2 }.message(),
        TimeSync::stop(),
    ];
    let others = [
        Message::Init { cpus: 2, page_size: 4096, options: vec!["tcp".into()] },
        Message::InitAnswer(vec![1, 2]),
        Message::Proxy { request: Request::default(), cpus: 1, siblings: 0 },
        Message::NotSupported,
        Message::Continue,
        Message::Unknown(12),
    ];
    let stream = |messages: &[Message]| {
        let bytes = messages.iter().map(encode).collect::<std::io::Result<Vec<_>>>();
        bytes.map(|bytes| bytes.concat())
    };
    Ok(vec![
        ("request".into(), REQUEST.to_vec()),
        ("control".into(), stream(&control)?),
        ("time-sync".into(), stream(&sync.map(Message::TimeSync))?),
        ("others".into(), stream(&others)?),
    ])
}
