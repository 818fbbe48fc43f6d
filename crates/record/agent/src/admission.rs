//! Decides which peers may record this machine, and what refused peers are told.

use channel::{Arrival, Peer};
use sys::vsock::CID_HOST;

use crate::allowed::Allowed;

/// The permissions of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// May command the agent, and read pages.
    Command,
    /// May read the pages of a session whose number it knows.
    PagesOnly,
    Nothing,
}

/// The answer to refused hosts.
pub(crate) const UNPRIVILEGED: &str = "over vsock this agent accepts commands only from ports below 1024, which ordinary users of the host can't use: run hyperscope as root, or with CAP_NET_BIND_SERVICE. An older hyperscope connects from other ports: for such a host, start hyperscope-agent with --allow-unprivileged-port";

/// Whether a peer may connect at all: over vsock, only this machine's host.
pub(crate) fn may_connect(peer: &Peer) -> bool {
    !matches!(peer, Peer::Vsock(cid) if *cid != CID_HOST)
}

impl Admission {
    /// For a connection to a listener that demands keys, or not.
    pub(crate) fn of_arrival(arrival: &Arrival, demands_keys: bool, allowed: Allowed) -> Self {
        Self::of_peer(&arrival.peer, demands_keys || arrival.is_privileged, allowed)
    }

    /// The kernel reports the peer of a vsock connection. CID 2 is this machine's host, CID 1 this machine. Every user
    /// of both may connect, so commands require keys or a privileged port. On other channels the socket's file
    /// permissions, or keys, decide.
    fn of_peer(peer: &Peer, is_proven: bool, allowed: Allowed) -> Self {
        match peer {
            Peer::Vsock(CID_HOST) if is_proven || allowed.unprivileged_port => Self::Command,
            Peer::Vsock(CID_HOST) => Self::PagesOnly,
            Peer::Vsock(_) => Self::Nothing,
            Peer::Unix | Peer::Tcp(_) | Peer::Tls(_) => Self::Command,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULT: Allowed = Allowed { unprivileged_port: false, kprobes: false };

    #[test]
    fn over_vsock_only_the_hosts_root_commands() {
        let admission = |peer, is_proven| Admission::of_peer(&peer, is_proven, DEFAULT);
        assert_eq!(admission(Peer::Vsock(CID_HOST), true), Admission::Command);
        assert_eq!(admission(Peer::Vsock(CID_HOST), false), Admission::PagesOnly);
        for other in [0, 1, 3, u32::MAX] {
            assert!(!may_connect(&Peer::Vsock(other)));
            assert_eq!(admission(Peer::Vsock(other), true), Admission::Nothing);
            assert_eq!(admission(Peer::Vsock(other), false), Admission::Nothing);
        }
        for peer in [Peer::Unix, Peer::Tcp([127, 0, 0, 1].into())] {
            assert!(may_connect(&peer));
            assert_eq!(admission(peer, false), Admission::Command);
        }
    }

    #[test]
    fn the_owner_may_let_older_hosts_in() {
        let allowed = Allowed { unprivileged_port: true, ..DEFAULT };
        let admission = |cid| Admission::of_peer(&Peer::Vsock(cid), false, allowed);
        assert_eq!((admission(CID_HOST), admission(1), admission(3)), {
            use Admission::{Command, Nothing};
            (Command, Nothing, Nothing)
        });
    }
}
