//! Code shared by the lab and the programs inside its machines: their messages, and the measurement of exit costs.

#![forbid(unsafe_code)]

pub mod exitcost;
pub mod wire;
