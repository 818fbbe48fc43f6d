//! `hyperscope record` on this machine's own kernel. Without permission to trace (no root, no
//! tracefs), these tests print that and pass.

#![allow(clippy::unwrap_used)]

mod agent;
mod allowed;
mod alone;
mod confined;
mod cut_memory;
mod earlier_programs;
mod faults;
mod flight;
mod flight_interference;
mod guests;
mod interference;
mod killed_agents;
mod least_rights;
mod next_to_others;
mod ports;
mod recordings;
mod refusals;
mod samples;
mod starts;
mod textfile;
mod tool;
mod trace_cmd;
mod unit;
