//! What the lab and the command servers inside its machines say to each other.
//!
//! A control port carries one *session* at a time: frames both ways, one request after the other.
//! The lab opens a session with [`Message::Open`] and a number of its choice, the server answers
//! with [`Message::Opened`] and the same number. What comes before that answer belongs to a session
//! whose client is gone and is skipped, so that a client may die at any byte.

mod frame;
mod message;
mod truth;
mod usage;

pub use frame::{FrameError, MAX_PAYLOAD_BYTES, read, skip_to_open, skip_to_opened, write};
pub use message::{Ended, Exec, GuestConfig, Message, Put, Ready};
pub use truth::{Key, Truth};
pub use usage::{LOAD_THREAD, Looped, MEASURE_BEGIN, MEASURE_END, Measured, ThreadUsage, Usage};

/// Names of the ports that carry sessions: this and a number.
pub const PORT_PREFIX: &str = "hyperscope.control.";

/// Control ports of every machine: the number of sessions that can run at the same time.
pub const PORTS: usize = 4;

/// Where a machine's initramfs says what kind of machine it is, as JSON of a [`GuestConfig`].
pub const CONFIG_PATH: &str = "/lab/machine.json";

/// What a server prints on the console once it can be talked to.
pub const READY_LINE: &str = "hyperscope-lab: ready";
