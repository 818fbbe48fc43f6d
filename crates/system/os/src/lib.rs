//! Operating system services: deadlines and signals, folders that other users may write to,
//! confinement of threads.

#![forbid(unsafe_code)]

pub mod confine;
pub mod folder;
pub mod programs;
pub mod waits;
