//! Serves `trace-cmd record -A`, as `trace-cmd agent` does: one recording at a time, into an instance
//! of tracefs of its own.
//!
//! A host may ask for events, filters, tracers of functions, a clock, the size of buffers and tracing
//! options. It can't have a program run here.

mod address;
mod arguments;
mod metadata;
mod ports;
mod server;
mod session;
mod time_sync;

pub use address::address;
pub use server::Server;
