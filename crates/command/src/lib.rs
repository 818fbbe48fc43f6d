//! The shared part of the programs `hyperscope`, `hyperscope-lab` and `hyperscope-fleet`: options, reading the command
//! line, running a verb, output, exit codes, manual and completions.
//!
//! A program lists its verbs with [`verbs!`], describes itself as a [`Program`](verbs::Program), and calls
//! [`run::run`].

#![forbid(unsafe_code)]
#![allow(missing_docs, reason = "only programs of this repository link it")]

pub mod args;
pub mod event_names;
pub mod exit_codes;
pub mod notice;
pub mod output;
pub mod programs;
pub mod progress;
pub mod run;
pub mod running;
pub mod signals;
pub mod verb;
pub mod verbs;

#[global_allocator]
static MEMORY: sys::CountedMemory = sys::CountedMemory;
