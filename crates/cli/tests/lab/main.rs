//! The lab from outside: real kernels under QEMU, on this machine.
//!
//! Packages are fetched once and cached with images and snapshots in the build folder. If apt is
//! missing, or `HYPERSCOPE_SKIP_LAB` is set, these tests print that and pass.

#![allow(clippy::unwrap_used)]

mod aarch64;
mod ab;
mod architecture;
mod bench;
mod bench_advice;
mod bench_tracers;
mod boot;
mod churn;
mod collector;
mod corpus;
mod critical;
mod delays_seen;
mod every_scenario;
mod exit_costs;
mod flight;
mod guest_faults;
mod guest_instructions;
mod guest_views;
mod guests;
mod hangs;
mod hypertrace;
mod known_shares;
mod leftovers;
mod machines;
mod nested_writes;
mod patience;
mod prometheus;
mod publish;
mod recorded;
mod recorder;
mod refusals;
mod sample_costs;
mod samples;
mod scenarios;
mod sensitivity;
mod stands_still;
mod tool;
mod top;
mod trace_cmd;
mod tracers;
mod unplugged;
mod virtio_disk;
mod virtio_packets;
mod vmm;
