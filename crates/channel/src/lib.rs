//! Ways from a guest's agent to the host that records it, all behind one interface.
//!
//! A channel has a control stream and page streams (see `wire`). Whatever carries them is a
//! [`Stream`] of bytes that never makes its user wait longer than it wants to: a virtio-serial port,
//! a vsock or TCP connection, a Unix socket.

mod address;
mod batch;
mod control;
mod listener;
mod ports;
mod sink;
mod stream;

pub use address::{AddressError, GuestAddress, HostAddress, PORT};
pub use control::{Control, Heard};
pub use listener::{Listener, Peer};
pub use ports::{GuestPorts, PortSockets};
pub use sink::{PageSink, Sent};
pub use stream::{Stream, Wait};
