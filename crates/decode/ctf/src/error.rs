//! What keeps a trace from being read.

/// Metadata that can't be read: nothing of the trace can.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CtfError {
    /// Its bytes are no metadata of CTF at all.
    #[error(
        "its metadata is not CTF: it begins neither as text (/* CTF 1.8 */), nor as packets, nor as CTF 2"
    )]
    NotMetadata,
    /// A packet of metadata is damaged.
    #[error("packet {packet} of its metadata, at offset {offset:#x}: {what}")]
    Packet {
        /// Its number, from 1.
        packet: usize,
        /// Where it begins.
        offset: usize,
        /// What is wrong.
        what: &'static str,
    },
    /// The text is not of the language.
    #[error("line {line} of its metadata: {what}")]
    Text {
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        what: String,
    },
    /// A fragment of CTF 2 is not what it should be.
    #[error("fragment {fragment} of its metadata: {what}")]
    Fragment {
        /// Its number, from 1.
        fragment: usize,
        /// What is wrong.
        what: String,
    },
    /// What it describes refers to something that is not there.
    #[error("its metadata: {what}")]
    Reference {
        /// What is wrong.
        what: String,
    },
    /// More is described than a trace has.
    #[error("its metadata describes more than {most} fields; no tracer writes that many")]
    TooMany {
        /// How many are read.
        most: usize,
    },
}

/// Fields go on where the packet's content ends, or say what can't be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} at bit {at} of the packet")]
pub struct Short {
    /// The bit, from the packet's beginning.
    pub at: u64,
    /// What is wrong.
    pub what: &'static str,
}
