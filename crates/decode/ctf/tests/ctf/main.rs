//! Tests of the crate as a whole.

#![allow(clippy::unwrap_used)]

mod oracle;
mod pretty;
mod second;
mod written;
