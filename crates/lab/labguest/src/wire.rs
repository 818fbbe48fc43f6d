//! Messages between the lab and the command servers inside its machines.
//!
//! A control port carries one *session* at a time: frames both ways, one request after another. The lab opens a session
//! with [`Message::Open`] and a number that it chooses, the server answers with [`Message::Opened`] and the same
//! number. Bytes before that answer belong to a session whose client is gone and are skipped, so that a client may die
//! at any byte.

mod frame;
mod message;
mod truth;
mod usage;

pub use frame::{FrameError, MAX_PAYLOAD_BYTES, read, skip_to_open, skip_to_opened, write};
pub use message::{Ended, Exec, GuestConfig, Message, Put, Ready};
pub use truth::{Key, Truth};
pub use usage::{LOAD_THREAD, Looped, MEASURE_BEGIN, MEASURE_END, Measured, ThreadUsage, Usage};

/// Prefix of the names of ports that carry sessions; a number follows.
pub const PORT_PREFIX: &str = "hyperscope.control.";

/// Control ports of every machine: the max number of parallel sessions.
pub const PORTS: usize = 4;

/// The machine's configuration in its initramfs, as JSON of a [`GuestConfig`].
pub const CONFIG_PATH: &str = "/lab/machine.json";

/// The server's console message once it accepts sessions.
pub const READY_LINE: &str = "hyperscope-lab: ready";
