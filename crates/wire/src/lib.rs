//! Messages between a guest's agent and the host that records it.
//!
//! Bytes to messages and back, nothing else: no channel, no clock, no file. Neither side trusts the
//! other's bytes: every length is checked before memory is taken.

#![forbid(unsafe_code)]
