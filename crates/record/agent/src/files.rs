//! Records this machine into a folder without a host, for machines that no channel reaches. The folder is a complete
//! recording.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use channel::wire::Start;
use channel::{PageSink, Stream, StreamSink};
use os::folder::{Folder, Modes, OutFile};
use os::waits::Signal;
use printable::with_causes;
use raw_bytes::counted;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sampler::{Opened, SampleFiles, Sampler, SamplerPlan};

use crate::error::{AgentError, Result};
use crate::leave::{Busy, leave_at_signals};
use crate::recording::{Ended, Prepared};

/// Files of samples in the folder: the samples, the clock readings, and the kernel code around the samples.
const SAMPLES: &str = "samples.data";
const CLOCKS: &str = "samples.clock";
const CODE: &str = "samples.kcore";

/// What to record into a folder, and how long.
#[derive(Debug)]
pub struct ToFolder {
    pub folder: PathBuf,
    /// The events.
    pub start: Start,
    /// Samples per second and CPU; `None`: no sampling.
    pub sample_hz: Option<u32>,
    /// Max time; `None`: until a signal.
    pub time: Option<Duration>,
}

/// Records until the time is over or a signal ends it; returns a summary.
///
/// # Errors
/// When the kernel refuses, or a file can't be written.
pub fn record(what: &ToFolder) -> Result<String> {
    let ToFolder { folder, start, sample_hz, time } = what;
    let prepared = match sample_hz {
        None => Prepared::new(start),
        Some(_) => Prepared::new_besides(start),
    }?;
    let (to, _) = Folder::open_or_make(folder, Modes::default(), None)
        .map_err(|error| cannot_write(folder, error))?;
    let (started, texts) = (prepared.started(), prepared.texts().clone());
    texts.write(&to, &started.clock_line)?;
    let sink = |cpu: &u32| {
        let file = File::from(new_file(&to, &format!("cpu{cpu}"))?);
        let sink = StreamSink::bare(Stream::new(file)?, texts.page_size() as usize)?;
        Ok(PageSink::Stream(Box::new(sink)))
    };
    let sinks = started.cpus.iter().map(sink).collect::<Result<Vec<_>>>()?;
    let (busy, leave) = (Busy::default(), Signal::new()?);
    busy.set(true);
    leave_at_signals(&busy, &leave)?;
    let sampler = begin_samples(*sample_hz, &started.clock, &started.cpus, &to)?;
    let recording = prepared.begin(sinks)?;
    wait(&leave, *time);
    let ended = recording.end()?;
    let samples = sampler.map(end_samples).transpose()?.unwrap_or_default();
    Ok(finish(ended, &to)? + &samples)
}

/// Starts sampling into the folder. First removes samples of an earlier recording, even if this one has none.
fn begin_samples(
    hz: Option<u32>,
    clock: &str,
    cpus: &[u32],
    to: &Folder,
) -> Result<Option<Sampler>> {
    for name in [SAMPLES, CLOCKS, CODE] {
        to.remove_if_there(name).map_err(|error| cannot_write(&to.path().join(name), error))?;
    }
    let Some(hz) = hz else { return Ok(None) };
    // The folder has only this recording, so it needs no trace id.
    let plan = SamplerPlan { hz, event: None, clock: clock.to_owned(), trace_id: 0, only: None };
    let opened = Opened::open(plan, cpus).map_err(not_sampled)?;
    let code = sampler::shows_kernel_code().then(|| new_file(to, CODE)).transpose()?;
    let files =
        SampleFiles { samples: new_file(to, SAMPLES)?, clocks: new_file(to, CLOCKS)?, code };
    let sampler = opened.begin(files).and_then(Sampler::wait_until_ready);
    Ok(Some(sampler.map_err(not_sampled)?))
}

/// Stops sampling; returns a summary.
fn end_samples(sampler: Sampler) -> Result<String> {
    let sampled = sampler.end().map_err(not_sampled)?;
    let lost = sampled.lost.map_or("an unknown number of".into(), |lost| lost.to_string());
    let samples = counted(sampled.samples, "sample", "samples");
    Ok(format!("; {samples} by {}, {lost} lost", sampled.event.name()))
}

fn not_sampled(error: sampler::SampleError) -> AgentError {
    AgentError::Refused(format!("cannot sample: {}", with_causes(&error)))
}

/// Creates a file, replacing an existing one.
fn new_file(to: &Folder, name: &str) -> Result<OutFile> {
    let file = to.remove_if_there(name).and_then(|()| to.create_new(name));
    file.map_err(|error| cannot_write(&to.path().join(name), error))
}

fn cannot_write(path: &Path, error: std::io::Error) -> AgentError {
    AgentError::Refused(format!("cannot write {}: {error}", path.display()))
}

/// Writes the data that is known at the end; returns a summary.
fn finish(ended: Ended, to: &Folder) -> Result<String> {
    let Ended { cpus, names, status, .. } = ended;
    let failed = |name: &str| {
        let path = to.path().join(name);
        move |error: std::io::Error| cannot_write(&path, error)
    };
    let file = "saved_cmdlines";
    to.overwrite(file, &names).map_err(failed(file))?;
    // Readers of the folder find the kernel's losses here.
    for end in cpus.iter().filter(|end| !end.stats.is_empty()) {
        let of_cpu =
            to.subfolder("per_cpu").and_then(|all| all.subfolder(&format!("cpu{}", end.cpu)));
        let written = of_cpu.and_then(|folder| folder.overwrite("stats", end.stats.as_bytes()));
        written.map_err(failed("per_cpu"))?;
    }
    if let Some(fault) = cpus.iter().find_map(|cpu| cpu.fault.as_ref()) {
        return Err(AgentError::Refused(format!("the recording is incomplete: {fault}")));
    }
    let bytes: u64 = cpus.iter().map(|cpu| cpu.sent_bytes).sum();
    let lost: u64 = status.cpus.iter().map(|cpu| cpu.lost).sum();
    let lost = counted(lost, "event", "events");
    Ok(format!("{} KiB of pages in {}, {lost} lost", bytes >> 10, to.path().display()))
}

fn wait(leave: &Signal, time: Option<Duration>) {
    let time = time.and_then(|time| Timespec::try_from(time).ok());
    let mut fds = [PollFd::from_borrowed_fd(leave.fd(), PollFlags::IN)];
    while poll(&mut fds, time.as_ref()) == Err(rustix::io::Errno::INTR) {}
}
