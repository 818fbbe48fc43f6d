//! Debug files by their build ids from debuginfod servers.
//!
//! Only where `DEBUGINFOD_URLS` names servers: nothing is asked of any network else. [`Settings`] are those of
//! elfutils' client, and so is the cache, which other tools share. [`Debuginfod`] is a [`symbols::Fetch`].
//!
//! Neither servers nor what they send are trusted: all downloads together have a deadline, each has a size, and
//! what comes is kept only if it has the build id that was asked for. Which build ids are asked for may be a
//! guest's choice: how many has a bound, too.

#![forbid(unsafe_code)]
#![deny(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod cache;
mod client;
mod download;
mod settings;

pub use client::{Coming, Debuginfod, Watch};
pub use settings::{NoCache, Settings};
