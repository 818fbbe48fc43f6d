//! The program `hyperscope`: records hosts and guests, reads recordings, and shows running VMs.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use crate::verbs::Verb;

mod args;
mod channel_exits;
mod cmd;
mod debug_files;
mod guest_symbols;
mod page_names;
mod stored_frames;
mod verbs;

fn main() -> ExitCode {
    command::run::run::<Verb>()
}
