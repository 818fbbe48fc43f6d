//! Informs a host that its guest's agent was killed, over channels that outlive the agent: ports and memory.
//! Connections close with the process that opened them.

use std::io;
use std::time::{Duration, Instant};

use channel::wire::Message;
use channel::{AgentAddress, Control, GuestMemory, GuestPorts};

use crate::error::Result;
use crate::machine::{boot_id, page_bytes, possible_cpus};

const KILLED: &str = "the agent was killed: pages that it had not sent are missing";
/// Max time for the dead agent to release a port.
const OPENING: Duration = Duration::from_secs(5);
/// Time between two tries.
const BEFORE_NEXT_TRY: Duration = Duration::from_millis(20);

/// Informs the host, if the channel is open and the host reads it.
pub(super) fn send(channel: &AgentAddress, session: u64) {
    let sent = match channel {
        AgentAddress::VirtioSerial => port().map_err(Into::into).map(Control::new),
        AgentAddress::SharedMemory { at } => memory(at.as_deref()),
        _ => return,
    };
    let message = Message::Refused(KILLED.into());
    // Nobody is left to report a failure to.
    let _ = sent.and_then(|mut control| Ok(control.send(session, &message)?));
}

fn port() -> io::Result<channel::Stream> {
    let end = Instant::now() + OPENING;
    loop {
        let ports = GuestPorts::find().ok_or(io::ErrorKind::NotFound)?;
        match ports.control() {
            Err(error) if Instant::now() < end => {
                // Only one process at a time can open a port.
                if error.kind() == io::ErrorKind::NotFound {
                    return Err(error);
                }
                std::thread::sleep(BEFORE_NEXT_TRY);
            }
            other => return other,
        }
    }
}

/// Uses the agent's layout, so that pages which the host has not read yet stay.
fn memory(at: Option<&str>) -> Result<Control> {
    let (cpus, page_bytes) = (possible_cpus()?, page_bytes()?);
    let (rings, _pages) = GuestMemory::open(at)?.begin(cpus, page_bytes as usize, boot_id())?;
    Ok(Control::in_memory(rings))
}
