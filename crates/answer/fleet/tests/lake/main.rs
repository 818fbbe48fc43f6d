//! A lake as whoever queries it sees it, whenever what changes it is stopped.

#![allow(clippy::unwrap_used)]

mod cached_tables;
mod in_a_store;
mod lake_contents;
mod memory_store;
mod needed;
mod stopped;
mod stopping;
