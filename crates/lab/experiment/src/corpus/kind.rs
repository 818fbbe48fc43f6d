//! Kinds of recordings.

use serde::{Deserialize, Serialize};

/// What is in a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum RecordingKind {
    /// A session with the host alone.
    #[serde(rename = "host")]
    Host,
    /// A session with host and guest.
    #[serde(rename = "host+guest")]
    HostGuest,
    /// A perf.data of the host.
    #[serde(rename = "perf.data")]
    Perf,
}

impl RecordingKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Host, Self::HostGuest, Self::Perf];

    /// Its name in labels and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::HostGuest => "host+guest",
            Self::Perf => "perf.data",
        }
    }

    /// Its files, where the recorder writes them.
    pub(super) fn files(self) -> &'static [&'static str] {
        match self {
            Self::Host => &["session/host.dat", "session/session.json"],
            Self::HostGuest => {
                &["session/host.dat", "session/session.json", "session/guest-l2.dat"]
            }
            Self::Perf => &["perf.data"],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_named_alike_everywhere() {
        for kind in RecordingKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
    }
}
