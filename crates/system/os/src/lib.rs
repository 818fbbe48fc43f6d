//! Services of the operating system made safe: deadlines and signals, folders that others may write to, a process that confines itself.

#![forbid(unsafe_code)]

pub mod confine;
pub mod folder;
pub mod programs;
pub mod waits;
