//! Names of places, held against what other programs say of the same files and recordings.

#![allow(clippy::unwrap_used)]

mod addresses;
mod files;
mod programs;
mod recordings;
