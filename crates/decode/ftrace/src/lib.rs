//! The kernel's own trace formats: descriptions of events, pages of the ring buffer.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod eventfmt;
pub mod ringbuf;
