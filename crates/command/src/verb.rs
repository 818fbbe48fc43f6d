//! The interface that every verb implements next to its options.

use std::process::ExitCode;

use session::When;

use crate::args::memory::MemoryArgs;
use crate::args::part::{PartArgs, RangeArgs};

/// The arguments of a verb. Nothing has a default: a verb that says nothing of its memory or of its range of time
/// doesn't compile, nor does one that is in no group of [`crate::verbs`].
pub trait VerbArgs {
    /// What bounds its memory.
    fn memory(&self) -> Memory;
    /// The time that it reads of recordings.
    fn range(&self) -> Range;
    /// Does it.
    ///
    /// # Errors
    /// [`Conflict`] where the arguments make no sense together; another error where it failed.
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

/// What bounds a verb's memory.
#[derive(Clone, Copy, Debug)]
pub enum Memory {
    /// `--max-memory` and `--max-spool`, for it reads files that anybody may have written.
    Limits(MemoryArgs),
    /// No limit: it reads no recordings, or other programs read them.
    Unbounded,
}

/// The time that a verb reads of recordings.
#[derive(Clone, Copy, Debug)]
pub enum Range {
    /// From a time to another, where they are given.
    Within {
        /// `--from`.
        from: Option<When>,
        /// `--to`.
        to: Option<When>,
    },
    /// All of it, or it reads none.
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
