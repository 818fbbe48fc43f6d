//! Converts ring-buffer pages to records and losses, and back.
//!
//! The kernel's trace ring buffer is read in pages (sub-buffers), each with its own time stamp and
//! readable by itself. This module walks such pages: no IO, no unsafe code, no knowledge of events.
//! It mirrors `struct buffer_data_page` and `struct ring_buffer_event` of
//! `kernel/trace/ring_buffer.c` and `include/linux/ring_buffer.h`.

#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

mod order;
mod page;
mod record;
mod writer;

pub use order::{PageTime, StampOrder, StepBack};
pub use page::{MISSED_EVENTS, MISSED_STORED, Missed, Page, PageDamage, PageLayout};
pub use record::{Record, RecordDamage, Records};
pub use writer::{PageWriter, TooLong};
