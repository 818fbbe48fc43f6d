//! `session.json`, which says what is in a session's folder, how it was recorded, and at what cost. The types that a
//! recorder writes are those that readers read.
//!
//! Files of earlier versions lack some values: those are what `Default` makes them.

#![forbid(unsafe_code)]

mod flight;
mod guests;
mod host;
mod hypercalls;
mod recorded;
mod samples;
mod tracer;
mod vms;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::flight::{FlightSummary, Trigger, TriggerKind};
pub use self::guests::{DeviceRanges, EventCostSummary, GuestCpu, GuestDevice, GuestSummary};
pub use self::host::{ClockPair, CpuLosses, HostIdentity};
pub use self::hypercalls::{CollectorSummary, ModuleSummary};
pub use self::recorded::Recorded;
pub use self::samples::{CodeSummary, EarlierSummary, SamplerSummary};
pub use self::tracer::TracerSummary;
pub use self::vms::{Vcpu, Vm, VmmThread};

/// The file's name in the folder of a session.
pub const FILE: &str = "session.json";

/// The version of this document.
pub const SCHEMA: &str = "hyperscope.session/1";

/// Longer files are ignored.
const MAX_BYTES: u64 = 16 << 20;

/// Maximum number of objects in a file: a thousand VMs with a hundred threads each. A file of empty objects
/// would take 200 times its size in memory.
const MAX_OBJECTS: usize = 200_000;

/// session.json in a session folder (NAME.hscope). See docs/formats/session.md.
#[derive(Clone, Debug, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct Session {
    /// The name and version of this document.
    pub schema: String,
    /// The session's content, in one sentence.
    pub title: String,
    /// The recordings in the folder.
    pub machines: Vec<Machine>,
    /// How it was recorded. Null: not by Hyperscope.
    pub recorded: Option<Recorded>,
}

/// The recording of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// Name of the recording in the folder: host.dat or guest-NAME.dat.
    #[schemars(regex(pattern = r"^(host|guest-[^/]+)\.dat$"))]
    pub file: String,
    /// The recorded host, or a guest of it.
    #[schemars(extend("enum" = ["host", "guest"]))]
    pub role: String,
    /// Name of the guest; null for the host.
    pub name: Option<String>,
    /// The path in the repository that it was copied from. Null: recorded here.
    pub origin: Option<String>,
}

impl Machine {
    /// The host's recording.
    #[must_use]
    pub fn host() -> Self {
        Self { file: "host.dat".into(), role: "host".into(), ..Self::default() }
    }

    /// The recording of the guest of this name.
    #[must_use]
    pub fn guest(file: &str, name: &str) -> Self {
        let (file, name) = (file.to_owned(), Some(name.to_owned()));
        Self { file, role: "guest".into(), name, origin: None }
    }
}

impl Session {
    /// Reads the one of a folder.
    ///
    /// # Errors
    /// When there is none, or it is not such a document.
    pub fn read(folder: &Path) -> io::Result<Self> {
        let mut text = Vec::new();
        File::open(folder.join(FILE))?.take(MAX_BYTES).read_to_end(&mut text)?;
        Self::parse(&text)
    }

    fn parse(text: &[u8]) -> io::Result<Self> {
        if text.iter().filter(|&&byte| byte == b'{').count() > MAX_OBJECTS {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(serde_json::from_slice(text)?)
    }

    /// As it stands in the file.
    ///
    /// # Errors
    /// When a path in it has no text.
    pub fn to_text(&self) -> io::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_schema_is_published() {
        testkit::assert_published::<Session>(&testkit::PublishedSchema::new("session"));
    }

    #[test]
    fn what_was_written_is_read() {
        let guests = vec![GuestSummary { name: "web".into(), ..GuestSummary::default() }];
        let recorded = Some(Recorded { guests, duration_ns: 7, ..Recorded::default() });
        let machines = vec![Machine::host(), Machine::guest("guest-web.dat", "web")];
        let session = Session { schema: SCHEMA.into(), machines, recorded, title: "t".into() };
        let text = session.to_text().unwrap();
        let read: Session = serde_json::from_str(&text).unwrap();
        assert_eq!(read.to_text().unwrap(), text);
    }

    #[test]
    fn values_that_are_not_there_are_defaults_and_others_are_ignored() {
        let text = r#"{"recorded": {"cpus": [{"cpu": 1, "overrun": 2}], "colour": "red"}}"#;
        let read: Session = serde_json::from_str(text).unwrap();
        let cpus = read.recorded.unwrap().cpus;
        assert_eq!(cpus, [CpuLosses { cpu: 1, overrun: 2, ..CpuLosses::default() }]);
        assert!(serde_json::from_str::<Session>(r#"{"recorded": {"cpus": 7}}"#).is_err());
    }

    #[test]
    fn a_file_of_very_many_objects_is_refused_before_any_is_made() {
        let text = |guests: usize| {
            format!(r#"{{"recorded":{{"guests":[{{}}{}]}}}}"#, ",{}".repeat(guests - 1))
        };
        let read = Session::parse(text(1000).as_bytes()).unwrap();
        assert_eq!(read.recorded.unwrap().guests.len(), 1000);
        assert!(Session::parse(text(MAX_OBJECTS).as_bytes()).is_err());
    }
}
