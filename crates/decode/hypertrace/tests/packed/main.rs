//! Round trips through the guest module's own packing code. The tests compile
//! `kmod/hyperscope_guest/pack.h` as a program, give it events, and decode its frames.

#![allow(clippy::unwrap_used)]

mod damage;
mod density;
mod documented;
mod expected;
mod packer;
mod round_trip;
