//! What the lab and the programs inside its machines share: their messages, and the measurement of what exits cost.

#![forbid(unsafe_code)]

pub mod exitcost;
pub mod wire;
