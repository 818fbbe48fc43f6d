//! `session.json`: what was recorded, how, and at what cost.

use std::io;

use os::folder::Folder;
use serde::Serialize;
use tracefs::UnixPair;
use vms::Vm;

use crate::error::{RecordError, Result};
use crate::flight::FlightSummary;
use crate::guest::GuestSummary;
use crate::host_identity::HostIdentity;
use crate::hypercalls::CollectorSummary;
use crate::losses::CpuLosses;
use crate::module::ModuleSummary;
use crate::samples::SamplerSummary;
use crate::session_folder::SessionFolder;
use crate::tracer::TracerSummary;

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
    /// The host; none: it was not recorded, only guests were.
    pub host: Option<HostIdentity>,
    /// The host's trace clock and Unix time, when it began and when it ended; none where the kernel alone can read
    /// that clock.
    pub clock_pairs: Vec<UnixPair>,
    /// What each CPU lost. None: the host was not recorded, only guests were.
    pub cpus: Vec<CpuLosses>,
    /// CPU time of the recorder while it recorded.
    pub recorder_cpu_ns: u64,
    /// What went wrong without ending the recording.
    pub faults: Vec<String>,
    /// VMs that ran.
    pub vms: Vec<Vm>,
    /// Guests that were recorded, too.
    pub guests: Vec<GuestSummary>,
    /// Guests whose module stored events in memory that they share.
    pub modules: Vec<ModuleSummary>,
    /// Hypercalls that were collected; none: that was not asked for, or failed.
    pub collector: Option<CollectorSummary>,
    /// What the host's CPUs ran was sampled; none: that was not asked for, or failed.
    pub sampler: Option<SamplerSummary>,
    /// The tracer of functions; none: that was not asked for.
    pub tracer: Option<TracerSummary>,
    /// How a flight recorder dumped it; none: it was recorded from its begin to its end.
    pub flight: Option<FlightSummary>,
}

impl Recorded {
    /// Writes `session.json` again into a session's folder, with what was learned since.
    ///
    /// # Errors
    /// When it can't be written: the one that was there stays.
    pub fn write(&self, session: &SessionFolder) -> Result<()> {
        write(self, session)
    }
}

impl Default for Recorded {
    fn default() -> Self {
        Self {
            recorder: concat!("hyperscope ", env!("CARGO_PKG_VERSION")),
            clock: String::new(),
            events: Vec::new(),
            buffer_kib: 0,
            begun_unix_ns: 0,
            duration_ns: 0,
            host: None,
            clock_pairs: Vec::new(),
            cpus: Vec::new(),
            recorder_cpu_ns: 0,
            faults: Vec::new(),
            vms: Vec::new(),
            guests: Vec::new(),
            modules: Vec::new(),
            collector: None,
            sampler: None,
            tracer: None,
            flight: None,
        }
    }
}

#[derive(Serialize)]
struct Session<'a> {
    schema: &'static str,
    title: String,
    machines: Vec<SessionMachine>,
    recorded: &'a Recorded,
}

#[derive(Serialize)]
struct SessionMachine {
    file: String,
    role: &'static str,
    name: Option<String>,
    origin: Option<String>,
}

/// Bytes that are kept free for the file: it says what is missing when the disk is full.
const ROOM_BYTES: usize = 256 << 10;

const ROOM: &str = ".room";
const FILE: &str = "session.json";

/// Takes the room that the file will need, in a session's folder.
pub(crate) fn take_room(folder: &Folder) -> Result<()> {
    let taken = folder.write_new(ROOM, &vec![0; ROOM_BYTES]);
    taken.map_err(RecordError::io("write", &folder.path().join(ROOM)))
}

/// Gives that room back.
pub(crate) fn free_room(folder: &Folder) {
    // Where there is none, nothing was to be had.
    let _ = folder.remove(ROOM);
}

/// Writes the file into a session's folder.
pub(crate) fn write(recorded: &Recorded, folder: &Folder) -> Result<()> {
    free_room(folder);
    let session = Session {
        schema: "hyperscope.session/1",
        title: title(recorded),
        machines: machines(recorded),
        recorded,
    };
    let text = serde_json::to_string_pretty(&session).map_err(io::Error::from);
    text.and_then(|text| folder.replace(FILE, (text + "\n").as_bytes()))
        .map_err(RecordError::io("write", &folder.path().join(FILE)))
}

fn title(recorded: &Recorded) -> String {
    let seconds = recorded.duration_ns / 1_000_000_000;
    let guests: Vec<&str> = recorded.guests.iter().map(|guest| guest.name.as_str()).collect();
    let with =
        if guests.is_empty() { String::new() } else { format!(" and of {}", guests.join(", ")) };
    if recorded.cpus.is_empty() {
        let guests: Vec<String> = recorded.guests.iter().map(with_label).collect();
        return format!("events of {} for {seconds} s", guests.join(", "));
    }
    let events = match recorded.events.len() {
        1 => "1 event".to_owned(),
        events => format!("{events} events"),
    };
    format!("{events} of a host{with} for {seconds} s")
}

/// A guest's name, and what it calls itself where that is something else.
fn with_label(guest: &GuestSummary) -> String {
    match &guest.label {
        Some(label) if *label != guest.name => format!("{} (calls itself {label})", guest.name),
        _ => guest.name.clone(),
    }
}

/// Machines whose files are there.
fn machines(recorded: &Recorded) -> Vec<SessionMachine> {
    let host = SessionMachine { file: "host.dat".into(), role: "host", name: None, origin: None };
    let guest = |guest: &GuestSummary| SessionMachine {
        file: guest.file.clone(),
        role: "guest",
        name: Some(guest.name.clone()),
        origin: None,
    };
    let readable = recorded.guests.iter().filter(|guest| guest.clock.is_some());
    let host = Some(host).filter(|_| !recorded.cpus.is_empty());
    host.into_iter().chain(readable.map(guest)).collect()
}
