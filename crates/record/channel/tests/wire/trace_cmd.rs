//! trace-cmd's messages: as they went, so they come; any bytes are a message or refused.

use channel::wire::trace_cmd::{
    DecodeError, MAX_BYTES, MAX_DATA_BYTES, Message, ReadError, Request, Response, TimeSync,
    decode, encode, kvm, ptp, read,
};
use proptest::prelude::*;

fn text() -> impl Strategy<Value = String> {
    "[^\\x00]{0,20}"
}

fn name() -> impl Strategy<Value = String> {
    "[!-~]{0,16}"
}

prop_compose! {
    fn request()(
        use_fifos: bool,
        trace_id: u64,
        arguments in prop::collection::vec(text(), 0..20),
        time_sync_protocols in prop::collection::vec("[a-z]{1,16}", 0..4),
    ) -> Request {
        Request { use_fifos, trace_id, arguments, time_sync_protocols }
    }
}

prop_compose! {
    fn response()(
        use_fifos: bool,
        page_size: u32,
        trace_id: u64,
        time_sync_protocol in name(),
        time_sync_port: u32,
        ports in prop::collection::vec(any::<u32>(), 0..300),
    ) -> Response {
        Response { use_fifos, page_size, trace_id, time_sync_protocol, time_sync_port, ports }
    }
}

fn message() -> impl Strategy<Value = Message> {
    prop_oneof![
        Just(Message::Close),
        (any::<u32>(), any::<u32>(), prop::collection::vec(text(), 0..5))
            .prop_map(|(cpus, page_size, options)| Message::Init { cpus, page_size, options }),
        prop::collection::vec(any::<u32>(), 0..300).prop_map(Message::InitAnswer),
        prop::collection::vec(any::<u8>(), 0..=MAX_DATA_BYTES).prop_map(Message::Data),
        Just(Message::EndOfData),
        Just(Message::NotSupported),
        request().prop_map(Message::Request),
        response().prop_map(Message::Response),
        Just(Message::CloseResponse),
        (name(), any::<u32>(), prop::collection::vec(any::<u8>(), 0..8000)).prop_map(
            |(protocol, number, payload)| Message::TimeSync(TimeSync { protocol, number, payload })
        ),
        (request(), any::<u32>(), any::<u32>())
            .prop_map(|(request, cpus, siblings)| Message::Proxy { request, cpus, siblings }),
        Just(Message::Continue),
        (12_u32..).prop_map(Message::Unknown),
    ]
}

proptest! {
    #[test]
    fn a_message_comes_as_it_went(message in message()) {
        let bytes = encode(&message).unwrap();
        prop_assert!(bytes.len() <= MAX_BYTES);
        prop_assert_eq!(decode(&bytes).unwrap(), Some((message.clone(), bytes.len())));
        prop_assert_eq!(read(&mut bytes.as_slice()).unwrap(), message);
        // A part of it is no message yet.
        prop_assert_eq!(decode(&bytes[..bytes.len() - 1]).unwrap(), None);
    }

    /// What the other end sends may be anything; where it has the head of a message it goes further.
    #[test]
    fn any_bytes_are_a_message_or_refused(
        command in 0_u32..14,
        fixed in 0_u32..80,
        body in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let size = u32::try_from(body.len() + 12).unwrap();
        let head = [size, command, fixed].map(u32::to_be_bytes);
        let bytes = [head.as_flattened(), &body].concat();
        if let Ok(Some((message, _))) = decode(&bytes) {
            let again = encode(&message).unwrap();
            prop_assert_eq!(decode(&again).unwrap().unwrap().0, message);
        }
    }
}

#[test]
fn sizes_are_checked_before_anything_is_taken() {
    let head = |size: u32| [size, 3, 0].map(u32::to_be_bytes).concat();
    for size in [0, 11, 8193, u32::MAX] {
        assert_eq!(decode(&head(size)), Err(DecodeError::Size { bytes: size }));
        let read = read(&mut head(size).as_slice());
        assert!(matches!(read, Err(ReadError::Decode(DecodeError::Size { .. }))));
    }
    assert!(matches!(read(&mut [0_u8; 3].as_slice()), Err(ReadError::Closed)));
    assert!(encode(&Message::Data(vec![0; MAX_DATA_BYTES + 1])).is_err());
    assert!(encode(&Message::Data(vec![0; MAX_DATA_BYTES])).is_ok());
}

#[test]
fn counts_past_the_message_are_refused() {
    // TRACE_RESP with four billion CPUs and one port.
    let mut bytes =
        encode(&Message::Response(Response { ports: vec![7], ..Response::default() })).unwrap();
    bytes[16..20].copy_from_slice(&u32::MAX.to_be_bytes());
    assert!(matches!(decode(&bytes), Err(DecodeError::Content { command: 7, .. })));
    // TRACE_REQ whose one parameter is longer than the message.
    let request = Request { arguments: vec!["-e".into()], ..Request::default() };
    let mut bytes = encode(&Message::Request(request)).unwrap();
    bytes[32..36].copy_from_slice(&u32::MAX.to_be_bytes());
    assert!(matches!(decode(&bytes), Err(DecodeError::Content { command: 6, .. })));
}

/// A later version's fixed part is longer, an earlier one's shorter.
#[test]
fn fixed_parts_of_other_versions_are_read_as_far_as_they_are_known() {
    let message = Message::TimeSync(TimeSync::probe(3));
    let bytes = encode(&message).unwrap();
    let mut longer = bytes.clone();
    longer[3] += 4;
    longer[11] += 4;
    longer.splice(32..32, [1, 2, 3, 4]);
    assert_eq!(decode(&longer).unwrap().unwrap().0, message);
    let short = [12, 10, 0].map(u32::to_be_bytes).concat();
    let proxy = Message::Proxy { request: Request::default(), cpus: 0, siblings: 0 };
    assert_eq!(decode(&short).unwrap(), Some((proxy, 12)));
}

/// What `trace-cmd record -A 127.0.0.1 -b 1000 -e sched:sched_switch -f 'prev_pid > 5'` sent,
/// version 3.1.6.
const OF_TRACE_CMD: &[u8] = b"\0\0\0l\0\0\0\x06\0\0\0\x10\0\0\0\0\0\0\0\0\xeb\xe4E7\x0f\xf0\x8d~\
    \0\0\0\0\0\0\0;\0\0\0\x08-C\0local\0-b\x001000\0-e\0sched:sched_switch\0-f\0prev_pid > 5\0\
    \0\0\0\x01\0\0\0\x05ptp\0\0";

#[test]
fn bytes_are_those_of_trace_cmd() {
    let arguments = ["-C", "local", "-b", "1000", "-e", "sched:sched_switch", "-f", "prev_pid > 5"];
    let request = Request {
        use_fifos: false,
        trace_id: 0xebe4_4537_0ff0_8d7e,
        arguments: arguments.map(str::to_owned).into(),
        time_sync_protocols: vec!["ptp".into()],
    };
    let message = Message::Request(request);
    assert_eq!(decode(OF_TRACE_CMD).unwrap(), Some((message.clone(), OF_TRACE_CMD.len())));
    assert_eq!(
        encode(&message).unwrap().escape_ascii().to_string(),
        OF_TRACE_CMD.escape_ascii().to_string()
    );
}

#[test]
fn time_synchronisation_comes_as_it_went() {
    assert_eq!(TimeSync::probe(513).probed_cpu(), Some(513));
    assert_eq!(TimeSync::stop().probed_cpu(), None);
    let relation = kvm::Relation { guest_time: 5, offset: -7, scaling: 1 << 40, fraction: 48 };
    assert_eq!(kvm::Relation::responded(&relation.response()), Some(relation));
    assert_eq!(kvm::Relation::requested(&kvm::Relation::request(9)), Some(9));
    assert_eq!(kvm::Relation::requested(&relation.response()), None);
    let start = ptp::Start { series: 2, flags: ptp::MARKS };
    assert_eq!(ptp::Start::parse(&start.message()), Some(start));
    assert_eq!(ptp::probed(&ptp::probe(339)), Some(339));
    assert!(ptp::is_end(&ptp::end()) && !ptp::is_end(&ptp::probe(1)));
    let offset = ptp::Offset { guest_time: 1, offset: i64::MIN };
    assert_eq!(ptp::Offset::parse(&offset.message()), Some(offset));
    let samples: Vec<_> =
        (1..=ptp::ROUND_TRIPS).map(|number| ptp::Sample { time: -5, number }).collect();
    let message = ptp::samples(4, &samples);
    // As large as trace-cmd's, which has room for both ends' stamps; and it fits.
    assert_eq!(message.payload.len(), 8 + 12 * 678);
    assert!(encode(&Message::TimeSync(message.clone())).is_ok());
    assert_eq!(ptp::sampled(&message), Some((4, samples)));
    let cut = TimeSync { payload: message.payload[..30].to_vec(), ..message };
    assert_eq!(ptp::sampled(&cut).unwrap().1.len(), 1);
}
