//! The kernel's own trace formats: event formats and ring-buffer pages.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod eventfmt;
pub mod ringbuf;
