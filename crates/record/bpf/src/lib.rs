//! BPF programs in the host's kernel: loads them, and collects what guests send through them.

#![forbid(unsafe_code)]

pub mod collector;
pub mod load;
