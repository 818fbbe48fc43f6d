//! Random numbers of sessions and traces, from `channel`.

use std::path::Path;

use crate::error::{RecordError, Result};

/// A random number, unique among sessions.
///
/// # Errors
/// When the kernel has no random numbers.
pub(crate) fn random() -> Result<u64> {
    channel::session_number().map_err(RecordError::io("read", Path::new("random numbers")))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::path::PathBuf;
    use std::thread;
    use std::time::Duration;

    use channel::wire::Message;
    use channel::{Control, Received, Stream};
    use os::waits::Wait;

    use crate::guests::{self, HostTrace};
    use crate::hyperscope_agent::hostile::hello;
    use crate::in_guests::InGuests;
    use crate::nanoseconds::unix_ns;

    /// An agent that answers one host; returns its session number.
    fn agent(path: PathBuf) -> thread::JoinHandle<u64> {
        let listener = UnixListener::bind(path).unwrap();
        thread::spawn(move || {
            let mut control = Control::new(Stream::new(listener.accept().unwrap().0).unwrap());
            let received = control.receive(Wait::at_most(Duration::from_secs(20))).unwrap();
            let Received::Message(session, Message::HostHello) = received else {
                panic!("{received:?}")
            };
            control.send(session, &Message::GuestHello(hello())).unwrap();
            let mut pages = Control::new(Stream::new(listener.accept().unwrap().0).unwrap());
            let attached = pages.receive(Wait::at_most(Duration::from_secs(20))).unwrap();
            assert_eq!(attached, Received::Message(session, Message::Attach(0)));
            session
        })
    }

    #[test]
    fn no_guest_can_guess_anothers_number_from_its_own_or_from_the_time() {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["a", "b"].map(|name| folder.path().join(name));
        let agents = paths.clone().map(agent);
        let addresses: Vec<String> =
            paths.iter().map(|path| format!("unix:{}", path.display())).collect();
        let before = unix_ns();
        let stop = os::waits::Signal::new().unwrap();
        let host = HostTrace { clock: "mono", trace_id: 7 };
        let ready = guests::connect(&addresses, &InGuests::default(), host, &stop).unwrap();
        assert_eq!(ready.len(), 2);
        let [a, b] = agents.map(|agent| agent.join().unwrap());
        // A number near the current time, or near another number, is practically impossible by chance.
        for (number, other) in [(a, b), (a, before), (b, before), (a, 7), (b, 7)] {
            assert!(number.abs_diff(other) > 1 << 24, "{a:#x} {b:#x} at {before:#x}");
        }
    }
}
