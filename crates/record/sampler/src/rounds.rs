//! Moves samples from the rings to the file in rounds: everything in the rings, then an end-of-round record.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hypertrace::collected::{Begin, Entry, VERSION};
use os::waits::Signal;
use perfdata::{PipeWriter, feature};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::system::uname;
use tracefs::TraceClock;

use crate::error::{Result, SampleError};
use crate::events::CpuEvents;
use crate::kernel_code::KernelCode;
use crate::mapped_files::{EarlierMappings, MappedFiles};
use crate::records::Counts;
use crate::sink::SampleSink;
use crate::{Sampled, SamplerPlan, earlier};

/// Time between clock comparisons, and between flushes of the rings to the file.
const INTERVAL: Duration = Duration::from_secs(1);
/// The second comparison comes earlier: the first alone does not show the clocks' rates.
const FIRST_INTERVAL: Duration = Duration::from_millis(50);
/// Flush size for the state from before.
const PART_BYTES: usize = 1 << 20;

/// Forwards samples and clock readings, and counts their bytes.
pub(crate) struct Counting {
    to: Box<dyn SampleSink>,
    written: Arc<AtomicU64>,
}

impl Counting {
    pub(crate) fn new(to: Box<dyn SampleSink>, written: Arc<AtomicU64>) -> Self {
        Self { to, written }
    }

    /// Forwards kernel code if requested; returns the size.
    fn code(&mut self, code: &KernelCode) -> Result<u64> {
        let Some(max) = self.to.most_code_bytes() else { return Ok(0) };
        self.to.code(&code.extract(max))
    }

    /// Forwards and clears whole records.
    fn samples(&mut self, records: &mut Vec<u8>) -> Result<()> {
        self.to.samples(records)?;
        self.count(records);
        records.clear();
        Ok(())
    }

    fn clock(&mut self, entry: &Entry) -> Result<()> {
        let bytes = entry.to_bytes();
        self.to.clocks(&bytes)?;
        self.count(&bytes);
        Ok(())
    }

    fn count(&self, bytes: &[u8]) {
        self.written.fetch_add(bytes.len() as u64, Ordering::Relaxed);
    }
}

/// State of the thread that moves samples.
pub(crate) struct Rounds {
    plan: SamplerPlan,
    clock: TraceClock,
    events: CpuEvents,
    to: Counting,
    counts: Counts,
    earlier: EarlierMappings,
    /// Kernel code, if it is kept.
    code: Option<KernelCode>,
    stop: Signal,
    /// Per ring: no more records arrive.
    is_over: Vec<bool>,
    /// Buffers for one ring, and for all.
    ring: Vec<u8>,
    round: Vec<u8>,
}

impl Rounds {
    /// Writes a clock reading, and enables the events.
    pub(crate) fn begin(
        plan: SamplerPlan,
        clock: TraceClock,
        events: CpuEvents,
        mut to: Counting,
        stop: Signal,
    ) -> Result<Self> {
        to.clock(&Entry::Begin(Begin {
            version: VERSION,
            trace_id: plan.trace_id,
            clock: plan.clock.clone(),
            ..Begin::default()
        }))?;
        let (ring, round, counts) = (Vec::new(), Vec::new(), Counts::default());
        let is_over = vec![false; events.list().len()];
        let earlier = EarlierMappings::default();
        let code = to.to.most_code_bytes().and_then(|_| KernelCode::open());
        let mut rounds =
            Self { plan, clock, events, to, counts, earlier, code, stop, is_over, ring, round };
        rounds.compare_clocks()?;
        // From here on, the events record all new mappings and threads.
        rounds.events.enable()?;
        Ok(rounds)
    }

    /// Writes the header of the samples, and the state from before.
    pub(crate) fn write_head(&mut self) -> Result<()> {
        let about = uname();
        let texts = [about.nodename(), about.release(), about.machine()]
            .map(|text| text.to_string_lossy().into_owned());
        let [host, release, machine] = &texts;
        let attr = self.events.attr().clone();
        let mut writer = PipeWriter::new(&mut self.round, &attr);
        let features = [
            (feature::HOSTNAME, host.as_str()),
            (feature::OSRELEASE, release),
            (feature::VERSION, concat!("hyperscope ", env!("CARGO_PKG_VERSION"))),
            (feature::ARCH, machine),
        ];
        writer.head(&attr, &self.events.list(), &features);
        earlier::kernel(&mut writer);
        let mut files = MappedFiles::new();
        for pid in earlier::processes(self.plan.only.as_ref()) {
            earlier::process(pid, &mut files, &mut PipeWriter::new(&mut self.round, &attr));
            if self.round.len() >= PART_BYTES {
                self.to.samples(&mut self.round)?;
            }
        }
        self.earlier = files.counts();
        self.to.samples(&mut self.round)
    }

    /// Moves samples until it is stopped.
    pub(crate) fn run(mut self) -> Result<Sampled> {
        let mut interval = FIRST_INTERVAL;
        while !self.wait(interval)? {
            self.round()?;
            self.compare_clocks()?;
            interval = INTERVAL;
            self.events.jitter(self.plan.hz)?;
        }
        self.events.disable();
        self.round()?;
        self.compare_clocks()?;
        let lost = self.write_losses()?;
        let code_bytes = self.code.as_ref().map_or(Ok(0), |code| self.to.code(code))?;
        Ok(Sampled {
            code_bytes,
            event: self.events.event(),
            samples: self.counts.samples,
            lost: lost.map(|lost| lost.max(self.counts.lost)),
            throttled: self.counts.throttled,
            earlier: self.earlier,
            bytes: self.to.written.load(Ordering::Relaxed),
        })
    }

    /// Moves everything in the rings.
    fn round(&mut self) -> Result<()> {
        for ring in self.events.rings() {
            self.ring.clear();
            ring.take(&mut self.ring);
            self.counts.take(&self.ring, self.plan.only.as_ref(), &mut self.round);
        }
        self.code.iter_mut().for_each(|code| code.note(&self.round));
        PipeWriter::new(&mut self.round, self.events.attr()).finished_round();
        self.to.samples(&mut self.round)
    }

    /// Writes each event's losses, as perf does at the end; returns the sum.
    fn write_losses(&mut self) -> Result<Option<u64>> {
        let Some(lost) = self.events.lost() else { return Ok(None) };
        let mut writer = PipeWriter::new(&mut self.round, self.events.attr());
        for &(event, count) in lost.iter().filter(|(_, count)| *count > 0) {
            writer.lost_samples(event, count);
        }
        self.to.samples(&mut self.round)?;
        Ok(Some(lost.iter().fold(0, |sum: u64, (_, count)| sum.saturating_add(*count))))
    }

    fn compare_clocks(&mut self) -> Result<()> {
        let pair = self.clock.pair().map_err(SampleError::clock(&self.plan.clock))?;
        self.to.clock(&Entry::Pair(pair))
    }

    /// Waits until a ring must be emptied or the interval ends; true if the sampler must stop.
    fn wait(&mut self, interval: Duration) -> Result<bool> {
        let timeout = Timespec::try_from(interval).ok();
        let stop = self.stop.fd();
        let mut fds = vec![PollFd::new(&stop, PollFlags::IN)];
        let polled = self.events.fds().zip(&self.is_over).filter(|(_, is_over)| !**is_over);
        fds.extend(polled.map(|(ring, _)| PollFd::new(ring, PollFlags::IN)));
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(SampleError::events("wait for")(errno.into())),
        }
        let mut ready = fds.iter().map(PollFd::revents);
        let is_stopped = ready.next().is_some_and(|stop| stop.contains(PollFlags::IN));
        // The event of an offline CPU would wake the thread repeatedly.
        for (is_over, ready) in self.is_over.iter_mut().filter(|is_over| !**is_over).zip(ready) {
            *is_over = ready.intersects(PollFlags::HUP | PollFlags::ERR);
        }
        Ok(is_stopped)
    }
}
