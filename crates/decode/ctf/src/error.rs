//! Errors in a trace.

/// Unreadable metadata: without it, the whole trace is unreadable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CtfError {
    /// The bytes are not CTF metadata.
    #[error(
        "its metadata is not CTF: it begins neither as text (/* CTF 1.8 */), nor as packets, nor as CTF 2"
    )]
    NotMetadata,
    /// A packet of metadata is damaged.
    #[error("packet {packet} of its metadata, at offset {offset:#x}: {what}")]
    Packet {
        /// Its number, from 1.
        packet: usize,
        /// Offset of the packet.
        offset: usize,
        /// Description of the fault.
        what: &'static str,
    },
    /// The text does not follow the grammar.
    #[error("line {line} of its metadata: {what}")]
    Text {
        /// The line, from 1.
        line: usize,
        /// Description of the fault.
        what: String,
    },
    /// A fragment of CTF 2 is malformed.
    #[error("fragment {fragment} of its metadata: {what}")]
    Fragment {
        /// Its number, from 1.
        fragment: usize,
        /// Description of the fault.
        what: String,
    },
    /// A reference to something that does not exist.
    #[error("its metadata: {what}")]
    Reference {
        /// Description of the fault.
        what: String,
    },
    /// The metadata exceeds a limit.
    #[error("its metadata describes more than {most} fields; no tracer writes that many")]
    TooMany {
        /// The limit.
        most: usize,
    },
}

/// Fields extend past the end of the packet's content, or have impossible values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} at bit {at} of the packet")]
pub struct Short {
    /// The bit, from the start of the packet.
    pub at: u64,
    /// Description of the fault.
    pub what: &'static str,
}
