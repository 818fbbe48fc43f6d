//! Waits for hosts, and serves one after the other.

use std::io;
use std::time::Duration;

use channel::{GuestAddress, Listener, Peer, Signal, Stream};
use sys::vsock::CID_HOST;

use super::session;
use crate::error::{AgentError, Result};
use crate::leave::{Busy, leave_at_signals};

/// Pause after a failure to accept, so that one which lasts takes no processor.
const PAUSE: Duration = Duration::from_millis(500);

/// Serves hosts that run `trace-cmd record -A`.
#[derive(Debug)]
pub struct Server {
    listener: Listener,
}

impl Server {
    /// Listens.
    ///
    /// # Errors
    /// When the address can't be had.
    pub fn bind(address: &GuestAddress) -> Result<Self> {
        let failed = |source| AgentError::Channel { address: address.clone(), source };
        let unsupported = || failed(io::ErrorKind::Unsupported.into());
        let listener = Listener::of(address).map_err(failed)?.ok_or_else(unsupported)?;
        Ok(Self { listener })
    }

    /// Serves until it is told to leave, one host at a time; others wait. `tell` is given what is of
    /// interest to whoever runs it.
    ///
    /// # Errors
    /// When signals can't be heeded.
    pub fn run(&self, tell: &dyn Fn(&str)) -> Result<()> {
        let (busy, leave) = (Busy::default(), Signal::new()?);
        leave_at_signals(&busy, &leave)?;
        while !leave.is_given() {
            match self.listener.accept() {
                Ok((stream, peer)) if may_record(&peer) => {
                    busy.set(true);
                    self.serve(stream, &peer, &leave, tell);
                    busy.set(false);
                }
                Ok((_, peer)) => {
                    tell(&format!("refused a connection from {peer:?}: it is not the host"));
                }
                Err(error) => {
                    tell(&format!("cannot take connections: {error}"));
                    std::thread::sleep(PAUSE);
                }
            }
        }
        Ok(())
    }

    /// Serves a host. What goes wrong with it is told.
    fn serve(&self, stream: Stream, peer: &Peer, leave: &Signal, tell: &dyn Fn(&str)) {
        match session::serve(stream, peer, &self.listener, leave, tell) {
            Ok(true) => tell("recording ended"),
            Ok(false) => {}
            Err(error) => tell(&format!("recording failed: {error}")),
        }
    }
}

/// Over vsock the host alone: any user of this machine may connect to its own ports, and trace-cmd's
/// protocol has no more to tell who is who.
fn may_record(peer: &Peer) -> bool {
    match peer {
        Peer::Vsock(cid) => *cid == CID_HOST,
        Peer::Tcp(_) | Peer::Tls(_) | Peer::Unix => true,
    }
}
