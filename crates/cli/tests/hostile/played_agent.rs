//! A simulated agent behind a Unix socket: it introduces itself like an agent, and then behaves like
//! a hostile one.

use std::io::Write;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread;
use std::time::Duration;

use channel::wire::{GuestHello, Message, PageHead, Started, Status, Text, TextKind};
use channel::{Control, Received, Stream};
use os::waits::Wait;

/// Exceeds the duration of any test.
const LONG: Duration = Duration::from_secs(900);
const PAGE_BYTES: u32 = 4096;

/// An agent that is connected to a host.
pub(crate) struct Agent {
    listener: UnixListener,
    pub(crate) control: Control,
    /// The socket of the control stream.
    raw: UnixStream,
    pub(crate) session: u64,
}

/// Runs a simulated agent at this socket, for one host.
pub(crate) fn play(at: &Path, act: fn(Agent)) {
    let listener = UnixListener::bind(at).unwrap();
    thread::spawn(move || {
        let socket = listener.accept().unwrap().0;
        let raw = socket.try_clone().unwrap();
        let mut control = Control::new(Stream::new(socket).unwrap());
        let Ok(Received::Message(session, Message::HostHello)) =
            control.receive(Wait::at_most(LONG))
        else {
            panic!("no host says hello");
        };
        act(Agent { listener, control, raw, session });
    });
}

impl Agent {
    pub(crate) fn say(&mut self, message: &Message) -> std::io::Result<()> {
        self.control.send_within(self.session, message, Wait::at_most(LONG))
    }

    /// Sends the greeting, with this number of page streams, which it returns.
    pub(crate) fn greet(&mut self, streams: u32) -> Vec<UnixStream> {
        let hello = GuestHello {
            version: channel::wire::VERSION,
            uname: "Linux hostile 6.1 x86_64".into(),
            agent: "played".into(),
            long_bytes: 8,
            page_bytes: PAGE_BYTES,
            cpus: 2,
            streams,
            ..GuestHello::default()
        };
        // The host may have disconnected.
        let _ = self.say(&Message::GuestHello(hello));
        (0..streams).map(|_| self.listener.accept().unwrap().0).collect()
    }

    /// Performs all steps of an agent before it records; returns its page stream.
    pub(crate) fn begin(&mut self) -> UnixStream {
        self.begin_with(|_| {})
    }

    /// The same, with more texts than those that make pages readable.
    pub(crate) fn begin_with(&mut self, texts: impl FnOnce(&mut Self)) -> UnixStream {
        let mut pages = self.greet(1);
        self.until(|message| matches!(message, Message::Start(_)));
        self.text(TextKind::HeaderPage, &read("header_page"));
        self.text(TextKind::HeaderEvent, &read("header_event"));
        texts(self);
        self.say(&Message::Started(Started { clock: "local".into(), ..Started::default() }))
            .unwrap();
        pages.remove(0)
    }

    /// Sends a text in one part; returns whether the host took it.
    pub(crate) fn text(&mut self, kind: TextKind, bytes: &[u8]) -> bool {
        let text = Text { kind, last: true, bytes: bytes.to_vec() };
        self.say(&Message::Text(text)).is_ok()
    }

    /// Waits for a message of the host; `false` if the host is gone.
    pub(crate) fn until(&mut self, is_awaited: fn(&Message) -> bool) -> bool {
        loop {
            match self.control.receive(Wait::at_most(LONG)) {
                Ok(Received::Message(_, message)) if is_awaited(&message) => return true,
                Ok(Received::Message(..)) => {}
                _ => return false,
            }
        }
    }

    pub(crate) fn wait_for_stop(&mut self) -> bool {
        self.until(|message| matches!(message, Message::Stop))
    }

    pub(crate) fn end(&mut self) {
        let _ = self.say(&Message::Ended(Status::default()));
    }

    /// Writes these bytes to the control stream repeatedly, until the host is gone.
    pub(crate) fn drip(&self, bytes: &[u8], pause: Duration) {
        let raw = Stream::new(self.raw.try_clone().unwrap()).unwrap();
        while raw.write_all(bytes, Wait::at_most(LONG)).is_ok() {
            thread::sleep(pause);
        }
    }

    /// Waits without reading until the host is gone.
    pub(crate) fn ignore(&self) {
        let raw = Stream::new(self.raw.try_clone().unwrap()).unwrap();
        while raw.write_all(b"", Wait::at_most(LONG)).is_ok() && !is_closed(&self.raw) {
            thread::sleep(Duration::from_millis(100));
        }
    }
}

fn is_closed(socket: &UnixStream) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut fds = [PollFd::new(socket, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut fds, Some(&now)).is_ok_and(|ready| ready > 0)
}

/// The kernel's description of its pages on this machine.
fn read(name: &str) -> Vec<u8> {
    let path = Path::new(crate::tool::TRACEFS).join("events").join(name);
    tracefs::read(&path).unwrap().into_bytes()
}

/// Writes these bytes to a page stream repeatedly, until the host is gone.
pub(crate) fn drip(mut pages: UnixStream, bytes: &[u8], pause: Duration) {
    while pages.write_all(bytes).is_ok() {
        thread::sleep(pause);
    }
}

/// A page of a CPU, after its header.
pub(crate) fn page(session: u64, cpu: u32, at: u64) -> Vec<u8> {
    let offset = at * u64::from(PAGE_BYTES);
    let head = PageHead { cpu, session, offset, bytes: PAGE_BYTES };
    [&head.encode()[..], &[0; PAGE_BYTES as usize]].concat()
}
