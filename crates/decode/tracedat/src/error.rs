//! The few errors that end reading; damage doesn't.

use raw_bytes::Truncated;

/// The file can't be read as a trace.dat at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TraceDatError {
    /// The first ten bytes are not those of a trace.dat.
    #[error(
        "not a trace.dat: the file does not begin with 17 08 44 \"tracing\"; \
             give the file trace-cmd record wrote"
    )]
    NotTraceDat,
    /// A container version other than 6 and 7.
    #[error(
        "trace.dat version \"{version}\" at offset {offset:#x} is not supported; \
             convert the file with trace-cmd convert --file-version 7"
    )]
    Version {
        /// Where the version text lies in the file.
        offset: u64,
        /// The version as written.
        version: String,
    },
    /// The byte for the byte order is neither 0 nor 1.
    #[error(
        "byte order mark {mark} at offset {offset:#x} is neither 0 nor 1; \
             the file is damaged, copy it again from where it was recorded"
    )]
    ByteOrder {
        /// Where the mark lies in the file.
        offset: u64,
        /// The mark found.
        mark: u8,
    },
    /// The file ends within the part every reader needs.
    #[error(
        "the file ends inside its {what}; \
             the recording or its copy was cut short, copy it again"
    )]
    Short {
        /// The part that is incomplete.
        what: &'static str,
        /// Where bytes were missing.
        #[source]
        source: Truncated,
    },
    /// The header of a version 6 file holds something else than it must.
    #[error(
        "\"{expected}\" is missing at offset {offset:#x}; \
             the file is damaged, copy it again from where it was recorded"
    )]
    Missing {
        /// Where the text should be.
        offset: u64,
        /// The text that should be there.
        expected: &'static str,
    },
}

impl TraceDatError {
    pub(crate) fn short(what: &'static str) -> impl Fn(Truncated) -> Self {
        move |source| Self::Short { what, source }
    }
}
