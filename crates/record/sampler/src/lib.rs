//! Samples all CPUs of a host, guests included, and writes a perf.data in pipe mode: stock perf reads it, and it is
//! valid up to its last record if the recorder is killed.
//!
//! The kernel's perf events do the sampling: cycles if the processor counts them, otherwise the kernel's `cpu-clock`,
//! whose timer interrupts guests, too. Samples are on the monotonic clock; a second file relates this clock to the
//! recording's clock once a second (`docs/formats/collected.md`).

#![forbid(unsafe_code)]

mod earlier;
mod elf_notes;
mod error;
mod events;
mod kept_code;
mod kernel_code;
mod mapped_files;
mod mounts;
mod records;
mod rounds;
mod sink;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};

use os::confine::Confined;
use os::waits::Signal;
use tracefs::TraceClock;

pub use crate::elf_notes::elf_build_id;
pub use crate::error::{Result, SampleError};
use crate::events::CpuEvents;
pub use crate::events::SampledEvent;
pub use crate::kept_code::{KeptCode, PieceError};
use crate::kernel_code::KernelCode;
pub use crate::mapped_files::EarlierMappings;
use crate::rounds::{Counting, Rounds};
pub use crate::sink::{SampleFiles, SampleSink};

/// What to sample.
#[derive(Clone, Debug)]
pub struct SamplerPlan {
    /// Samples per second and CPU.
    pub hz: u32,
    /// The event; `None`: cycles if the processor counts them, otherwise the kernel's clock.
    pub event: Option<SampledEvent>,
    /// The recording's trace clock.
    pub clock: String,
    /// The recording's identity.
    pub trace_id: u64,
    /// Processes whose samples are kept; `None`: all.
    pub only: Option<BTreeSet<u32>>,
}

/// Totals of sampling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampled {
    /// The event that triggered the samples.
    pub event: SampledEvent,
    /// Number of samples in the file.
    pub samples: u64,
    /// Records that the kernel dropped; `None` if it does not count all of them.
    pub lost: Option<u64>,
    /// How often the kernel throttled an event.
    pub throttled: u64,
    /// For code that was mapped before sampling began: how many files have a known build id.
    pub earlier: EarlierMappings,
    /// Size of both files.
    pub bytes: u64,
    /// Size of the file with kernel code.
    pub code_bytes: u64,
}

/// Whether this user may read the kernel's code.
#[must_use]
pub fn shows_kernel_code() -> bool {
    KernelCode::is_there()
}

/// Events that are open, but not enabled.
#[derive(Debug)]
pub struct Opened {
    plan: SamplerPlan,
    clock: TraceClock,
    events: CpuEvents,
}

impl Opened {
    /// Opens the events on these CPUs.
    ///
    /// # Errors
    /// When the kernel lacks support, or the user lacks permission.
    pub fn open(plan: SamplerPlan, cpus: &[u32]) -> Result<Self> {
        let clock = TraceClock::open(&plan.clock).map_err(SampleError::clock(&plan.clock))?;
        let events = CpuEvents::open(plan.event, plan.hz, cpus)?;
        Ok(Self { plan, clock, events })
    }

    /// Starts sampling. A thread writes the state from before, then samples as they arrive.
    ///
    /// # Errors
    /// When `to` fails, or the kernel refuses.
    pub fn begin(self, to: impl SampleSink + 'static) -> Result<Sampler> {
        let Self { plan, clock, events } = self;
        let (event, bytes) = (events.event(), Arc::new(AtomicU64::new(0)));
        let to = Counting::new(Box::new(to), Arc::clone(&bytes));
        let stop = Signal::new().map_err(SampleError::events("stop"))?;
        let mut rounds = Rounds::begin(plan, clock, events, to, stop.clone())?;
        let (headed, is_headed) = mpsc::sync_channel(1);
        let thread = thread::Builder::new().name("hyperscope-smpl".into()).spawn(move || {
            rounds.write_head()?;
            Confined::WORKER.enter();
            // The receiver need not wait for this.
            let _ = headed.send(());
            rounds.run()
        });
        let thread = thread.map_err(SampleError::events("start a thread for"))?;
        Ok(Sampler { event, stop, bytes, ready: is_headed, thread })
    }
}

/// Enabled events, and the thread that writes their samples.
#[derive(Debug)]
pub struct Sampler {
    event: SampledEvent,
    stop: Signal,
    bytes: Arc<AtomicU64>,
    ready: Receiver<()>,
    thread: JoinHandle<Result<Sampled>>,
}

impl Sampler {
    /// Waits until the state from before is written: this takes CPU time, which should not be sampled.
    ///
    /// # Errors
    /// When it could not be written.
    pub fn wait_until_ready(self) -> Result<Self> {
        match self.ready.recv() {
            Ok(()) => Ok(self),
            // The thread has ended, and returns the reason.
            Err(_) => Err(self.end().err().unwrap_or(SampleError::Panicked)),
        }
    }

    /// The event that triggers samples.
    #[must_use]
    pub fn event(&self) -> SampledEvent {
        self.event
    }

    /// Bytes written so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether the thread has ended: early only after a failure.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Requests the end, without waiting for it.
    pub fn stop(&self) {
        self.stop.set();
    }

    /// Stops sampling and completes the files.
    ///
    /// # Errors
    /// When a write failed. The records written before are readable.
    pub fn end(self) -> Result<Sampled> {
        self.stop.set();
        self.thread.join().unwrap_or(Err(SampleError::Panicked))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;
    use std::time::{Duration, Instant};

    use os::folder::{Folder, Modes};
    use perfdata::{Body, Form, PerfData};

    use super::*;

    fn plan(only: Option<BTreeSet<u32>>) -> SamplerPlan {
        let event = Some(SampledEvent::CpuClock);
        SamplerPlan { hz: 997, event, clock: "mono".into(), trace_id: 7, only }
    }

    /// Samples this machine while this thread is busy for a time; returns the file.
    fn sampled(plan: SamplerPlan, busy: Duration) -> Option<(Sampled, Vec<u8>, tempfile::TempDir)> {
        let to = tempfile::tempdir().unwrap();
        let folder = Folder::open(to.path(), Modes::default()).unwrap();
        let opened = match Opened::open(plan, &[0, 1]) {
            Ok(opened) => opened,
            Err(error) => {
                testkit::skip!("nothing can be sampled here: {error}");
                return None;
            }
        };
        let file = |name| folder.create_new(name).unwrap();
        let (samples, clocks) = (file("host.data"), file("host.clock"));
        let files = SampleFiles { samples, clocks, code: None };
        let sampler = opened.begin(files).unwrap().wait_until_ready().unwrap();
        let until = Instant::now() + busy;
        while Instant::now() < until {
            std::hint::black_box(0);
        }
        let sampled = sampler.end().unwrap();
        let bytes = fs::read(to.path().join("host.data")).unwrap();
        Some((sampled, bytes, to))
    }

    #[test]
    fn a_busy_thread_is_in_as_many_samples_as_its_time_has_periods() {
        let begun_ns = sys::process_cpu_ns();
        let Some((sampled, bytes, _to)) = sampled(plan(None), Duration::from_millis(700)) else {
            return;
        };
        let periods = (sys::process_cpu_ns() - begun_ns) * 997 / 1_000_000_000;
        let perf = PerfData::parse(&bytes).unwrap();
        assert_eq!((perf.form, perf.damage.as_slice()), (Form::Pipe, &[][..]));
        let (mut own_samples, mut all, mut names, mut kernels) = (0_u64, 0_u64, 0, 0);
        for record in perf.records(&bytes) {
            match perf.events.body(&record.unwrap()).unwrap() {
                Body::Sample(sample) => {
                    all += 1;
                    own_samples += u64::from(sample.pid == Some(std::process::id()));
                    assert!(sample.callchain.is_some() && sample.time.is_some_and(|ns| ns > 0));
                }
                Body::Comm(comm) => names += u64::from(comm.pid == std::process::id()),
                Body::Mapping(mapping) => kernels += u64::from(mapping.pid == u32::MAX),
                _ => {}
            }
        }
        assert_eq!(all, sampled.samples);
        // Other tests run in this process, too, and may be busy for slightly longer or shorter than the sampling. A
        // late timer skips samples.
        assert!(
            own_samples * 3 >= periods && own_samples <= periods * 2 + 100,
            "{own_samples} samples of {periods}"
        );
        assert!(names > 0 && kernels > 0, "{names} names, {kernels} mappings of the kernel");
        assert_eq!(sampled.lost.unwrap_or(0), 0);
    }

    #[test]
    fn stock_perf_reads_it_also_when_it_is_cut() {
        let Some((sampled, bytes, to)) = sampled(plan(None), Duration::from_millis(300)) else {
            return;
        };
        let script = |path: &std::path::Path| {
            let fields = ["script", "-F", "comm,tid,time,ip", "-i"];
            Command::new("perf").args(fields).arg(path).output().ok()
        };
        let path = to.path().join("host.data");
        let Some(output) = script(&path) else {
            testkit::skip!("perf is missing");
            return;
        };
        // A line begins each sample; its addresses follow.
        let count = |out: &[u8]| {
            let text = String::from_utf8_lossy(out).into_owned();
            text.lines().filter(|line| line.ends_with(": ")).count() as u64
        };
        assert_eq!(
            count(&output.stdout),
            sampled.samples,
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        fs::write(&path, &bytes[..bytes.len() - 9]).unwrap();
        let cut = count(&script(&path).unwrap().stdout);
        assert!(cut + 200 >= sampled.samples && cut > 0, "{cut} of {}", sampled.samples);
    }

    #[test]
    fn of_processes_that_were_not_asked_for_nothing_is_kept() {
        let nobody = BTreeSet::from([1]);
        let Some((_, bytes, _to)) = sampled(plan(Some(nobody)), Duration::from_millis(100)) else {
            return;
        };
        let perf = PerfData::parse(&bytes).unwrap();
        for record in perf.records(&bytes) {
            let pid = match perf.events.body(&record.unwrap()).unwrap() {
                Body::Sample(sample) => sample.pid.unwrap(),
                Body::Comm(comm) => comm.pid,
                Body::Mapping(mapping) if mapping.pid != u32::MAX => mapping.pid,
                _ => continue,
            };
            assert_eq!(pid, 1);
        }
    }

    #[test]
    fn rates_that_the_kernel_does_not_take_are_refused() {
        let often = SamplerPlan { hz: 100_000_000, ..plan(None) };
        let refused = Opened::open(often, &[0]);
        assert!(matches!(refused, Err(SampleError::TooOften { .. })), "{refused:?}");
    }
}
