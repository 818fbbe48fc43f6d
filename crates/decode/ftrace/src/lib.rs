//! The kernel's own trace formats: descriptions of events, pages of the ring buffer.

#![forbid(unsafe_code)]

pub mod eventfmt;
pub mod ringbuf;
