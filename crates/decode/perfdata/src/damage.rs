//! What goes wrong: the few errors that end reading, and damage that does not.

use raw_bytes::Truncated;

/// The file can't be read as a perf.data at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PerfDataError {
    /// The first eight bytes are those of no perf.data.
    #[error(
        "not a perf.data: the file does not begin with PERFILE2; give the file perf record wrote"
    )]
    NotPerfData,
    /// A file of perf before 2.6.38 (2010), which wrote no byte order.
    #[error("a perf.data of a perf before 2011 (PERFFILE), which is not read; record again")]
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
    /// The size of its header is that of neither form.
    #[error("a perf.data with a header of {size} bytes: files have 104, pipes 16")]
    HeaderSize {
        /// The size that the file has there, in bytes.
        size: u64,
    },
    /// One of several files of a recording that is a folder.
    #[error(
        "part of a folder that perf record --threads wrote, whose records are in several files; \
         record without --threads, or make one file of it: perf inject -i FOLDER -o perf.data"
    )]
    Folder,
}

/// A part of the file that is missing or wrong; the rest is given as if nothing had happened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at offset {offset:#x}: {what}")]
pub struct Damage {
    /// Where in the file, in bytes.
    pub offset: u64,
    /// What is wrong there and what was done about it.
    pub what: String,
}

impl Damage {
    pub(crate) fn new(offset: u64, what: impl Into<String>) -> Self {
        Self { offset, what: what.into() }
    }

    pub(crate) fn short(what: &str, cut: Truncated) -> Self {
        let Truncated { offset, wanted, have } = cut;
        Self::new(offset, format!("{what}: {wanted} bytes wanted, {have} left"))
    }
}

/// Damages past this many are counted, not kept: a hostile file must not fill memory with them.
const MOST_KEPT: usize = 1000;

/// The damages of one file, in the order they were found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Damages {
    kept: Vec<Damage>,
    more: u64,
}

impl Damages {
    pub(crate) fn add(&mut self, damage: Damage) {
        if self.kept.len() < MOST_KEPT {
            self.kept.push(damage);
        } else {
            self.more = self.more.saturating_add(1);
        }
    }

    pub(crate) fn note(&mut self, offset: u64, what: impl Into<String>) {
        self.add(Damage::new(offset, what));
    }

    /// The value, or `None` with what cut it noted.
    pub(crate) fn keep<T>(&mut self, what: &str, result: Result<T, Truncated>) -> Option<T> {
        result.map_err(|cut| self.add(Damage::short(what, cut))).ok()
    }

    pub(crate) fn into_vec(mut self) -> Vec<Damage> {
        if self.more > 0 {
            let last = self.kept.last().map_or(0, |damage| damage.offset);
            self.kept.push(Damage::new(last, format!("{} further damages not listed", self.more)));
        }
        self.kept
    }
}
