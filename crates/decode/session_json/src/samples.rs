//! Samples of what CPUs ran.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What CPUs ran was sampled, into files next to the recording of their machine. Null: that was not requested, or failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct SamplerSummary {
    /// The file with samples, in perf's format.
    pub file: String,
    /// The file that relates their clock to the recording's.
    pub clock_file: String,
    /// Size of both.
    pub bytes: u64,
    /// The code of the kernel where samples saw it run, in an ELF file such as /proc/kcore. Null: it was not kept.
    // Recorders of earlier versions do not report it.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub code: Option<CodeSummary>,
    /// What made the samples. Null: a guest did not say.
    #[schemars(extend("enum" = ["cycles", "cpu-clock", null]))]
    pub event: Option<String>,
    /// Samples a second on each CPU that were requested.
    #[schemars(extend("minimum" = 1))]
    pub hz: u32,
    /// Samples in the file. Null: a guest did not say.
    pub samples: Option<u64>,
    /// Records that the kernel's rings had no room for. Null: this kernel doesn't say all.
    pub lost: Option<u64>,
    /// How often the kernel held the sampling back since it took too long.
    pub throttled: u64,
    /// Code that programs had mapped before they were sampled. Null: a guest did not say.
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

/// Code that programs had mapped before they were sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct EarlierSummary {
    /// Mappings of files.
    pub files: u64,
    /// Those whose file's build id is among the samples: no function of another one is named.
    pub build_ids: u64,
    /// Those whose file was not read, as there were too many or it took too long.
    pub left_out: u64,
}
