//! Serves `trace-cmd record -A` like `trace-cmd agent`: one recording at a time, into a new tracefs instance.
//!
//! A host may request events, filters, function tracers, a clock, buffer sizes and tracing options. It can't run a
//! program here.

mod address;
mod arguments;
mod metadata;
mod ports;
mod server;
mod session;
mod time_sync;

pub use address::address;
pub use server::Server;
