//! Samples of what CPUs ran.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Samples of CPUs, in files next to the recording of their machine. Null: they were not requested, or failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct SamplerSummary {
    /// The file with samples, in perf's format.
    pub file: String,
    /// The file that relates their clock to the recording's.
    pub clock_file: String,
    /// Size of both.
    pub bytes: u64,
    /// The sampled parts of the kernel's code, in an ELF file like /proc/kcore. Null: they were not kept.
    // Recorders of earlier versions do not report it.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub code: Option<CodeSummary>,
    /// The source of the samples. Null: a guest did not report it.
    #[schemars(extend("enum" = ["cycles", "cpu-clock", null]))]
    pub event: Option<String>,
    /// Samples a second on each CPU that were requested.
    #[schemars(extend("minimum" = 1))]
    pub hz: u32,
    /// Samples in the file. Null: a guest did not report it.
    pub samples: Option<u64>,
    /// Records that did not fit into the kernel's rings. Null: this kernel does not report them all.
    pub lost: Option<u64>,
    /// How often the kernel throttled sampling because it took too long.
    pub throttled: u64,
    /// Code that programs had mapped before sampling began. Null: a guest did not report it.
    // Recorders of earlier versions do not report it.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub earlier: Option<EarlierSummary>,
}

/// The code of the kernel that was kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct CodeSummary {
    /// The file.
    pub file: String,
    /// Its size.
    pub bytes: u64,
}

/// Code that programs had mapped before sampling began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct EarlierSummary {
    /// Mappings of files.
    pub files: u64,
    /// Those whose file's build id is among the samples: only their functions have names.
    pub build_ids: u64,
    /// Those whose file was not read, because there were too many or it took too long.
    pub left_out: u64,
}
