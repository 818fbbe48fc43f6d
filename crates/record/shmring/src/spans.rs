//! Spans in shared memory: a host's reports to a guest about the guest's vCPUs. The host writes, the guest reads, and
//! neither waits for the other.
//!
//! The area follows the part of the memory in which an agent lays out a region. Only the host lays it out. The guest
//! maps it read-only, so several programs in the guest can read it at a time. docs/formats/spans.md specifies it byte
//! by byte.

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
