//! The metrics of `hyperscope serve`: a host's intervals summed in monotonic counters, as text for Prometheus (0.0.4),
//! as OpenMetrics (1.0.0), as protocol buffers with native histograms, and as an HTML page.
//!
//! ```text
//!  live::Interval ─▶ Totals ─▶ page ─▶ text or protobuf, as a client accepts
//!                    bounded      └──▶ status: HTML
//! ```
//!
//! This module depends on neither BPF nor sockets. Names and meanings: docs/serve.md.

#![deny(clippy::print_stdout, clippy::print_stderr)]
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod accept;
mod exposition;
mod page;
mod protobuf;
mod status;
mod text;
mod totals;
mod vm;

pub use accept::accepted;
pub use exposition::Format;
pub use page::page;
pub use status::status;
pub use totals::{MIN_SERIES, Totals};
