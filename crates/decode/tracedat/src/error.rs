//! Errors that prevent reading; damage does not.

use raw_bytes::Truncated;

/// The file cannot be read as a trace.dat.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TraceDatError {
    /// The magic number is wrong.
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
        /// Offset of the version text in the file.
        offset: u64,
        /// The version text.
        version: String,
    },
    /// The byte order mark is neither 0 nor 1.
    #[error(
        "byte order mark {mark} at offset {offset:#x} is neither 0 nor 1; \
             the file is damaged, copy it again from where it was recorded"
    )]
    ByteOrder {
        /// Offset of the mark in the file.
        offset: u64,
        /// The mark found.
        mark: u8,
    },
    /// The file ends within a part that every reader needs.
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
    /// A required text is missing in the header of a version 6 file.
    #[error(
        "\"{expected}\" is missing at offset {offset:#x}; \
             the file is damaged, copy it again from where it was recorded"
    )]
    Missing {
        /// Expected offset of the text.
        offset: u64,
        /// The expected text.
        expected: &'static str,
    },
}

impl TraceDatError {
    pub(crate) fn short(what: &'static str) -> impl Fn(Truncated) -> Self {
        move |source| Self::Short { what, source }
    }
}
