//! How much of the time that a host was recorded its guests were recorded, too.

use serde_json::{Value, json};
use sources::Recording;

use super::{FileInfo, InfoReport};
use crate::units::time;

/// How long a guest was recorded while its host was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Covered {
    /// The guest.
    pub guest: String,
    /// How long: by the recorder, else from the first of its events to the last.
    pub time_ns: u64,
    /// How long its host was.
    pub of_ns: u64,
}

impl Covered {
    /// `l2: 12.9 s of 21.0 s`.
    pub(super) fn fact(&self) -> (&'static str, String) {
        let Self { guest, time_ns, of_ns } = self;
        ("recorded", format!("{guest}: {} of {}", time(*time_ns, true), time(*of_ns, true)))
    }

    pub(super) fn json(&self) -> Value {
        json!({"guest": self.guest, "time_ns": self.time_ns, "of_ns": self.of_ns})
    }
}

impl InfoReport {
    /// Adds what no recorder says of guests whose hosts are among the files, as those of trace-cmd: from the first of their
    /// events to the last.
    pub fn cover_guests_of_others(&mut self) {
        let hosts: Vec<(u64, u64, Vec<(u64, String)>)> =
            self.files.iter().filter_map(host).collect();
        for file in self.files.iter_mut().filter(|file| file.covered.is_empty()) {
            let host = file.recording.peer().and_then(|id| hosts.iter().find(|host| host.0 == id));
            let (Some((_, of_ns, names)), Some(time_ns)) = (host, span_ns(file)) else { continue };
            let own = file.recording.trace_id();
            let name = names.iter().find(|(id, _)| Some(*id) == own).map(|(_, name)| name.as_str());
            let guest = name.filter(|name| !name.is_empty()).unwrap_or("guest").to_owned();
            file.covered.push(Covered { guest, time_ns: time_ns.min(*of_ns), of_ns: *of_ns });
        }
    }
}

/// A host's number, its length, and the numbers and names of its guests.
fn host(file: &FileInfo) -> Option<(u64, u64, Vec<(u64, String)>)> {
    let recording = &file.recording;
    let guests = recording.info().guests.iter().map(|guest| (guest.trace_id, guest.name.clone()));
    Some((recording.trace_id()?, span_ns(file)?, guests.collect()))
}

fn span_ns(file: &FileInfo) -> Option<u64> {
    let is_ns = Recording::is_nanoseconds(&file.recording);
    let span_ns = file.contents.last_ns()?.checked_sub(file.contents.first_ns()?)?;
    is_ns.then_some(span_ns)
}
