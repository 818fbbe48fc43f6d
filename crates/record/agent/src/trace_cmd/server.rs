//! Waits for hosts, and serves one after another.

use std::cell::RefCell;
use std::io;
use std::time::Duration;

use channel::{AgentAddress, Arrival, Arrivals, Listener, Peer, TraceCmd};
use os::waits::{Signal, Wait};
use sys::vsock::CID_HOST;

use super::session;
use crate::error::{AgentError, Result};
use crate::leave::{Busy, leave_at_signals};

/// Pause after a failed accept, so that a lasting failure does not use the CPU.
const PAUSE: Duration = Duration::from_millis(500);
/// Max time of a single wait; nothing happens in between.
const LOOK: Duration = Duration::from_secs(60);

/// Serves hosts that run `trace-cmd record -A`.
#[derive(Debug)]
pub struct Server {
    arrivals: RefCell<Arrivals<TraceCmd>>,
}

impl Server {
    /// Starts listening.
    ///
    /// # Errors
    /// When the address can't be used.
    pub fn bind(address: &AgentAddress) -> Result<Self> {
        let failed = |source| AgentError::Channel { address: address.clone(), source };
        let unsupported = || failed(io::ErrorKind::Unsupported.into());
        let listener = Listener::for_address(address).map_err(failed)?.ok_or_else(unsupported)?;
        let arrivals = Arrivals::new(listener, may_record).map_err(failed)?;
        Ok(Self { arrivals: RefCell::new(arrivals) })
    }

    /// Serves until a signal ends it, one host at a time; others wait. `report` gets messages for the operator.
    ///
    /// # Errors
    /// When signals can't be handled.
    pub fn run(&self, report: &dyn Fn(&str)) -> Result<()> {
        let (busy, leave) = (Busy::default(), Signal::new()?);
        leave_at_signals(&busy, &leave)?;
        let stop = [leave.fd()];
        while !leave.is_set() {
            let next = self.arrivals.borrow_mut().next(Wait::at_most(LOOK).or(&stop));
            match next {
                Ok(Some(arrival)) => {
                    busy.set(true);
                    self.serve(arrival, &leave, report);
                    busy.set(false);
                }
                Ok(None) => {}
                Err(error) => {
                    report(&format!("cannot accept connections: {error}"));
                    std::thread::sleep(PAUSE);
                }
            }
        }
        Ok(())
    }

    /// Serves a host, and reports errors.
    fn serve(&self, arrival: Arrival<TraceCmd>, leave: &Signal, report: &dyn Fn(&str)) {
        match session::serve(arrival, self.arrivals.borrow().listener(), leave, report) {
            Ok(true) => report("recording ended"),
            Ok(false) => {}
            Err(error) => report(&format!("recording failed: {error}")),
        }
    }
}

/// Over vsock, accepts only the host: any user of this machine may connect to local ports, and trace-cmd's protocol
/// does not identify the host.
fn may_record(peer: &Peer) -> bool {
    match peer {
        Peer::Vsock(cid) => *cid == CID_HOST,
        Peer::Tcp(_) | Peer::Tls(_) | Peer::Unix => true,
    }
}
