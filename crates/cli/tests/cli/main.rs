//! The `hyperscope` command as its users run it: on the bundled recordings, with right and wrong
//! arguments, sound and broken inputs.

#![allow(clippy::unwrap_used)]

mod ab;
mod advice_verified;
mod align;
mod boot;
mod calls;
mod cpu;
mod critical;
mod ctf;
mod cut;
mod debug_files;
mod diff;
mod errors;
mod events;
mod export;
mod fleet;
mod headlines;
mod hypertrace;
mod inputs;
mod irqs;
mod lake;
mod losses;
mod made_ctf;
mod manual;
mod misuse;
mod nested_symbols;
mod outputs;
mod page_profile;
mod pages;
mod paths;
mod perf_data;
mod perf_machines;
mod printed;
mod profile;
mod profile_instructions;
mod programs;
mod ranges;
mod readme;
mod recordings;
mod reports;
mod schemas;
mod sensitivity;
mod served;
mod small_inputs;
mod spool;
mod sums;
mod tables;
mod tool;
mod unreadable;
mod virtio;
mod vm_names;
mod vmm;
mod why;
mod without_vcpus;
