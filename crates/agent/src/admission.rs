//! Who may tell this machine what to record, and what is said to others.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use channel::{Control, Heard, Listener, Peer, Stream, Wait};
use sys::vsock::CID_HOST;
use wire::Message;

use crate::allowed::Allowed;

/// What whoever has connected may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Command the agent, and take pages.
    Command,
    /// Take the pages of a session whose number it knows.
    PagesOnly,
    /// Nothing.
    Nothing,
}

/// What the refused are told.
pub(crate) const UNPRIVILEGED: &str = "over vsock this agent takes commands only from ports below 1024, which ordinary users of the \
     host can't have: run hyperscope as root, or with CAP_NET_BIND_SERVICE. An older hyperscope \
     connects from other ports: for such a host, start hyperscope-agent with \
     --allow-unprivileged-port";

/// How long the refused may take to say which session they want an answer in.
const FIRST_WORD: Duration = Duration::from_secs(2);
/// The refused at a time who are told why. Others are just closed.
const MOST_TOLD: usize = 16;

impl Admission {
    /// For a connection that a listener has taken.
    pub(crate) fn of(listener: &Listener, stream: &Stream, peer: &Peer, allowed: Allowed) -> Self {
        let is_proven = listener.demands_keys() || stream.is_from_privileged_port();
        Self::of_peer(peer, is_proven, allowed)
    }

    /// The kernel says who is at the other end of a vsock connection. 2 is the machine that runs this
    /// one, where every user may connect, as every user of this machine may, who is 1; so it takes keys
    /// or a port that only a privileged process has to be believed. On other channels the socket's
    /// file, and keys, say who may.
    fn of_peer(peer: &Peer, is_proven: bool, allowed: Allowed) -> Self {
        match peer {
            Peer::Vsock(CID_HOST) if is_proven || allowed.unprivileged_port => Self::Command,
            Peer::Vsock(CID_HOST) => Self::PagesOnly,
            Peer::Vsock(_) => Self::Nothing,
            Peer::Unix | Peer::Tcp(_) => Self::Command,
        }
    }
}

/// Tells those who may not command why, and waits for none of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Refusals(Arc<AtomicUsize>);

impl Refusals {
    /// Answers the first message on this connection, if one comes soon, and closes it.
    pub(crate) fn tell(&self, stream: Stream) {
        if self.0.fetch_add(1, Ordering::Relaxed) >= MOST_TOLD {
            self.0.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        let told = Arc::clone(&self.0);
        let spawned = std::thread::Builder::new().name("refusal".into()).spawn(move || {
            answer(Control::new(stream));
            told.fetch_sub(1, Ordering::Relaxed);
        });
        if spawned.is_err() {
            self.0.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

fn answer(mut control: Control) {
    let wait = Wait::at_most(FIRST_WORD);
    if let Ok(Heard::Message(session, _)) = control.receive(wait) {
        // Whoever it is may be gone already.
        let _ = control.send_within(session, &Message::Refused(UNPRIVILEGED.into()), wait);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    const USUAL: Allowed = Allowed { unprivileged_port: false, kprobes: false };

    #[test]
    fn over_vsock_only_the_hosts_root_commands() {
        let of = |peer, is_proven| Admission::of_peer(&peer, is_proven, USUAL);
        assert_eq!(of(Peer::Vsock(CID_HOST), true), Admission::Command);
        assert_eq!(of(Peer::Vsock(CID_HOST), false), Admission::PagesOnly);
        for other in [0, 1, 3, u32::MAX] {
            assert_eq!(of(Peer::Vsock(other), true), Admission::Nothing);
            assert_eq!(of(Peer::Vsock(other), false), Admission::Nothing);
        }
        for peer in [Peer::Unix, Peer::Tcp("::1".into())] {
            assert_eq!(of(peer, false), Admission::Command);
        }
    }

    #[test]
    fn the_owner_may_let_older_hosts_in() {
        let allowed = Allowed { unprivileged_port: true, ..USUAL };
        let of = |cid| Admission::of_peer(&Peer::Vsock(cid), false, allowed);
        assert_eq!((of(CID_HOST), of(1), of(3)), {
            use Admission::{Command, Nothing};
            (Command, Nothing, Nothing)
        });
    }

    #[test]
    fn the_refused_hear_why_in_their_own_session() {
        let (here, there) = UnixStream::pair().unwrap();
        Refusals::default().tell(Stream::new(here).unwrap());
        let mut host = Control::new(Stream::new(there).unwrap());
        host.send(7, &Message::HostHello).unwrap();
        let wait = Wait::at_most(Duration::from_secs(20));
        let Heard::Message(7, Message::Refused(why)) = host.receive(wait).unwrap() else {
            panic!("no refusal");
        };
        assert!(why.contains("--allow-unprivileged-port"), "{why}");
        assert_eq!(host.receive(wait).unwrap(), Heard::End);
    }

    #[test]
    fn the_silent_are_not_waited_for() {
        let refusals = Refusals::default();
        let pairs: Vec<_> = (0..100).map(|_| UnixStream::pair().unwrap()).collect();
        let begun = std::time::Instant::now();
        let mut others = Vec::new();
        for (here, there) in pairs {
            refusals.tell(Stream::new(here).unwrap());
            others.push(there);
        }
        assert!(begun.elapsed() < FIRST_WORD, "{:?}", begun.elapsed());
    }
}
