//! What a session's recorder told of itself, in `session.json` beside the recording.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use report::RecorderCost;
use serde_json::Value;

/// A `session.json` longer than this is none.
const MAX_BYTES: u64 = 16 << 20;

/// What making this recording cost, where its recorder told.
pub(crate) fn recorder_cost(recording: &Path) -> Option<RecorderCost> {
    let mut text = Vec::new();
    let file = File::open(recording.parent()?.join("session.json")).ok()?;
    file.take(MAX_BYTES).read_to_end(&mut text).ok()?;
    let session: Value = serde_json::from_slice(&text).ok()?;
    let recorded = session.get("recorded")?;
    Some(RecorderCost {
        cpu_ns: recorded.get("recorder_cpu_ns")?.as_u64()?,
        duration_ns: recorded.get("duration_ns")?.as_u64()?,
        cpus: recorded.get("cpus")?.as_array()?.len() as u64,
    })
}
