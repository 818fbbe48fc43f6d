//! BPF programs in the host: loading them, and collecting what guests send through them.

#![forbid(unsafe_code)]

pub mod collector;
pub mod load;
