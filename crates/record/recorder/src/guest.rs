//! A guest that is recorded together with its host, by any agent: its pages, its texts and its file.

mod clock_samples;
mod files;
mod quota;
mod ready;
mod recorded;
mod recording;
mod segments;
mod texts;

use std::ops::RangeInclusive;

use os::folder::Folder;

use crate::error::{RecordError, Result};

pub(crate) use self::clock_samples::ClockSamples;
pub(crate) use self::files::{Arriving, GuestFiles, PageShape};
pub(crate) use self::quota::Quota;
pub(crate) use self::ready::ReadyGuest;
pub(crate) use self::recorded::{GuestRecorded, HostClock, Parts, TSC};
pub(crate) use self::recording::{
    Agent, AgentReport, GuestIdentity, GuestPages, GuestRecording, GuestStatus, PageLimits,
};
pub(crate) use self::segments::OpenSegments;
pub(crate) use self::texts::GuestTexts;

/// Valid ring buffer page sizes.
pub(crate) const PAGE_BYTES: RangeInclusive<u32> = 4096..=65536;

/// The session's folder of a guest's pages during the recording.
pub(crate) fn pages_folder(name: &str) -> String {
    format!("guest-{name}.pages")
}

/// Makes that folder.
pub(crate) fn make_pages_folder(session: &Folder, name: &str) -> Result<Folder> {
    let pages = pages_folder(name);
    session.subfolder(&pages).map_err(RecordError::io("make", &session.path().join(pages)))
}
