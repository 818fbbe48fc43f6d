//! Errors that prevent reading; damage does not.

use raw_bytes::{Truncated, bytes};

/// The file cannot be read as a perf.data.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PerfDataError {
    /// The magic number is wrong.
    #[error(
        "not a perf.data: the file does not begin with PERFILE2; give the file perf record wrote"
    )]
    NotPerfData,
    /// A file of perf before 2.6.38 (2010), which has no byte order.
    #[error(
        "a perf.data of a perf from before 2011 (PERFFILE), which is not supported; record again with a \
        newer perf"
    )]
    Old,
    /// The file ends within its header.
    #[error(
        "the file ends inside its header; the recording or its copy was cut short, copy it again"
    )]
    Short {
        /// Where bytes were missing.
        #[source]
        source: Truncated,
    },
    /// The size of its header matches neither form.
    #[error("its header has {}, but a perf.data file has 104 and a pipe 16", bytes(*size))]
    HeaderSize {
        /// The header size in the file.
        size: u64,
    },
    /// A file of a recording that is a folder with several files.
    #[error(
        "part of a folder that perf record --threads wrote, whose records are in several files; \
         record without --threads, or make one file of it: perf inject -i FOLDER -o perf.data"
    )]
    Folder,
}
