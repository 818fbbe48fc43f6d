//! A lake as its readers see it, whenever a change is interrupted.

#![allow(clippy::unwrap_used)]

mod cached_tables;
mod in_a_store;
mod lake_contents;
mod memory_store;
mod needed;
mod stopped;
mod stopping;
