//! How guests see themselves, live: their agents are asked at the end of each interval what their CPUs did and which
//! tasks ran. Each guest has a thread, which connects, and connects again where a guest went away; who waits for an
//! answer waits no longer than he says.

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod asking;
mod question;

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use channel::wire::GuestView;
use vms::{GuestAddress, NoGuest};

use self::asking::Asking;
use self::question::Question;

/// A guest, and what it said of the last interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenGuest {
    /// What it was asked for as: a VM's name, or `[NAME=]CHANNEL`.
    pub requested_name: String,
    /// Name of the guest.
    pub name: String,
    /// Channel to its agent.
    pub channel: String,
    /// The process of the VM that it is, as far as that is known.
    pub process: Option<u32>,
    /// What it said, or why there is nothing.
    pub view: Result<GuestView, String>,
}

/// Why cannot query guests.
#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    /// Which guest is meant is not known.
    #[error(transparent)]
    NoGuest(#[from] NoGuest),
    /// Its channel is for one host at a time, which may be recording.
    #[error(
        "the channel {channel} of guest {name} serves only one recorder: for a guest's own view, use vsock, tls-vsock, tls, tcp-plain or unix"
    )]
    OneAtATime {
        /// The guest.
        name: String,
        /// Its channel.
        channel: String,
    },
    /// No thread can be started, or there are no random numbers.
    #[error("cannot query guests")]
    System(#[from] io::Error),
}

/// Guests whose agents are asked.
#[derive(Debug, Default)]
pub struct GuestViews {
    guests: Vec<Arc<Question>>,
}

impl GuestViews {
    /// Begins to ask these guests: names of VMs, or `[NAME=]CHANNEL`. Of each at most this many tasks are shown.
    ///
    /// # Errors
    /// When it is not known which guest one means, or it can't be asked while it is recorded.
    pub fn begin(names: &[String], most_tasks: u16) -> Result<Self, ViewError> {
        let vms = if names.is_empty() { Vec::new() } else { vms::running() };
        let mut guests = Vec::new();
        for name in names {
            let address = GuestAddress::find_by(name, &vms, channel::HostAddress::takes_several)?;
            if !address.channel.takes_several() {
                let GuestAddress { name, channel, .. } = address;
                return Err(ViewError::OneAtATime { name, channel: channel.to_string() });
            }
            let question = Arc::new(Question::new(name, &address));
            Asking::start(name.clone(), Arc::clone(&question), most_tasks)?;
            guests.push(question);
        }
        Ok(Self { guests })
    }

    /// Waits until each guest has answered for the first time, or can't be asked; at most so long.
    pub fn wait_until_ready(&self, timeout: Duration) {
        let end = Instant::now() + timeout;
        self.guests.iter().for_each(|guest| guest.wait_until_ready(end));
    }

    /// Asks all of them what happened since they were asked before.
    pub fn ask(&self) {
        self.guests.iter().for_each(|guest| guest.ask());
    }

    /// What they answered, waiting for that at most so long; what comes later is shown with the next interval.
    #[must_use]
    pub fn answers(&self, timeout: Duration) -> Vec<SeenGuest> {
        let end = Instant::now() + timeout;
        self.guests.iter().map(|guest| guest.answer(end)).collect()
    }
}

impl Drop for GuestViews {
    fn drop(&mut self) {
        self.guests.iter().for_each(|guest| guest.end());
    }
}

#[cfg(test)]
mod tests;
