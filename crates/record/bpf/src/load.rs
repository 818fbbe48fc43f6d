//! Loads the BPF programs of `bpf/` into the host's kernel: relocated against the types of the kernel and KVM's module,
//! on raw tracepoints, with errors that name what is missing.

mod error;
mod kernel_types;
mod object;
mod run_times;

pub use error::{LoadError, Result};
pub use kernel_types::kernel_types;
pub use object::{
    attach, attach_for, attach_optional, load_object, load_program, program, take_map,
};
pub use run_times::RunTimes;
