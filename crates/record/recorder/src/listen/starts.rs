//! Guests that connect and never begin: none keeps its place.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use channel::wire::{Message, Status};
use channel::{Control, Received, Stream};
use os::folder::Modes;
use os::waits::Wait;

use super::{ListenEvent, ListenPlan, Listening};
use crate::hyperscope_agent::hostile::hello;
use crate::in_guests::InGuests;

const LONG: Duration = Duration::from_secs(60);

/// A guest that was asked to record, and only sends status messages until its host is gone; returns whether it was
/// asked.
fn never_begins(at: &Path) -> bool {
    let mut control = Control::new(Stream::new(UnixStream::connect(at).unwrap()).unwrap());
    control.send(0, &Message::GuestHello(hello())).unwrap();
    let Ok(Received::Message(session, Message::HostHello)) = control.receive(Wait::at_most(LONG))
    else {
        return false;
    };
    control.send(session, &Message::GuestHello(hello())).unwrap();
    let start = control.receive(Wait::at_most(LONG));
    while control.send(session, &Message::Status(Status::default())).is_ok() {
        thread::sleep(Duration::from_millis(50));
    }
    matches!(start, Ok(Received::Message(_, Message::Start(_))))
}

#[test]
fn a_guest_that_never_begins_leaves_its_place_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("agents");
    let within = Duration::from_millis(700);
    let plan = ListenPlan {
        at: vec![channel::AgentAddress::Unix { path: socket.clone() }],
        in_guests: InGuests {
            begins_within: Some(within),
            wait: Some(Duration::ZERO),
            ..InGuests::default()
        },
        most_guests: 1,
        modes: Modes::default(),
        to: folder.path().join("sessions"),
    };
    let (listening, events) = Listening::begin(plan).unwrap();
    let guest = thread::spawn(move || never_begins(&socket));
    let Ok(ListenEvent::Joined { .. }) = events.recv_timeout(LONG) else {
        panic!("could not ask it to record");
    };
    let before = Instant::now();
    let event = events.recv_timeout(LONG).unwrap();
    let ListenEvent::Left { summary, .. } = event else { panic!("{event:?}") };
    let faults = summary.faults.join("; ");
    assert!(faults.contains("did not start to record in time"), "{faults}");
    assert!(before.elapsed() < within + Duration::from_secs(20), "{:?}", before.elapsed());
    assert!(guest.join().unwrap(), "could not ask it to record");
    while listening.guests() > 0 {
        assert!(before.elapsed() < LONG, "its slot stays reserved");
        thread::sleep(Duration::from_millis(5));
    }
    listening.end();
}
