//! Effects of hostile guests, hostile neighbours, hostile files and power failures on `hyperscope`, from
//! outside. `make test` runs a sample; `make test-hostile`, which sets `HYPERSCOPE_HOSTILE_ALL`, runs
//! everything.

#![allow(clippy::unwrap_used)]

#[path = "../record/agent.rs"]
#[allow(dead_code, reason = "each test binary uses a part")]
mod agent;
mod bombs;
mod connections;
mod crashes;
mod extent;
mod failing_disk;
mod folders;
mod growth;
mod identities;
#[cfg(target_arch = "x86_64")]
mod kills;
mod marks;
mod mutated_files;
mod neighbours;
mod played_agent;
mod pulled_plug;
mod recorders;
mod stalling_guests;
mod texts;
#[path = "../record/tool.rs"]
#[allow(dead_code, reason = "each test binary uses a part")]
mod tool;
#[cfg(target_arch = "x86_64")]
mod tracer;
