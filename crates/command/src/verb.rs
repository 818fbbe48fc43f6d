//! The interface that every verb implements next to its options.

use std::process::ExitCode;

use session::When;

use crate::args::memory::MemoryArgs;
use crate::args::part::{PartArgs, RangeArgs};

/// The arguments of a verb. No method has a default: a verb must declare its memory limit and its
/// time range, and must be in a group of [`crate::verbs`].
pub trait VerbArgs {
    /// The limit of its memory.
    fn memory(&self) -> Memory;
    /// The range of time that it reads from recordings.
    fn range(&self) -> Range;
    /// Runs the verb.
    ///
    /// # Errors
    /// [`Conflict`] if the arguments conflict; another error if the verb fails.
    fn run(&self) -> anyhow::Result<ExitCode>;
}

impl<V: VerbArgs> VerbArgs for Box<V> {
    fn memory(&self) -> Memory {
        V::memory(self)
    }

    fn range(&self) -> Range {
        V::range(self)
    }

    fn run(&self) -> anyhow::Result<ExitCode> {
        V::run(self)
    }
}

/// The limit of a verb's memory.
#[derive(Clone, Copy, Debug)]
pub enum Memory {
    /// `--max-memory` and `--max-spool`, because it reads untrusted files.
    Limits(MemoryArgs),
    /// No limit: it reads no recordings, or other programs read them.
    Unbounded,
}

/// The range of time that a verb reads from recordings.
#[derive(Clone, Copy, Debug)]
pub enum Range {
    /// Between two times, if given.
    Within {
        /// `--from`.
        from: Option<When>,
        /// `--to`.
        to: Option<When>,
    },
    /// All of it; also of a verb that reads no recordings.
    Whole,
}

impl From<RangeArgs> for Range {
    fn from(args: RangeArgs) -> Self {
        Self::Within { from: args.from, to: args.to }
    }
}

impl From<&PartArgs> for Range {
    fn from(args: &PartArgs) -> Self {
        args.range.into()
    }
}

/// A conflict between arguments: the process ends with code 2 and shows the usage.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Conflict(pub String);
