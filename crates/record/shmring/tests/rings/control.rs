//! Control streams: every byte in order, and none for somebody else.

use std::thread;

use proptest::prelude::*;
use shmring::{ByteConsumer, ByteProducer, Mode, Received, Sent};

use crate::region::{Memory, plan};

fn write(to: &mut ByteProducer, bytes: &[u8]) {
    assert_eq!(to.write(bytes), Sent::Bytes(bytes.len()));
}

fn read(from: &mut ByteConsumer) -> (Received, Vec<u8>) {
    let mut bytes = vec![0; 64];
    let received = from.read(&mut bytes);
    let len = if let Received::Bytes(len) = received { len } else { 0 };
    bytes.truncate(len);
    (received, bytes)
}

fn text(from: &mut ByteConsumer) -> String {
    String::from_utf8(read(from).1).unwrap()
}

#[test]
fn each_side_hears_the_other() {
    let memory = Memory::new(1 << 20);
    let mut guest = memory.guest(&plan(1, 2, Mode::Keep));
    write(&mut guest.to_host, b"nobody hears this");
    let mut host = memory.host();
    write(&mut host.to_guest, b"start");
    assert_eq!(read(&mut guest.from_host).0, Received::NewStream);
    assert_eq!(text(&mut guest.from_host), "start");
    assert_eq!(text(&mut host.from_guest), "", "written before this host was there");
    assert_eq!(guest.to_host.write(b"x"), Sent::NewPeer);
    write(&mut guest.to_host, b"hello");
    assert_eq!(read(&mut host.from_guest).0, Received::NewStream);
    assert_eq!(text(&mut host.from_guest), "hello");
    assert_eq!(text(&mut host.from_guest), "");
}

#[test]
fn nobody_gets_half_a_message_of_one_who_ended() {
    let memory = Memory::new(1 << 20);
    let mut guest = memory.guest(&plan(1, 2, Mode::Keep));
    let mut host = memory.host();
    assert_eq!(guest.to_host.write(b""), Sent::NewPeer);
    write(&mut guest.to_host, b"first agent");
    write(&mut host.to_guest, b"for the first agent");
    drop(guest);

    let mut guest = memory.guest(&plan(1, 2, Mode::Keep));
    write(&mut guest.to_host, b"second agent");
    assert_eq!(text(&mut guest.from_host), "", "not meant for this agent");
    assert_eq!(read(&mut host.from_guest).0, Received::NewStream);
    assert_eq!(text(&mut host.from_guest), "second agent", "two streams began since");
    assert_eq!(host.to_guest.write(b"for"), Sent::NewPeer);
    write(&mut host.to_guest, b"for the second");
    assert_eq!(read(&mut guest.from_host).0, Received::NewStream);
    assert_eq!(text(&mut guest.from_host), "for the second");

    // The agent starts once more while the host reads: what the last one said is heard to its end.
    write(&mut guest.to_host, b", bye");
    let mut guest = memory.guest(&plan(1, 2, Mode::Keep));
    write(&mut guest.to_host, b"third");
    assert_eq!(text(&mut host.from_guest), ", bye");
    assert_eq!(read(&mut host.from_guest).0, Received::NewStream);
    assert_eq!(text(&mut host.from_guest), "third");

    // It starts twice before the host looks: nobody can know where the third's words ended.
    write(&mut guest.to_host, b"half of ");
    let mut guest = memory.guest(&plan(1, 2, Mode::Keep));
    write(&mut guest.to_host, b"other half");
    let mut guest = memory.guest(&plan(1, 2, Mode::Keep));
    write(&mut guest.to_host, b"fifth");
    assert_eq!(read(&mut host.from_guest).0, Received::NewStream);
    assert_eq!(text(&mut host.from_guest), "fifth");

    // Another host gets nothing that was said to the first.
    write(&mut guest.to_host, b"to the first host");
    let mut host = memory.host();
    assert_eq!(text(&mut host.from_guest), "");
    assert_eq!(guest.to_host.write(b"a"), Sent::NewPeer);
    write(&mut guest.to_host, b"to the second host");
    assert_eq!(read(&mut host.from_guest).0, Received::NewStream);
    assert_eq!(text(&mut host.from_guest), "to the second host");
}

#[test]
fn a_full_ring_takes_what_fits() {
    let memory = Memory::new(1 << 20);
    let mut guest = memory.guest(&plan(1, 2, Mode::Keep));
    let mut host = memory.host();
    assert_eq!(guest.to_host.write(b""), Sent::NewPeer);
    assert_eq!(guest.to_host.write(&[7; 5000]), Sent::Bytes(4096));
    assert_eq!(guest.to_host.write(&[7; 5000]), Sent::Bytes(0));
    assert_eq!(read(&mut host.from_guest).0, Received::NewStream);
    assert_eq!(read(&mut host.from_guest).0, Received::Bytes(64));
    assert_eq!(guest.to_host.write(&[7; 5000]), Sent::Bytes(64));
}

#[test]
fn two_threads_exchange_a_stream() {
    const BYTES: usize = 1 << 20;
    let memory = Memory::new(1 << 20);
    let guest = memory.guest(&plan(1, 2, Mode::Keep));
    let mut host = memory.host();
    let mut to_host = guest.to_host;
    let byte = |at: usize| (at.wrapping_mul(0x9E37_79B9) >> 16) as u8;
    thread::scope(|scope| {
        scope.spawn(move || {
            let all: Vec<u8> = (0..BYTES).map(byte).collect();
            let mut sent = 0;
            while sent < BYTES {
                let len = (1 + sent % 1500).min(BYTES - sent);
                match to_host.write(&all[sent..sent + len]) {
                    Sent::Bytes(0) => thread::yield_now(),
                    Sent::Bytes(len) => sent += len,
                    Sent::NewPeer => {}
                }
            }
        });
        let (mut at, mut into) = (0, vec![0; 1000]);
        while at < BYTES {
            match host.from_guest.read(&mut into) {
                Received::Bytes(0) => thread::yield_now(),
                Received::Bytes(len) => {
                    assert!(into[..len].iter().enumerate().all(|(i, &b)| b == byte(at + i)));
                    at += len;
                }
                Received::NewStream => assert_eq!(at, 0),
                Received::Damage => panic!("damage at {at}"),
            }
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The oracle is a queue.
    #[test]
    fn any_writes_and_reads_are_a_queue(steps in prop::collection::vec((any::<bool>(), 0..6000_usize), 1..60)) {
        let memory = Memory::new(1 << 20);
        let mut guest = memory.guest(&plan(1, 2, Mode::Keep));
        let mut host = memory.host();
        prop_assert_eq!(guest.to_host.write(b""), Sent::NewPeer);
        prop_assert_eq!(host.from_guest.read(&mut []), Received::NewStream);
        let mut queue = std::collections::VecDeque::new();
        let mut next = 0_u8;
        for (writes, len) in steps {
            if writes {
                let bytes: Vec<u8> = (0..len).map(|at| next.wrapping_add(at as u8)).collect();
                let Sent::Bytes(sent) = guest.to_host.write(&bytes) else { panic!("a new peer") };
                prop_assert_eq!(sent, len.min(4096 - queue.len()));
                queue.extend(&bytes[..sent]);
                next = next.wrapping_add(sent as u8);
            } else {
                let mut bytes = vec![0; len];
                prop_assert_eq!(host.from_guest.read(&mut bytes), Received::Bytes(len.min(queue.len())));
                bytes.truncate(len.min(queue.len()));
                prop_assert_eq!(bytes, queue.drain(..len.min(queue.len())).collect::<Vec<u8>>());
            }
        }
    }
}
