//! Downloads debug files by build id from debuginfod servers.
//!
//! Only the servers in `DEBUGINFOD_URLS` are contacted; without it, there are no network requests.
//! [`Settings`] and the cache are those of elfutils' client, and other tools share the cache.
//! [`Debuginfod`] is a [`symbols::Fetch`].
//!
//! Servers and their data are not trusted: all downloads together have a deadline, each has a
//! maximum size, and a file is stored only if it has the requested build id. A guest can choose the
//! requested build ids, so their number is bounded, too.

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
