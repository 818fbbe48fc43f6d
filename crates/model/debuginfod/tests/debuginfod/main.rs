//! Debug files from servers: one made by hand, which does what none should, and Debian's own.

#![allow(clippy::unwrap_used)]

mod bad_servers;
mod programs;
mod real_server;
mod server;
