//! Samples of what CPUs ran.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct SamplerSummary {
    /// The file, in the form of perf's.
    pub file: String,
    /// The file that says how its clock goes with the recording's.
    pub clock_file: String,
    /// Bytes of both.
    pub bytes: u64,
    /// The file with the kernel's code where samples saw it, and its bytes; none: it was not kept.
    pub code: Option<CodeSummary>,
    /// What made the samples: `cycles` or `cpu-clock`; none: a guest did not say.
    pub event: Option<String>,
    /// Samples a second that were asked for, on each CPU.
    pub hz: u32,
    /// Samples in the file; none: a guest did not say.
    pub samples: Option<u64>,
    /// Records that the rings had no room for; none: the kernel doesn't say all.
    pub lost: Option<u64>,
    /// How often the kernel held an event back.
    pub throttled: u64,
    /// Code that was mapped before it began; none: a guest did not say.
    pub earlier: Option<EarlierSummary>,
}

/// The kernel's code that was kept.
#[derive(Clone, Debug, PartialEq, Eq, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct CodeSummary {
    /// The file, an ELF file as /proc/kcore is one.
    pub file: String,
    /// Its bytes.
    pub bytes: u64,
}

/// Code that programs had mapped before they were sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct EarlierSummary {
    /// Mappings of files.
    pub files: u64,
    /// Those whose file's build id is among the samples: without it no function of the file is named.
    pub build_ids: u64,
    /// Those whose file was not read, as there were too many.
    pub left_out: u64,
}
