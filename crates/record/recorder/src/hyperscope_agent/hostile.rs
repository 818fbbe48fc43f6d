//! Malicious guests: none can stop, crash or fill the host that records them.

use std::io::Write;
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread;
use std::time::{Duration, Instant};

use channel::wire::{CpuEnd, GuestHello, Message, PageHead, Started, Status, Text, TextKind};
use channel::{Control, HostAddress, Received, Stream};
use os::confine::Unconfined;
use os::folder::{Folder, Modes};
use os::waits::{Deadline, Signal, Wait};
use proptest::prelude::*;
use vms::GuestAddress;

use super::Ready;
use crate::ending::{Ending, StartLimit};
use crate::error::Result;
use crate::guest::{Arriving, GuestFiles, GuestRecorded, PageShape, ReadyGuest as _};
use crate::in_guests::InGuests;

const SESSION: u64 = 7;
const LONG: Duration = Duration::from_secs(20);

/// The hello of a guest that can be recorded.
pub(crate) fn hello() -> GuestHello {
    GuestHello {
        version: channel::wire::VERSION,
        uname: "Linux g 6.1 x86_64".into(),
        long_bytes: 8,
        page_bytes: 4096,
        cpus: 2,
        streams: 1,
        ..GuestHello::default()
    }
}

/// The actions of a guest after it was asked to record, on its control stream, its page stream, and the socket of its
/// control stream.
type Act = fn(&mut Control, UnixStream, UnixStream);

struct Played {
    folder: tempfile::TempDir,
    result: Result<GuestRecorded>,
    took: Duration,
    /// How long the end took.
    ended: Duration,
}

/// Time to wait for guests after the end in this test, and its max on a busy machine.
const GUEST_WAIT: Duration = Duration::from_secs(1);
const ENDS: Duration = Duration::from_secs(5);

/// A time limit without a stop.
fn limit(time: Duration) -> StartLimit {
    StartLimit::within(time, &Signal::new().unwrap())
}

/// Records a guest that sends `hello` and then runs `act`; the host ends after `time`.
fn play(hello: GuestHello, act: Act, time: Duration) -> Played {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("agent");
    let listener = UnixListener::bind(&socket).unwrap();
    let guest = thread::spawn(move || {
        let accept = || listener.accept().unwrap().0;
        let socket = accept();
        let raw = socket.try_clone().unwrap();
        let mut control = Control::new(Stream::new(socket).unwrap());
        assert!(matches!(control.receive(Wait::at_most(LONG)), Ok(Received::Message(..))));
        control.send(SESSION, &Message::GuestHello(hello)).unwrap();
        // The host refuses a guest with an invalid answer.
        let Ok(Received::Message(_, Message::Start(_))) = control.receive(Wait::at_most(LONG))
        else {
            return;
        };
        act(&mut control, accept(), raw);
    });
    let channel = HostAddress::Unix { path: socket };
    let address = GuestAddress { name: "g".into(), channel, vm: None };
    let before = Instant::now();
    let mut ended = Duration::ZERO;
    let limit = limit(LONG);
    let result = Ready::connect(address, SESSION, &limit).and_then(|ready| {
        let what = InGuests { quota_bytes: Some(1 << 20), ..InGuests::default() };
        let to = Folder::open(folder.path(), Modes::default()).unwrap();
        let recorded = Box::new(ready).begin(&what, "local", &to, &limit, &Ending::of_one()?)?;
        thread::sleep(time);
        let before = Instant::now();
        let recorded = recorded.end_by(Deadline::after(GUEST_WAIT));
        ended = before.elapsed();
        Ok(recorded)
    });
    let took = before.elapsed();
    guest.join().unwrap();
    Played { folder, result, took, ended }
}

fn faults(played: &Played) -> String {
    played.result.as_ref().unwrap().summary().faults.join("; ")
}

fn end(control: &mut Control) {
    // The host may have ended the conversation.
    let _ = control.send(SESSION, &Message::Ended(Status::default()));
}

#[test]
fn numbers_that_cannot_be_are_refused() {
    let absurd = [
        GuestHello { cpus: u32::MAX, ..hello() },
        GuestHello { cpus: 0, ..hello() },
        GuestHello { streams: 1_000_000, ..hello() },
        GuestHello { streams: 0, ..hello() },
        GuestHello { page_bytes: 1 << 30, ..hello() },
        GuestHello { page_bytes: 5000, ..hello() },
        GuestHello { long_bytes: 200, ..hello() },
    ];
    for hello in absurd {
        let error = play(hello, |_, _, _| {}, Duration::ZERO).result.unwrap_err();
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert!(cause.contains("not plausible"), "{cause}");
    }
    let other = GuestHello { version: 99, ..hello() };
    let error = play(other, |_, _, _| {}, Duration::ZERO).result.unwrap_err();
    assert!(std::error::Error::source(&error).unwrap().to_string().contains("version 99"));
}

#[test]
fn floods_of_messages_end_the_conversation() {
    let flood: Act = |control, _pages, _| {
        let status = Message::Status(Status::default());
        while control.send(SESSION, &status).is_ok() {}
    };
    let played = play(hello(), flood, Duration::from_secs(3));
    assert!(faults(&played).contains("too many messages"), "{}", faults(&played));
    assert!(played.took < LONG);
}

#[test]
fn texts_have_an_end() {
    let flood: Act = |control, _pages, _| {
        let bytes = vec![b'x'; 30_000];
        let text = Message::Text(Text { kind: TextKind::Kallsyms, last: false, bytes });
        while control.send(SESSION, &text).is_ok() {}
    };
    let played = play(hello(), flood, Duration::from_secs(3));
    let faults = faults(&played);
    assert!(faults.contains("more texts") || faults.contains("too many messages"), "{faults}");
}

#[test]
fn garbage_among_pages_is_counted_and_the_rest_is_kept() {
    let garbage: Act = |control, mut pages, _| {
        control.send(SESSION, &Message::Started(Started::default())).unwrap();
        let head = |cpu, offset, bytes| PageHead { cpu, session: SESSION, offset, bytes }.encode();
        let page = [1_u8; 4096];
        let sent = [
            b"garbage".as_slice(),
            &head(0, 0, 4096),
            &page,
            &head(99, 0, 4096),
            &page,
            &head(1, u64::MAX - 4096, 4096),
            &page,
            &head(0, 4096, 4096),
            &page[..100],
        ];
        for bytes in sent {
            pages.write_all(bytes).unwrap();
        }
        drop(pages);
        control.receive(Wait::at_most(LONG)).unwrap();
        let absurd = CpuEnd { cpu: u32::MAX, sent_bytes: u64::MAX, ..CpuEnd::default() };
        control.send(SESSION, &Message::CpuEnd(absurd)).unwrap();
        end(control);
    };
    let played = play(hello(), garbage, Duration::from_millis(300));
    let recorded = played.result.as_ref().unwrap().summary();
    assert_eq!(recorded.senseless_bytes, 7 + 4096);
    let bytes: Vec<u64> = recorded.cpus.iter().map(|cpu| cpu.bytes).collect();
    assert_eq!(bytes, [4096, 4096]);
    assert_eq!(recorded.cpus[0].lost_bytes, 4096);
    assert!(recorded.cpus[1].lost_bytes > 1 << 60);
    let written = std::fs::read(played.folder.path().join("guest-g.pages/cpu0")).unwrap();
    assert_eq!(written, [1; 4096]);
}

#[test]
fn a_guest_that_goes_away_is_reported_at_once() {
    let played = play(hello(), |_, _, _| {}, Duration::from_millis(200));
    assert!(faults(&played).contains("it closed the channel"), "{}", faults(&played));
    assert!(played.took < Duration::from_secs(5), "{:?}", played.took);
    assert!(!played.result.unwrap().is_readable());
}

/// Repeats an action until it fails: until the host is gone.
fn again_and_again(pause: Duration, mut act: impl FnMut() -> std::io::Result<()>) {
    while act().is_ok() {
        thread::sleep(pause);
    }
}

const DRIP: Duration = Duration::from_millis(50);

/// Actions of a guest that tries to keep its host from ending.
const STALLS: &[(&str, Act)] = &[
    ("a byte of garbage now and then on the control stream", |control, _pages, raw| {
        control.send(SESSION, &Message::Started(Started::default())).unwrap();
        drip(&raw, DRIP, b"x");
    }),
    ("garbage without end on the control stream", |control, _pages, raw| {
        control.send(SESSION, &Message::Started(Started::default())).unwrap();
        drip(&raw, Duration::ZERO, &[b'x'; 4096]);
    }),
    ("a message now and then", |control, _pages, _| {
        control.send(SESSION, &Message::Started(Started::default())).unwrap();
        again_and_again(DRIP, || control.send(SESSION, &Message::Status(Status::default())));
    }),
    ("nothing at all", |control, pages, _| {
        control.send(SESSION, &Message::Started(Started::default())).unwrap();
        until_closed(pages);
    }),
    ("a byte now and then on a page stream", |control, mut pages, _| {
        control.send(SESSION, &Message::Started(Started::default())).unwrap();
        until_asked_to_stop(control);
        end(control);
        again_and_again(DRIP, || pages.write_all(b"x"));
    }),
    ("pages without end", |control, mut pages, _| {
        control.send(SESSION, &Message::Started(Started::default())).unwrap();
        let head = PageHead { cpu: 0, session: SESSION, offset: 0, bytes: 4096 }.encode();
        let batch = [&head[..], &[0; 4096]].concat();
        again_and_again(Duration::ZERO, || pages.write_all(&batch));
    }),
    ("pages without end, after it said that there are no more", |control, mut pages, _| {
        control.send(SESSION, &Message::Started(Started::default())).unwrap();
        until_asked_to_stop(control);
        end(control);
        again_and_again(Duration::ZERO, || pages.write_all(&[0; 4096]));
    }),
];

/// Sends bytes that form no message.
fn drip(raw: &UnixStream, pause: Duration, bytes: &[u8]) {
    // The socket is non-blocking: the control stream uses it, too.
    let stream = Stream::new(raw.try_clone().unwrap()).unwrap();
    again_and_again(pause, || stream.write_all(bytes, Wait::at_most(LONG)));
}

fn until_asked_to_stop(control: &mut Control) {
    while !matches!(control.receive(Wait::at_most(LONG)), Ok(Received::Message(_, Message::Stop))) {
    }
}

fn until_closed(mut pages: UnixStream) {
    let _ = std::io::copy(&mut pages, &mut std::io::sink());
}

#[test]
fn no_guest_holds_the_end_up() {
    for (what, act) in STALLS {
        let played = play(hello(), *act, Duration::from_millis(100));
        assert!(played.result.is_ok(), "{what}");
        eprintln!("{what}: ended after {:?}; {}", played.ended, faults(&played));
        assert!(played.ended < ENDS, "{what}: {:?}", played.ended);
    }
}

/// Random page stream input, sometimes with valid sizes.
fn piece() -> impl Strategy<Value = (PageHead, Vec<u8>)> {
    let sizes = prop_oneof![Just(0_u32), Just(64), Just(128), Just(1024), any::<u32>()];
    let offsets = prop_oneof![0_u64..1000, any::<u64>()];
    let pages = proptest::collection::vec(any::<u8>(), 0..200);
    (0_u32..4, offsets, sizes, pages).prop_map(|(cpu, offset, bytes, pages)| {
        (PageHead { cpu, session: SESSION, offset, bytes }, pages)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// For any input, files have whole pages, at most the quota, and the counts match the written bytes.
    #[test]
    fn files_stay_whole_whatever_comes(pieces in proptest::collection::vec(piece(), 0..30)) {
        let folder = tempfile::tempdir().unwrap();
        let shape = PageShape { bytes: 64, long_bytes: 8, big_endian: false };
        let to = Folder::open(folder.path(), Modes::default()).unwrap();
        let files = GuestFiles::new((to, Unconfined::start("opens").unwrap()), 3, shape, 1000);
        let mut arriving = Arriving::new(&files);
        for (at, (head, pages)) in pieces.iter().enumerate() {
            arriving.head(*head);
            // The decoder guarantees that a head is followed by at most its number of bytes.
            let fits = pages.len().min(head.bytes as usize);
            arriving.pages(&pages[..fits]);
            if at % 7 == 6 {
                arriving.malformed(5);
            }
        }
        arriving.end();
        let written: u64 = files.received().iter().map(|cpu| cpu.written).sum();
        let mut bytes = 0;
        for entry in std::fs::read_dir(folder.path()).unwrap() {
            let size = entry.unwrap().metadata().unwrap().len();
            prop_assert_eq!(size % 64, 0);
            bytes += size;
        }
        prop_assert_eq!(bytes, written);
        prop_assert!(bytes <= 1000);
    }
}
