//! Each operation on the files of a session fails in turn: the rest is readable, and missing events are
//! reported.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nix::errno::Errno;
use os::folder::{Observer, Operation};
use recorder::{InGuests, Modes, Profile, RecordPlan, Recording, SessionFolder, Stop};

use crate::agent::Agent;
use crate::extent::extent;
use crate::marks::{assert_losses_reported, instance, marks, recording, write_marks};
use crate::tool::{left_in_tracefs, lock_tracing};

/// Marks in a recording.
const MARKS: u64 = 2000;

/// This machine as its own guest: the address of its agent, and the agent.
pub(crate) struct OwnGuest {
    channel: String,
    agent: Agent,
}

impl OwnGuest {
    pub(crate) fn start(folder: &Path) -> Self {
        let channel = format!("unix:{}", folder.join("agent").display());
        let agent = Agent::start(&channel);
        Self { channel, agent }
    }
}

/// The plan of a recording, optionally with a guest.
fn plan(guest: Option<&OwnGuest>) -> RecordPlan {
    let flush = Some(Duration::from_millis(100));
    let events = vec!["sched_process_exec".to_owned()];
    let in_guests = InGuests {
        events: events.clone(),
        flush,
        disk_flush: flush,
        // A host whose every operation is traced takes pages slowly.
        wait: Some(Duration::from_secs(60)),
        ..InGuests::default()
    };
    RecordPlan {
        events,
        profile: None::<Profile>,
        buffer_kib: Some(64),
        flush,
        guests: guest.iter().map(|guest| format!("g={}", guest.channel)).collect(),
        in_guests,
        ..RecordPlan::default()
    }
}

/// Records this machine in this process, with marks from begin to end, in the guest if there is one.
/// Returns how many marks the kernel took, and whether all were written. `before_end` receives the
/// number of marks.
pub(crate) fn record(
    session: &Path,
    guest: Option<&OwnGuest>,
    observer: Arc<dyn Observer>,
    before_end: impl Fn(u64),
) -> (u64, Result<bool, String>) {
    let recorded = || -> recorder::Result<(u64, bool)> {
        let folder = SessionFolder::take_observed(session, Modes::default(), Some(observer))?;
        let recording = Recording::begin(&plan(guest), &folder, &Stop::new()?)
            .inspect_err(|_| folder.abandon())?;
        let marked = guest.map_or(std::process::id(), |guest| guest.agent.pid());
        let [written] = write_marks([&instance(marked)], MARKS);
        before_end(written);
        let recorded = recording.end(&|_| ());
        folder.give_back();
        // Events that can't be written in the end are reported, and stay in the kernel.
        Ok((written, recorded.is_ok_and(|recorded| recorded.faults.is_empty())))
    };
    match recorded() {
        Ok((written, is_whole)) => (written, Ok(is_whole)),
        Err(error) => (0, Err(error.to_string())),
    }
}

/// Fails one operation, or all operations from one on.
#[derive(Debug)]
struct Failing {
    error: Errno,
    from: u64,
    is_lasting: bool,
    seen: AtomicU64,
}

impl Observer for Failing {
    fn before(&self, _: &Operation<'_>) -> io::Result<()> {
        let at = self.seen.fetch_add(1, Ordering::Relaxed) + 1;
        if at == self.from || (self.is_lasting && at > self.from) {
            return Err(io::Error::from_raw_os_error(self.error as i32));
        }
        Ok(())
    }
}

/// Records with a failing operation; returns the number of operations.
fn fail(error: Errno, is_lasting: bool, from: u64) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let session = folder.path().join("s");
    let failing = Arc::new(Failing { error, from, is_lasting, seen: AtomicU64::new(0) });
    let (written, came) = record(&session, None, failing.clone(), |_| ());
    let seen = failing.seen.load(Ordering::Relaxed);
    let what = format!("{error} at operation {from} of {seen}, lasting: {is_lasting}: {came:?}");
    assert_eq!(left_in_tracefs(), Vec::<String>::new(), "{what}");
    match &came {
        Err(text) => assert!(text.contains(session.to_str().unwrap()), "{what}"),
        Ok(_) => assert_losses_reported(&session, "host", written, &what),
    }
    if error == Errno::EINTR || from > seen {
        let host = recording(&session, "host").unwrap_or_else(|| panic!("{what}"));
        assert_eq!((came, marks(&host).len() as u64), (Ok(true), written), "{what}");
    }
    seen
}

/// Fails operations in turn; samples are a part of them.
fn fail_each(error: Errno, is_lasting: bool) {
    let Some(_lock) = lock_tracing() else { return };
    let all = fail(error, is_lasting, u64::MAX);
    let step = extent((all / 4).max(1), 1);
    let mut from = extent(all / 5, 1);
    while from <= all {
        fail(error, is_lasting, from);
        from += step;
    }
    println!("{error}: {all} operations");
}

#[test]
fn a_disk_that_is_full_from_any_operation_on_leaves_what_was_written() {
    fail_each(Errno::ENOSPC, true);
}

#[test]
fn a_disk_that_fails_once_at_any_operation_leaves_what_is_reported() {
    fail_each(Errno::EIO, false);
}

#[test]
fn a_signal_at_any_operation_changes_nothing() {
    fail_each(Errno::EINTR, false);
}
