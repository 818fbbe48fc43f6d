//! The host's further streams: hypercalls and samples.

use bpf::collector::Collector;
use os::waits::Deadline;
use sampler::Sampler;
use session_json::{CollectorSummary, SamplerSummary};
use tracefs::TraceSession;
use vms::Vm;

use crate::ending::STOP_MESSAGE;
use crate::error::Result;
use crate::hypercalls;
use crate::plan::RecordPlan;
use crate::samples;
use crate::session_folder::SessionFolder;
use crate::task::EndingTask;

/// Streams that are loaded and opened before the recording begins.
#[derive(Debug)]
pub(super) struct LoadedStreams {
    hypercalls: Option<bpf::collector::Loaded>,
    samples: Option<(sampler::Opened, u32)>,
}

/// The running streams.
#[derive(Debug, Default)]
pub(super) struct HostStreams {
    collector: Option<Collector>,
    /// With the requested samples per second.
    sampler: Option<(Sampler, u32)>,
}

/// Streams that were asked to end.
#[derive(Debug)]
pub(super) struct EndingStreams {
    collector: Option<EndingTask<CollectorSummary>>,
    sampler: Option<EndingTask<SamplerSummary>>,
}

impl LoadedStreams {
    /// Loads and opens the streams of a plan; `only`: keep only samples of that VM.
    pub(super) fn load(
        plan: &RecordPlan,
        session: &TraceSession,
        only: Option<&[Vm]>,
        trace_id: u64,
    ) -> Result<Self> {
        let clock = &*session.clock().name;
        let load = |what| hypercalls::load(what, clock, trace_id);
        let open = |what: samples::Sampling| -> Result<_> {
            Ok((samples::open(what, session.cpus(), only, clock, trace_id)?, what.hz))
        };
        let hypercalls = plan.hypercalls.map(load).transpose()?;
        let samples = plan.sampling.map(open).transpose()?;
        Ok(Self { hypercalls, samples })
    }
}

impl HostStreams {
    /// Starts the streams, into a session's folder.
    pub(super) fn begin(&mut self, loaded: LoadedStreams, to: &SessionFolder) -> Result<()> {
        if let Some((opened, hz)) = loaded.samples {
            self.sampler = Some((samples::begin(opened, to)?, hz));
        }
        self.collector =
            loaded.hypercalls.map(|loaded| hypercalls::begin(loaded, to)).transpose()?;
        Ok(())
    }

    /// Size of their files so far.
    pub(super) fn bytes(&self) -> u64 {
        self.collector.as_ref().map_or(0, Collector::bytes)
            + self.sampler.as_ref().map_or(0, |(sampler, _)| sampler.bytes())
    }

    /// Whether writing has failed, for example because of a full disk.
    pub(super) fn has_failed(&self) -> bool {
        self.collector.as_ref().is_some_and(Collector::is_finished)
            || self.sampler.as_ref().is_some_and(|(sampler, _)| sampler.is_finished())
    }

    /// Asks them to end, and waits a moment: they should end no later than the events that they belong to.
    pub(super) fn stop(&mut self) -> EndingStreams {
        let collector = self.collector.take().map(hypercalls::end);
        let sampler = self.sampler.take().map(|(sampler, hz)| samples::end(sampler, hz));
        let soon = Deadline::after(STOP_MESSAGE);
        collector.as_ref().map(|task| task.is_over(soon));
        sampler.as_ref().map(|task| task.is_over(soon));
        EndingStreams { collector, sampler }
    }

    /// Ends the streams of a recording that did not begin.
    pub(super) fn abandon(&mut self) {
        drop(self.collector.take().map(Collector::end));
        drop(self.sampler.take().map(|(sampler, _)| sampler.end()));
    }
}

impl EndingStreams {
    /// Waits for their ends until the deadline.
    pub(super) fn end(
        self,
        until: Deadline,
        faults: &mut Vec<String>,
    ) -> (Option<CollectorSummary>, Option<SamplerSummary>) {
        let not_all = "collecting hypercalls stopped early";
        let collector = self.collector.and_then(|task| task.end(until, not_all, faults));
        let not_all = "sampling CPUs stopped early";
        let sampler = self.sampler.and_then(|task| task.end(until, not_all, faults));
        (collector, sampler)
    }
}
