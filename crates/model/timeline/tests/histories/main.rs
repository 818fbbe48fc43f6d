//! Exits of recordings made for one case each, and of random histories whose truth is known.

// Helpers of tests are not `#[test]` functions, which clippy.toml lets unwrap.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation)]

mod architectures;
mod buffers;
mod containers;
mod cycles;
mod history;
mod host;
mod losses;
mod nested;
mod parts;
mod random;
mod real;
mod steps_back;
mod threads;
mod trace_events;
