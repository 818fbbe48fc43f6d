//! Live views of guests: at the end of each interval their agents report what their CPUs did and which tasks ran. A
//! thread per guest connects, and reconnects after the guest disappears. Callers wait for an answer only until their
//! timeout.

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

/// A guest, and its view of the last interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenGuest {
    /// The requested name: a VM's name, or `[NAME=]CHANNEL`.
    pub requested_name: String,
    /// Name of the guest.
    pub name: String,
    /// Channel to its agent.
    pub channel: String,
    /// Process of its VM, if known.
    pub process: Option<u32>,
    /// Its view, or why it has no view.
    pub view: Result<GuestView, String>,
}

/// Why guests can't be queried.
#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    /// The guest is unknown or ambiguous.
    #[error(transparent)]
    NoGuest(#[from] NoGuest),
    /// Its channel serves one host at a time, which may be recording.
    #[error(
        "the channel {channel} of guest {name} serves only one recorder: for a guest's own view, use vsock, tls-vsock, tls, tcp-plain or unix"
    )]
    OneAtATime { name: String, channel: String },
    /// Starting a thread failed, or there are no random numbers.
    #[error("cannot query guests")]
    System(#[from] io::Error),
}

/// The queried guests.
#[derive(Debug, Default)]
pub struct GuestViews {
    guests: Vec<Arc<Question>>,
}

impl GuestViews {
    /// Starts querying guests: names of VMs, or `[NAME=]CHANNEL`. A view has at most `most_tasks` tasks.
    ///
    /// # Errors
    /// When a name is unknown or ambiguous, or the guest's channel can't be shared with a recorder.
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

    /// Waits until each guest has answered for the first time, or has failed, or the timeout expires.
    pub fn wait_until_ready(&self, timeout: Duration) {
        let end = Instant::now() + timeout;
        self.guests.iter().for_each(|guest| guest.wait_until_ready(end));
    }

    /// Asks all guests what happened since the last question.
    pub fn ask(&self) {
        self.guests.iter().for_each(|guest| guest.ask());
    }

    /// Waits for the answers until the timeout; later answers are shown with the next interval.
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
