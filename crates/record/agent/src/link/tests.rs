//! Checks who gets a session's pages: connections to an agent's socket, as any process can make that reaches it.

use std::path::{Path, PathBuf};

use super::*;

const WAIT: Duration = Duration::from_secs(20);

/// An agent that listens on a new socket, and the socket.
fn link(name: &str) -> (Link, PathBuf) {
    let file = format!("hyperscope-link-{name}-{}", std::process::id());
    let path = std::env::temp_dir().join(file);
    let link = Link::open(&AgentAddress::Unix { path: path.clone() }, Allowed::default()).unwrap();
    (link, path)
}

fn connect(path: &Path) -> Control {
    let to = HostAddress::Unix { path: path.to_owned() };
    Control::new(to.connect(WAIT).unwrap())
}

#[test]
fn page_streams_of_another_session_than_the_hosts_are_refused() {
    let (link, path) = link("session");
    let leave = Signal::new().unwrap();
    let caller = std::thread::spawn(move || {
        let mut control = connect(&path);
        control.send(7, &Message::HostHello).unwrap();
        let mut guessed = connect(&path);
        guessed.send(8, &Message::Attach(0)).unwrap();
        let answer = guessed.receive(Wait::at_most(WAIT)).unwrap();
        let mut known = connect(&path);
        known.send(7, &Message::Attach(0)).unwrap();
        (control, known, answer, path)
    });
    let mut host = link.host(&GuestHello::default(), &leave).unwrap();
    assert_eq!(host.receive(WAIT).unwrap(), Received::Message(7, Message::HostHello));
    host.begin_session(7);
    host.attached_stream(7, 0).unwrap();
    assert!(host.attached.is_empty());
    let (_control, _known, answer, path) = caller.join().unwrap();
    assert!(matches!(answer, Received::Message(8, Message::Refused(_))), "{answer:?}");
    // Page streams of an ended session are not kept for the next.
    host.begin_session(9);
    std::fs::remove_file(path).unwrap();
}

/// The wait for page streams ends as soon as the host disconnects, whatever messages came before.
#[test]
fn a_host_that_is_gone_is_not_waited_for() {
    let (link, path) = link("gone");
    let leave = Signal::new().unwrap();
    let mut control = connect(&path);
    control.send(7, &Message::HostHello).unwrap();
    control.send(7, &Message::Alive).unwrap();
    let mut host = link.host(&GuestHello::default(), &leave).unwrap();
    assert_eq!(host.receive(WAIT).unwrap(), Received::Message(7, Message::HostHello));
    host.begin_session(7);
    let start = Instant::now();
    let caller = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        drop(control);
    });
    assert!(host.attached_stream(7, 0).is_err());
    assert!(start.elapsed() < STREAMS, "{:?}", start.elapsed());
    caller.join().unwrap();
    assert_eq!(host.receive(WAIT).unwrap(), Received::Closed);
    drop(host);
    // The host disconnected before it is served: nothing starts.
    let mut control = connect(&path);
    control.send(8, &Message::HostHello).unwrap();
    control.send(8, &Message::Alive).unwrap();
    drop(control);
    let mut host = link.host(&GuestHello::default(), &leave).unwrap();
    assert_eq!(host.receive(WAIT).unwrap(), Received::Closed);
    std::fs::remove_file(path).unwrap();
}

/// A watcher: asks for views, and gets one each time.
struct Looker(Control);

impl Looker {
    fn new(path: &Path) -> Self {
        let mut looker = Self(connect(path));
        let first = looker.view().unwrap();
        assert_eq!((first.span_ns, first.cpu_count, first.tasks.len()), (0, 0, 0));
        looker
    }

    fn view(&mut self) -> Option<channel::wire::GuestView> {
        self.0.send(5, &Message::AskView(channel::wire::ViewRequest { tasks: 3 })).ok()?;
        match self.0.receive(Wait::at_most(WAIT)).unwrap() {
            Received::Message(5, Message::View(view)) => Some(*view),
            Received::Message(5, Message::Refused(_)) | Received::Closed => None,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn hosts_look_at_this_machine_before_and_while_another_records_it() {
    let (link, path) = link("views");
    let leave = Signal::new().unwrap();
    let caller = std::thread::spawn(move || {
        // No host records yet.
        let mut early = Looker::new(&path);
        let view = early.view().unwrap();
        assert!(view.span_ns > 0 && view.cpu_count > 0 && view.tasks.len() <= 3, "{view:?}");
        let mut control = connect(&path);
        control.send(7, &Message::HostHello).unwrap();
        let mut late = Looker::new(&path);
        assert!(early.view().unwrap().task_count > 0 && late.view().unwrap().task_count > 0);
        // Two more are accepted, and no others.
        let others = [Looker::new(&path), Looker::new(&path)];
        let mut fifth = connect(&path);
        fifth.send(5, &Message::AskView(channel::wire::ViewRequest { tasks: 3 })).unwrap();
        let answer = fifth.receive(Wait::at_most(WAIT)).unwrap();
        assert!(matches!(answer, Received::Message(5, Message::Refused(_))), "{answer:?}");
        // The recording host is not disturbed.
        control.send(7, &Message::Alive).unwrap();
        control.send(7, &Message::Stop).unwrap();
        drop(others);
        (control, path)
    });
    let mut host = link.host(&GuestHello::default(), &leave).unwrap();
    assert_eq!(host.receive(WAIT).unwrap(), Received::Message(7, Message::HostHello));
    host.begin_session(7);
    assert_eq!(host.receive(WAIT).unwrap(), Received::Message(7, Message::Alive));
    assert_eq!(host.receive(WAIT).unwrap(), Received::Message(7, Message::Stop));
    let (_control, path) = caller.join().unwrap();
    std::fs::remove_file(path).unwrap();
}
