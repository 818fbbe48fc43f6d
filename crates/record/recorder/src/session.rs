//! `session.json`: what was recorded, how, and at what cost.

use os::folder::Folder;
use session_json::{ClockPair, FILE, GuestSummary, Machine, Recorded, SCHEMA, Session};
use tracefs::UnixPair;

use crate::error::{RecordError, Result};

/// An empty recording by this version.
pub(crate) fn by_this_version() -> Recorded {
    let recorder = concat!("hyperscope ", env!("CARGO_PKG_VERSION")).to_owned();
    Recorded { recorder, ..Recorded::default() }
}

pub(crate) const fn clock_pair(pair: UnixPair) -> ClockPair {
    let UnixPair { trace_ns, unix_ns, error_ns } = pair;
    ClockPair { trace_ns, unix_ns, error_ns }
}

/// Disk space reserved for the file: when the disk is full, it tells what is missing.
const ROOM_BYTES: usize = 256 << 10;

const ROOM: &str = ".room";

/// Reserves the file's disk space in a session's folder.
pub(crate) fn take_room(folder: &Folder) -> Result<()> {
    let result = folder.write_new(ROOM, &vec![0; ROOM_BYTES]);
    result.map_err(RecordError::io("write", &folder.path().join(ROOM)))
}

/// Releases the reserved space.
pub(crate) fn free_room(folder: &Folder) {
    // Reserving may have failed on a full disk.
    let _ = folder.remove(ROOM);
}

/// Writes `session.json` into a session's folder, or updates it.
///
/// # Errors
/// When it can't be written; an existing file stays.
pub fn write(recorded: &Recorded, folder: &Folder) -> Result<()> {
    free_room(folder);
    let session = Session {
        schema: SCHEMA.to_owned(),
        title: title(recorded),
        machines: machines(recorded),
        recorded: Some(recorded.clone()),
    };
    let text = session.to_text();
    text.and_then(|text| folder.replace(FILE, text.as_bytes()))
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

/// A guest's name, with its own name for itself if that differs.
fn with_label(guest: &GuestSummary) -> String {
    match &guest.label {
        Some(label) if *label != guest.name => format!("{} (calls itself {label})", guest.name),
        _ => guest.name.clone(),
    }
}

/// Machines with a recording file.
fn machines(recorded: &Recorded) -> Vec<Machine> {
    let readable = recorded.guests.iter().filter(|guest| guest.clock.is_some());
    let guests = readable.map(|guest| Machine::guest(&guest.file, &guest.name));
    let host = (!recorded.cpus.is_empty()).then(Machine::host);
    host.into_iter().chain(guests).collect()
}
