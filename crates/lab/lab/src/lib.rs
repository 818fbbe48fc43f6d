//! Starts virtual hosts, guests and nested guests with one command.
//!
//! A lab is a machine that hosts a guest with KVM, which may itself host one. The first machine runs on this system's
//! KVM if a kernel really boots in it, otherwise in QEMU's emulator, which emulates the virtualization extensions that
//! KVM needs.
//!
//! One struct (`machine`) describes a machine and generates its QEMU command line, for machines started here and inside
//! the lab: the lab starts a guest's QEMU as a command in the machine below. A session with level 2 is a session with
//! level 1 that carries the bytes of another one. Ending a lab needs no saved state: its processes are found by the
//! folder on their command lines. `labguest` runs inside the machines and implements `labguest::wire` over
//! virtio-serial. A program that generates events reports what a recording must contain (`labguest::wire::Truth`), and
//! `cli`, which knows both sides, compares.

#![forbid(unsafe_code)]

mod accelerator;
mod apt;
mod arch;
mod boot_artifacts;
mod cache;
mod channel;
mod description;
mod elf;
mod emulator_faults;
mod error;
mod hyperscope_recorder;
mod image;
mod initramfs;
mod kernel_modules;
mod lab;
mod machine;
mod machine_programs;
mod monitor;
mod packages;
mod processes;
mod recording;
mod root;
mod run;
mod scenario;
mod session;
mod share;
mod snapshot;
mod stale_code;
mod start;
mod timers;
mod tool;
mod trace_cmd;
mod up;
mod watch;

pub use arch::Arch;
pub use cache::Cache;
pub use description::{Description, Guest};
pub use error::{LabError, Result};
pub use lab::{Lab, Status, clean};
pub use labguest::wire::{Ended, Exec, Key, Put, Truth};
pub use machine::{Accelerator, Board, Net};
pub use recording::LabRecording;
pub use run::MODULE;
pub use scenario::Scenario;
pub use session::{CommandOutput, Input, Outputs, Session};
pub use tool::Tool;
pub use trace_cmd::until_it_accepts;
pub use up::{ProgressFn, Step, UpOptions, fetch, missing_tools, need_module};
