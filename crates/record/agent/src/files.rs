//! Records this machine into a folder of its own, for nobody in particular: to be fetched later, from
//! a machine that no channel leads to. The folder is a recording as it is.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use channel::{PageSink, Stream, StreamSink};
use folder::{Folder, Modes};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use waits::Signal;
use wire::Start;

use crate::error::{AgentError, Result};
use crate::leave::{Busy, leave_at_signals};
use crate::recording::{Ended, Prepared};

/// Records until the time is over or the program gets a signal to end; returns a summary as text.
///
/// # Errors
/// When the kernel refuses, or a file can't be written.
pub fn record(folder: &Path, start: &Start, time: Option<Duration>) -> Result<String> {
    let prepared = Prepared::new(start)?;
    let failed = |name: &str| {
        let path = folder.join(name);
        move |error: std::io::Error| {
            AgentError::Refused(format!("cannot write {}: {error}", path.display()))
        }
    };
    let (to, _) = Folder::open_or_make(folder, Modes::default(), None).map_err(failed(""))?;
    let (started, texts) = (prepared.started(), prepared.texts().clone());
    texts.write(&to, &started.clock_line)?;
    let sink = |cpu: &u32| {
        let name = format!("cpu{cpu}");
        let file = to.remove_if_there(&name).and_then(|()| to.create_new(&name));
        let file = File::from(file.map_err(failed(&name))?);
        let sink = StreamSink::bare(Stream::new(file)?, texts.page_size() as usize)?;
        Ok(PageSink::Stream(Box::new(sink)))
    };
    let sinks = started.cpus.iter().map(sink).collect::<Result<Vec<_>>>()?;
    let (busy, leave) = (Busy::default(), Signal::new()?);
    busy.set(true);
    leave_at_signals(&busy, &leave)?;
    let recording = prepared.begin(sinks)?;
    wait(&leave, time);
    let Ended { cpus, names, status, .. } = recording.end()?;
    let file = "saved_cmdlines";
    to.overwrite(file, &names).map_err(failed(file))?;
    // Whoever reads the folder learns from these what the kernel dropped.
    for end in cpus.iter().filter(|end| !end.stats.is_empty()) {
        let of_cpu =
            to.subfolder("per_cpu").and_then(|all| all.subfolder(&format!("cpu{}", end.cpu)));
        let written = of_cpu.and_then(|folder| folder.overwrite("stats", end.stats.as_bytes()));
        written.map_err(failed("per_cpu"))?;
    }
    if let Some(fault) = cpus.iter().find_map(|cpu| cpu.fault.as_ref()) {
        return Err(AgentError::Refused(format!("not everything was recorded: {fault}")));
    }
    let bytes: u64 = cpus.iter().map(|cpu| cpu.sent_bytes).sum();
    let lost: u64 = status.cpus.iter().map(|cpu| cpu.lost).sum();
    Ok(format!("{} KiB of pages in {}, {lost} events lost", bytes >> 10, folder.display()))
}

fn wait(leave: &Signal, time: Option<Duration>) {
    let time = time.and_then(|time| Timespec::try_from(time).ok());
    let mut fds = [PollFd::from_borrowed_fd(leave.fd(), PollFlags::IN)];
    while poll(&mut fds, time.as_ref()) == Err(rustix::io::Errno::INTR) {}
}
