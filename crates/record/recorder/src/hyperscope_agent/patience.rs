//! Tests of time limits for guests that begin late, or are silent.

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use channel::wire::{Message, Started, Status};
use channel::{Control, Received, Stream};
use os::confine::Unconfined;
use os::folder::{Folder, Modes};
use os::waits::{Deadline, Wait};

use super::conversation::{Conversation, Destination, LATE, Patience};
use crate::ending::Ending;
use crate::guest::{AgentReport, GuestFiles, PageShape, Quota};

const SESSION: u64 = 7;
const LONG: Duration = Duration::from_secs(60);
/// The max silence in these tests; slow guests are silent for as long.
const SILENCE: Duration = Duration::from_millis(500);
const SLOW: Duration = Duration::from_millis(2000);

/// Both ends of a control stream.
fn streams() -> [Control; 2] {
    let (here, there) = UnixStream::pair().unwrap();
    [here, there].map(|socket| Control::new(Stream::new(socket).unwrap()))
}

/// Starts a conversation with a guest that must begin within this time.
fn begin(here: Control, begins_within: Duration, ending: &Ending) -> Conversation {
    let folder = tempfile::tempdir().unwrap();
    let to = Folder::open(folder.path(), Modes::default()).unwrap();
    let shape = PageShape { bytes: 4096, long_bytes: 8, big_endian: false };
    let files = (to.clone(), Unconfined::start("opens").unwrap());
    let files = Arc::new(GuestFiles::new(files, 1, shape, Quota::new(1 << 20)));
    let patience =
        Patience { silence: SILENCE, ..Patience::begins_by(Deadline::after(begins_within)) };
    let to = Destination { folder: to, files: &files, samples: None };
    Conversation::begin(here, SESSION, to, None, ending, patience).unwrap()
}

/// Runs a conversation with a guest until it records or is over; then ends it. Returns its state and report.
fn converse(begins_within: Duration, act: fn(&mut Control)) -> (Option<String>, bool, AgentReport) {
    let [here, there] = streams();
    let guest = thread::spawn(move || {
        let mut control = there;
        act(&mut control);
        while !matches!(control.receive(Wait::at_most(LONG)), Ok(Received::Closed) | Err(_)) {}
    });
    let ending = Ending::of_one().unwrap();
    let conversation = begin(here, begins_within, &ending);
    let before = Instant::now();
    let status = loop {
        let status = conversation.status();
        if status.started || status.over.is_some() {
            break status;
        }
        assert!(before.elapsed() < LONG, "it neither records nor has ended");
        thread::sleep(Duration::from_millis(5));
    };
    if status.started {
        // It is silent from here on.
        conversation.is_over(Wait::at_most(LONG));
    }
    let over = conversation.status().over;
    ending.begin(Deadline::after(Duration::ZERO));
    let ended = conversation.end(ending.threads_until());
    guest.join().unwrap();
    (over, status.started, ended)
}

fn say(control: &mut Control, message: &Message) {
    // The host may have ended the conversation.
    let _ = control.send(SESSION, message);
}

#[test]
fn a_guest_may_be_silent_for_long_before_it_records_and_not_after_that() {
    let (over, has_started, ended) = converse(LONG, |control| {
        thread::sleep(SLOW);
        say(control, &Message::Started(Started { events: 3, ..Started::default() }));
    });
    assert!(has_started, "{over:?}");
    assert_eq!(ended.started.unwrap().events, 3);
    assert!(over.unwrap().contains("silent for"));
}

#[test]
fn a_guest_that_speaks_and_does_not_begin_is_over_at_its_limit() {
    let (over, has_started, ended) = converse(SILENCE, |control| {
        let before = Instant::now();
        while before.elapsed() < SLOW {
            say(control, &Message::Status(Status::default()));
            thread::sleep(Duration::from_millis(50));
        }
    });
    assert!(!has_started && ended.started.is_none());
    assert_eq!(over.as_deref(), Some(LATE));
}

#[test]
fn what_an_agent_sent_before_it_left_is_read_when_it_cannot_be_asked_to_stop() {
    let [here, mut there] = streams();
    say(&mut there, &Message::Started(Started { events: 3, ..Started::default() }));
    say(&mut there, &Message::Ended(Status { wakeups: 5, ..Status::default() }));
    drop(there);
    // The end has begun before anything is read.
    let ending = Ending::of_one().unwrap();
    ending.begin(Deadline::after(LONG));
    let conversation = begin(here, LONG, &ending);
    assert!(conversation.is_over(Wait::at_most(LONG)));
    let ended = conversation.end(ending.threads_until());
    assert_eq!((ended.started.unwrap().events, ended.status.unwrap().wakeups), (3, 5));
    assert_eq!(ended.faults, ["its recording ended early: a signal stopped its agent"]);
}
