//! trace-cmd's protocol between `trace-cmd record -A` and `trace-cmd agent`, version 3.
//!
//! There is no text that specifies it; this mirrors what trace-cmd's lib/trace-cmd/trace-msg.c and
//! trace-timesync*.c send and take. A message is a head of three numbers (its size, its command, the
//! size of the command's fixed part), the fixed part, and the rest; numbers are big endian but for
//! two payloads of time synchronisation ([`kvm`] and [`TimeSync::probe`]), which are structures of
//! the sender's own byte order.
//!
//! ```text
//! host                             agent
//! TRACE_REQ arguments, protocols ▶
//!                                ◀ TRACE_RESP a port for each CPU, one for time synchronisation
//! connects to the latter         ▶ TIME_SYNC both ways, until the end
//!                                ◀ SEND_DATA … FIN_DATA: a trace.dat without pages
//! connects to CPUs' ports        ◀ pages, until the end
//! CLOSE                          ▶
//!                                ◀ CLOSE_RESP, when all pages are sent
//! ```

mod fields;
mod frame;
pub mod kvm;
mod message;
pub mod ptp;
mod request;
mod response;
mod time_sync;

pub use frame::{ReadError, decode, encode, read, write};
pub use message::{DecodeError, Message};
pub use request::Request;
pub use response::Response;
pub use time_sync::TimeSync;

/// The default vsock port of an agent.
pub const PORT: u32 = 823;
/// The longest message, its head included.
pub const MAX_BYTES: usize = 8192;
/// Max bytes of one [`Message::Data`].
pub const MAX_DATA_BYTES: usize = MAX_BYTES - frame::HEAD_BYTES;
