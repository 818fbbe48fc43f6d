//! `session.json`: what was recorded, how, and at what cost.

use std::fs;
use std::path::Path;

use serde::Serialize;

use crate::error::{RecordError, Result};
use crate::losses::CpuLosses;
use crate::vms::Vm;

/// How a session was recorded.
#[derive(Clone, Debug, Serialize)]
pub struct Recorded {
    /// This program's version.
    pub recorder: &'static str,
    /// The trace clock.
    pub clock: String,
    /// Events that were on.
    pub events: Vec<String>,
    /// Size of each CPU's buffer in the kernel.
    pub buffer_kib: u64,
    /// When it began, on the wall clock.
    pub begun_unix_ns: u64,
    /// How long it lasted.
    pub duration_ns: u64,
    /// What each CPU lost.
    pub cpus: Vec<CpuLosses>,
    /// CPU time of the recorder while it recorded.
    pub recorder_cpu_ns: u64,
    /// What went wrong without ending the recording.
    pub faults: Vec<String>,
    /// VMs that ran.
    pub vms: Vec<Vm>,
}

#[derive(Serialize)]
struct Session<'a> {
    schema: &'static str,
    title: String,
    machines: [Machine; 1],
    recorded: &'a Recorded,
}

#[derive(Serialize)]
struct Machine {
    file: &'static str,
    role: &'static str,
    name: Option<String>,
    origin: Option<String>,
}

/// Writes the file into a session's folder.
pub(crate) fn write(recorded: &Recorded, folder: &Path) -> Result<()> {
    let seconds = recorded.duration_ns / 1_000_000_000;
    let session = Session {
        schema: "hyperscope.session/1",
        title: format!("{} events of a host for {seconds} s", recorded.events.len()),
        machines: [Machine { file: "host.dat", role: "host", name: None, origin: None }],
        recorded,
    };
    let path = folder.join("session.json");
    let failed = RecordError::io("write", &path);
    let text = serde_json::to_string_pretty(&session).map_err(std::io::Error::from);
    text.and_then(|text| fs::write(&path, text + "\n")).map_err(failed)
}
