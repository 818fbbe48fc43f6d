//! Informs a host that its guest's agent was killed, over channels that stay open without one:
//! ports and memory. Connections end with the process that opened them.

use std::io;
use std::time::{Duration, Instant};

use channel::wire::Message;
use channel::{AgentAddress, Control, GuestMemory, GuestPorts};

use crate::error::Result;
use crate::machine::{boot_id, page_bytes, possible_cpus};

const KILLED: &str = "the agent was killed: pages that it had not sent are missing";
/// How long a port may take to be given up by the agent.
const OPENING: Duration = Duration::from_secs(5);
/// How long after one try the next is made.
const BEFORE_NEXT_TRY: Duration = Duration::from_millis(20);

/// Informs the host, if a channel is open and the host listens.
pub(super) fn send(channel: &AgentAddress, session: u64) {
    let sent = match channel {
        AgentAddress::VirtioSerial => port().map_err(Into::into).map(Control::new),
        AgentAddress::SharedMemory { at } => memory(at.as_deref()),
        _ => return,
    };
    let message = Message::Refused(KILLED.into());
    // A failure can't be reported to anyone.
    let _ = sent.and_then(|mut control| Ok(control.send(session, &message)?));
}

fn port() -> io::Result<channel::Stream> {
    let end = Instant::now() + OPENING;
    loop {
        let ports = GuestPorts::find().ok_or(io::ErrorKind::NotFound)?;
        match ports.control() {
            Err(error) if Instant::now() < end => {
                // The kernel lets one process at a time have a port.
                if error.kind() == io::ErrorKind::NotFound {
                    return Err(error);
                }
                std::thread::sleep(BEFORE_NEXT_TRY);
            }
            other => return other,
        }
    }
}

/// Laid out as the agent has it, the memory keeps the pages that the host has not taken yet.
fn memory(at: Option<&str>) -> Result<Control> {
    let (cpus, page_bytes) = (possible_cpus()?, page_bytes()?);
    let (rings, _pages) = GuestMemory::open(at)?.begin(cpus, page_bytes as usize, boot_id())?;
    Ok(Control::in_memory(rings))
}
