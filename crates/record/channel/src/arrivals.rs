//! Connections that have not sent their first message. They wait side by side, each for a limited time, so a silent or
//! slow peer delays only itself.
//!
//! They need no threads. Each peer has a share of the places: if it makes more connections, its own oldest one is
//! closed. A peer that connects and speaks at once is served, however many others are silent.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use crate::control::Control;
use crate::listener::Listener;
use crate::opening::Opening;
use crate::peer::Peer;
use crate::stream::Stream;
use os::waits::Deadline;
use os::waits::Wait;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

/// Max time from connecting to the first message, including the TLS handshake. A busy machine may need seconds.
const FIRST_MESSAGE: Duration = Duration::from_secs(10);
/// Max waiting connections.
const PLACES: usize = 256;
/// Max waiting connections per peer. A guest makes one per CPU, and sends the first message of each before it makes the
/// next.
const PLACES_OF_ONE: usize = 64;
/// Max connections to accept before the waiting ones have their turn.
const AT_ONCE: usize = 64;
/// Pause after a failed accept: this process has too many open files.
const AFTER_ERROR: Duration = Duration::from_millis(100);

/// A connection that has sent its first message.
#[derive(Debug)]
pub struct Arrival<O: Opening = Control> {
    /// The stream for all further messages.
    pub control: O,
    /// The first message.
    pub first: O::First,
    /// The sender.
    pub peer: Peer,
    /// For vsock: the peer's port is privileged.
    pub is_privileged: bool,
}

#[derive(Debug)]
struct Waiting<O> {
    control: O,
    peer: Peer,
    end: Deadline,
}

/// A listener, and its connections that wait for their first message.
#[derive(Debug)]
pub struct Arrivals<O: Opening = Control> {
    listener: Listener,
    may_enter: fn(&Peer) -> bool,
    /// Oldest first.
    waiting: Vec<Waiting<O>>,
}

impl<O: Opening> Arrivals<O> {
    /// Accepts connections from peers that may connect, and closes others at once.
    ///
    /// # Errors
    /// When the socket can't be made non-blocking.
    pub fn new(listener: Listener, may_enter: fn(&Peer) -> bool) -> io::Result<Self> {
        // A connection may be gone between poll and accept.
        let flags = fcntl_getfl(&listener)?;
        fcntl_setfl(&listener, flags | OFlags::NONBLOCK)?;
        Ok(Self { listener, may_enter, waiting: Vec::new() })
    }

    #[must_use]
    pub fn listener(&self) -> &Listener {
        &self.listener
    }

    /// As [`Listener::demands_keys`].
    #[must_use]
    pub fn demands_keys(&self) -> bool {
        self.listener.demands_keys()
    }

    /// File descriptors that become readable on a connection or a message.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let of_waiting =
            self.waiting.iter().filter_map(|connection| Some(connection.control.stream()?.as_fd()));
        std::iter::once(self.listener.as_fd()).chain(of_waiting)
    }

    /// Time until the oldest waiting connection expires.
    fn next_end(&self) -> Option<Duration> {
        Some(self.waiting.first()?.end.remaining())
    }

    /// Waits for a connection with a first message; `None` if there was none.
    ///
    /// # Errors
    /// An error of the system.
    pub fn next(&mut self, wait: Wait<'_>) -> io::Result<Option<Arrival<O>>> {
        loop {
            if let Some(arrival) = self.look() {
                return Ok(Some(arrival));
            }
            let remaining = wait.remaining();
            if remaining.is_zero()
                || self.wait(remaining.min(self.next_end().unwrap_or(remaining)), wait)?
            {
                return Ok(None);
            }
        }
    }

    /// True if the wait's stop descriptor fired.
    fn wait(&self, timeout: Duration, wait: Wait<'_>) -> io::Result<bool> {
        let all = wait.stop().iter().copied().chain(self.fds());
        let mut fds: Vec<_> = all.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        match poll(&mut fds, Timespec::try_from(timeout).ok().as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(fds.iter().take(wait.stop().len()).any(|stop| !stop.revents().is_empty()))
    }

    /// Handles what is ready, without waiting.
    pub fn look(&mut self) -> Option<Arrival<O>> {
        self.waiting.retain(|connection| !connection.end.has_passed());
        for at in (0..self.waiting.len()).rev() {
            if let Some(arrival) = self.hear(at) {
                return Some(arrival);
            }
        }
        for _ in 0..AT_ONCE {
            if !self.accept() {
                break;
            }
            // Most connections have a message by the time they are accepted.
            if let Some(arrival) = self.waiting.len().checked_sub(1).and_then(|at| self.hear(at)) {
                return Some(arrival);
            }
            self.make_room();
        }
        None
    }

    /// The first message of a waiting connection. Removes the connection once it has sent one, or is closed.
    fn hear(&mut self, at: usize) -> Option<Arrival<O>> {
        let connection = self.waiting.get_mut(at)?;
        let first = match connection.control.hear_first() {
            Ok(None) => return None,
            Ok(Some(first)) => Some(first),
            Err(_) => None,
        };
        let Waiting { control, peer, .. } = self.waiting.remove(at);
        let first = first?;
        let stream = control.stream();
        let is_privileged = stream.is_some_and(Stream::is_from_privileged_port);
        // For vsock, the kernel identifies the machine, with or without keys.
        let peer = match (stream.and_then(Stream::certificate), peer) {
            (Some(certificate), Peer::Tcp(_)) => Peer::Tls(certificate),
            (_, peer) => peer,
        };
        Some(Arrival { control, first, peer, is_privileged })
    }

    /// Accepts a connection; false if no connection waits.
    fn accept(&mut self) -> bool {
        match self.listener.accept() {
            Ok((stream, peer)) if (self.may_enter)(&peer) => {
                let control = O::over(stream);
                let end = Deadline::after(FIRST_MESSAGE);
                self.waiting.push(Waiting { control, peer, end });
                true
            }
            Ok(_) => true,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => false,
            Err(_) => {
                // Too many files are open: waiting connections hold some of them. Otherwise only this connection
                // failed.
                if self.waiting.is_empty() {
                    std::thread::sleep(AFTER_ERROR);
                } else {
                    self.waiting.remove(0);
                }
                false
            }
        }
    }

    /// Closes the oldest connection of a peer above its share, or of the peer with the most connections if no place is
    /// free.
    fn make_room(&mut self) {
        let Some(newest) = self.waiting.last().map(|connection| connection.peer.party()) else {
            return;
        };
        let mut counts = HashMap::<Peer, usize>::new();
        for connection in &self.waiting {
            *counts.entry(connection.peer.party()).or_default() += 1;
        }
        let whose = if counts.get(&newest).is_some_and(|count| *count > PLACES_OF_ONE) {
            Some(newest)
        } else if self.waiting.len() > PLACES {
            counts.into_iter().max_by_key(|(_, count)| *count).map(|(party, _)| party)
        } else {
            None
        };
        let is_theirs = |connection: &Waiting<O>| Some(connection.peer.party()) == whose;
        if let Some(at) = self.waiting.iter().position(is_theirs) {
            self.waiting.remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use crate::wire::{Message, encode};

    fn arrivals() -> (Arrivals<Control>, String) {
        let listener = Listener::tcp("127.0.0.1:0").unwrap();
        let Listener::Tcp(tcp) = &listener else { unreachable!() };
        let at = tcp.local_addr().unwrap().to_string();
        (Arrivals::new(listener, |_| true).unwrap(), at)
    }

    fn soon() -> Wait<'static> {
        Wait::at_most(Duration::from_millis(20))
    }

    fn later() -> Wait<'static> {
        Wait::at_most(Duration::from_secs(20))
    }

    fn is_closed(mut stream: &TcpStream) -> bool {
        stream.set_nonblocking(true).unwrap();
        stream.read(&mut [0; 8]).is_ok_and(|read| read == 0)
    }

    #[test]
    fn whoever_speaks_is_heard_however_many_are_silent() {
        let (mut arrivals, at) = arrivals();
        let mut silent: Vec<TcpStream> = Vec::new();
        for _ in 0..PLACES_OF_ONE + 10 {
            silent.push(TcpStream::connect(&at).unwrap());
            assert!(arrivals.next(soon()).unwrap().is_none());
        }
        // The slow peer has sent half of its message.
        let bytes = encode(7, &Message::HostHello).unwrap();
        let mut slow = TcpStream::connect(&at).unwrap();
        slow.write_all(&bytes[..10]).unwrap();
        assert!(arrivals.next(soon()).unwrap().is_none());
        let mut quick = TcpStream::connect(&at).unwrap();
        quick.write_all(&encode(9, &Message::Attach(3)).unwrap()).unwrap();
        let arrival = arrivals.next(later()).unwrap().unwrap();
        assert_eq!(arrival.first, (9, Message::Attach(3)));
        assert_eq!(arrival.peer.to_string(), "tcp:127.0.0.1");
        // The half that came before is kept.
        slow.write_all(&bytes[10..]).unwrap();
        let arrival = arrivals.next(later()).unwrap().unwrap();
        assert_eq!(arrival.first, (7, Message::HostHello));
        assert!(arrivals.waiting.len() <= PLACES_OF_ONE);
        assert!(is_closed(&silent[0]), "the oldest has to leave");
        assert!(!is_closed(silent.last().unwrap()));
    }

    #[test]
    fn nobody_waits_longer_than_a_fixed_time_whatever_it_sends() {
        let (mut arrivals, at) = arrivals();
        let mut slow = TcpStream::connect(&at).unwrap();
        assert!(arrivals.next(soon()).unwrap().is_none());
        slow.write_all(b"HSCM").unwrap();
        assert!(arrivals.next(soon()).unwrap().is_none());
        arrivals.waiting[0].end = Deadline::after(Duration::ZERO);
        assert!(arrivals.next(soon()).unwrap().is_none());
        assert!(arrivals.waiting.is_empty());
        // A peer that floods the channel with bytes that form no message is cut off earlier.
        let flood = TcpStream::connect(&at).unwrap();
        flood.set_nonblocking(true).unwrap();
        for _ in 0..200 {
            let _ = (&flood).write(&[7; 4096]);
            assert!(arrivals.next(soon()).unwrap().is_none());
            if arrivals.waiting.is_empty() {
                return;
            }
        }
        panic!("it was listened to");
    }

    #[test]
    fn those_who_may_not_connect_are_closed() {
        let (arrivals, at) = arrivals();
        let mut arrivals = Arrivals { may_enter: |_| false, ..arrivals };
        let mut stream = TcpStream::connect(&at).unwrap();
        stream.write_all(&encode(7, &Message::HostHello).unwrap()).unwrap();
        assert!(arrivals.next(soon()).unwrap().is_none());
        assert!(arrivals.waiting.is_empty());
    }
}
