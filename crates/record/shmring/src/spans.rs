//! The second half of shared memory: what a host reports to a guest about its own vCPUs. The host writes, the
//! guest reads, and neither waits for the other.
//!
//! It lies after the part of the memory in which an agent lays out a region, and is laid out by the host
//! alone. The guest's side maps it for reading; so several programs in the guest can read it
//! at a time. docs/formats/spans.md describes it byte by byte.

mod area;
mod reader;
mod span;
mod writer;

#[cfg(test)]
mod tests;

pub use crate::parts::spans_part;
pub use area::{MAX_VCPUS, SpansError};
pub use reader::{News, SpanReader};
pub use span::{Activity, By, Span};
pub use writer::{Coverage, SpanWriter};
