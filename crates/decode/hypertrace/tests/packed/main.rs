//! What the guest module's own code packs comes back as it was.
//!
//! `kmod/hyperscope_guest/pack.h` is compiled as a program, given events, and the frames it makes
//! are decoded: events in, events out.

#![allow(clippy::unwrap_used)]

mod damage;
mod density;
mod documented;
mod expected;
mod packer;
mod round_trip;
