//! VMs that ran on the host.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A running VM.
#[derive(Clone, Debug, PartialEq, Eq, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct Vm {
    /// Its name on the VMM's command line; else the program's name and process id.
    pub name: String,
    /// The VMM's process.
    pub pid: u32,
    /// The VMM's program.
    pub program: String,
    /// Its vCPUs, in order.
    pub vcpus: Vec<Vcpu>,
    /// The VMM's other threads, by id: the main loop, those of devices, workers.
    pub threads: Vec<VmmThread>,
    /// Its address for vsock, where its command line has it.
    pub vsock_cid: Option<u32>,
    /// Channels to an agent in it, as its command line has them, the best first.
    pub channels: Vec<String>,
}

/// A vCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct Vcpu {
    /// Its number.
    pub vcpu: u32,
    /// The thread that runs it.
    pub tid: u32,
    /// What the guest's TSC is ahead of the host's, where the kernel shows it.
    pub tsc_offset: Option<i64>,
    /// The guest's TSC ticks for each of the host's, as a fixed-point number.
    pub tsc_scaling_ratio: Option<u64>,
    /// How many bits of that are its fraction.
    pub tsc_scaling_bits: Option<u32>,
}

/// A thread of a VMM that runs no vCPU.
#[derive(Clone, Debug, PartialEq, Eq, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct VmmThread {
    /// The thread.
    pub tid: u32,
    /// Its name.
    pub name: String,
}
