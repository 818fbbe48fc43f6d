//! The Common Trace Format, which LTTng, barectf, babeltrace and `perf data convert --to-ctf` write.
//!
//! [`Layout::parse`] parses a trace's metadata (CTF 1.8 as text or in packets, CTF 2 as JSON) into
//! one type: the layout of packets, event headers and events. [`Packets`] finds the packets of a
//! data stream file, and [`Events`] iterates over the events of a packet. An event's fields are
//! available value by value ([`Events::visit`]), or as [`Step`]s that give their positions, for
//! callers that copy bytes.
//!
//! The crate does not interpret events and does not read files: callers pass the bytes.
//!
//! Input is not trusted. Sizes are checked against the available bytes before use; a damaged packet
//! ends its file, and earlier packets are delivered.
//!
//! Sources: the specifications of CTF 1.8.3 and CTF 2 (diamon.org/ctf).

#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![deny(clippy::indexing_slicing, clippy::print_stdout, clippy::print_stderr)]

mod bits;
mod error;
mod events;
mod field;
mod header;
mod json;
mod layout;
mod metadata;
mod packet;
mod resolve;
mod skim;
mod steps;
mod tokens;
mod tsdl;
mod walk;

pub use bits::Cursor;
pub use error::{CtfError, Short};
pub use events::{Event, Events, Taken};
pub use field::{
    Array, Choice, Field, FieldType, Float, Integer, Label, Length, Role, Source, Struct, Text,
    VarInteger, Variant,
};
pub use layout::{Clock, EnvValue, EventClass, Layout, StreamClass};
pub use metadata::{is_metadata, is_stream};
pub use packet::{Packet, PacketDamage, Packets};
pub use raw_bytes::ByteOrder;
pub use steps::{FixedField, FixedType, Scope, Step};
pub use walk::{Nothing, Visit, Walker};
