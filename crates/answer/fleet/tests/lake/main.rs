//! A lake as whoever queries it sees it, whenever what changes it is stopped.

#![allow(clippy::unwrap_used)]

mod in_a_store;
mod kept;
mod memory_store;
mod needed;
mod stopped;
mod stopping;
mod whole;
