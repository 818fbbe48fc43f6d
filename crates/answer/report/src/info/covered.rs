//! The part of a host's recording during which its guests were recorded as well.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Serialize;
use sources::Recording;

use super::{FileInfo, InfoReport};
use crate::units::time;

/// How long a guest was recorded while its host was.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Covered {
    /// The guest.
    pub guest: String,
    /// Duration of its recording: as the recorder reports it, otherwise from its first event to its last, if its host
    /// is among the files.
    pub time_ns: u64,
    /// Duration of its host's recording.
    pub of_ns: u64,
}

impl Covered {
    /// `l2: 12.9 s of 21.0 s`.
    pub(super) fn fact(&self) -> (&'static str, String) {
        let Self { guest, time_ns, of_ns } = self;
        ("recorded", format!("{guest}: {} of {}", time(*time_ns, true), time(*of_ns, true)))
    }
}

impl InfoReport {
    /// Adds guests without a recorder's report whose hosts are among the files, such as those of trace-cmd: from their
    /// first event to the last.
    pub fn cover_guests_of_others(&mut self) {
        let hosts: HashMap<u64, Host> = self.files.iter().filter_map(Host::by_trace_id).collect();
        for file in self.files.iter_mut().filter(|file| file.covered.is_empty()) {
            let host = file.recording.peer().and_then(|trace_id| hosts.get(&trace_id));
            let (Some(host), Some(time_ns)) = (host, span_ns(file)) else { continue };
            let name = file.recording.trace_id().and_then(|id| host.guest_names.get(&id));
            let name = name.filter(|name| !name.is_empty()).map_or("guest", String::as_str);
            let (guest, of_ns) = (name.to_owned(), host.span_ns);
            file.covered.push(Covered { guest, time_ns: time_ns.min(of_ns), of_ns });
        }
    }
}

/// A host's recording.
struct Host {
    span_ns: u64,
    /// By trace id of a guest's recording, its name.
    guest_names: HashMap<u64, String>,
}

impl Host {
    fn by_trace_id(file: &FileInfo) -> Option<(u64, Self)> {
        let recording = &file.recording;
        let guests = recording.info().guests.iter();
        let guest_names = guests.map(|guest| (guest.trace_id, guest.name.clone())).collect();
        Some((recording.trace_id()?, Self { span_ns: span_ns(file)?, guest_names }))
    }
}

fn span_ns(file: &FileInfo) -> Option<u64> {
    let is_ns = Recording::is_nanoseconds(&file.recording);
    let span_ns = file.contents.last_ns()?.checked_sub(file.contents.first_ns()?)?;
    is_ns.then_some(span_ns)
}
