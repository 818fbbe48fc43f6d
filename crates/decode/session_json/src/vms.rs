//! VMs that ran on the host.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A VM that ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct Vm {
    /// Its name on the VMM's command line; otherwise program and process id.
    pub name: String,
    /// The VMM's process.
    pub pid: u32,
    /// The VMM's program.
    pub program: String,
    /// Its vCPUs and their threads, in order.
    pub vcpus: Vec<Vcpu>,
    /// The VMM's other threads, those that run no vCPU, when recording began; 1024 at most.
    // Recorders of earlier versions do not report it.
    #[schemars(skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<VmmThread>,
    /// Its vsock address. Null: its command line has none.
    pub vsock_cid: Option<u32>,
    /// Channels to an agent in it, from its command line, the best first.
    pub channels: Vec<String>,
}

/// A vCPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct Vcpu {
    /// Its number.
    pub vcpu: u32,
    /// The thread that runs it.
    pub tid: u32,
    /// The offset of the guest's TSC from the host's. Null: the kernel does not show it.
    pub tsc_offset: Option<i64>,
    /// The guest's TSC ticks per host tick, in fixed point. Null: the kernel does not show it.
    pub tsc_scaling_ratio: Option<u64>,
    /// Fraction bits of the ratio. Null: the kernel does not show it.
    pub tsc_scaling_bits: Option<u32>,
}

/// A thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct VmmThread {
    /// Its id.
    pub tid: u32,
    /// Its name.
    pub name: String,
}
