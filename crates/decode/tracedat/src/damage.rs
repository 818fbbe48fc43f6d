//! What goes wrong: the few errors that end reading, and damage that does not.

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
        "trace.dat version \"{version}\" at offset {offset:#x} is not known; \
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

    /// The value, or `None` with its damage noted.
    pub(crate) fn keep<T>(&mut self, result: Result<T, Damage>) -> Option<T> {
        result.map_err(|damage| self.add(damage)).ok()
    }

    pub(crate) fn into_vec(mut self) -> Vec<Damage> {
        if self.more > 0 {
            let last = self.kept.last().map_or(0, |damage| damage.offset);
            self.kept.push(Damage::new(last, format!("{} further damages not listed", self.more)));
        }
        self.kept
    }
}
