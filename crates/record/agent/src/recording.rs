//! A recording of this machine at its host's request.

use std::sync::Arc;
use std::time::{Duration, Instant};

use channel::PageSink;
use channel::wire::{
    CpuCounts, CpuEnd, EventCost, EventFilter, Start, Started, Status, TracedFunctions,
};
use os::waits::Signal;
use parking_lot::Mutex;
use tracefs::{Clock, FilteredEvent, FunctionTracer, Texts, TraceRequest, TraceSession, Tracefs};

use crate::error::{AgentError, Result};
use crate::event_cost;
use crate::pump::{Pump, Pumped, Signals};

/// How long pumps may take to send the rest before the host counts as gone.
const REST: Duration = Duration::from_secs(20);

/// A recording that is set up, but not on.
#[derive(Debug)]
pub(crate) struct Prepared {
    session: TraceSession,
    flush: Option<Duration>,
    is_boot: bool,
}

/// A running recording. Drop removes all of it.
#[derive(Debug)]
pub(crate) struct Recording {
    pumps: Vec<Pump>,
    signals: Signals,
    prepared: Prepared,
    begun_cpu_ns: u64,
}

/// Final data of an ended recording.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) cpus: Vec<CpuEnd>,
    /// The names of threads.
    pub(crate) names: Vec<u8>,
    /// The cost.
    pub(crate) status: Status,
    clock: Clock,
    is_boot: bool,
}

impl Ended {
    /// The cost of an event. Only after boot recordings: nothing else could be measured earlier.
    pub(crate) fn event_cost(&self) -> Option<EventCost> {
        let tracefs = self.is_boot.then(Tracefs::find)?;
        let cost = tracefs.map_err(AgentError::from);
        let cost = cost.and_then(|tracefs| event_cost::measure(&tracefs, &self.clock));
        let print_error = |error: &AgentError| {
            printable::print_message(format_args!("hyperscope-agent: cost of an event: {error}"))
        };
        cost.inspect_err(print_error).ok()
    }
}

impl Prepared {
    /// Sets up the host's request.
    pub(crate) fn new(start: &Start) -> Result<Self> {
        Self::set_up(start, &[], false)
    }

    /// [`Prepared::new`] with events that the probes need.
    pub(crate) fn new_with(start: &Start, filtered: &[FilteredEvent]) -> Result<Self> {
        Self::set_up(start, filtered, false)
    }

    /// [`Prepared::new`] without the need for an event, because something else is recorded along with it.
    pub(crate) fn new_besides(start: &Start) -> Result<Self> {
        Self::set_up(start, &[], true)
    }

    fn set_up(start: &Start, filtered: &[FilteredEvent], may_be_empty: bool) -> Result<Self> {
        let tracefs = Tracefs::find()?;
        let flush =
            Some(Duration::from_millis(start.flush_ms.into())).filter(|time| !time.is_zero());
        if start.boot {
            return Self::of_boot(tracefs, flush);
        }
        let tracer = start.tracer.as_ref().map(function_tracer);
        let session = TraceSession::set_up(
            tracefs,
            &TraceRequest {
                events: &start.events,
                optional: start.optional.iter().map(String::as_str).collect(),
                filtered,
                probes: &start.probes,
                tracer: tracer.as_ref(),
                clock: start.clock.as_deref(),
                buffer_kib: start.buffer_kib.map(u64::from),
                may_be_empty,
                ..TraceRequest::default()
            },
        )?;
        let prepared = Self { session, flush, is_boot: false };
        prepared.filter(&start.filters)?;
        prepared.session.begin_tracer()?;
        prepared.session.enable_events()?;
        Ok(prepared)
    }

    /// The recording that the kernel's command line started at boot.
    fn of_boot(tracefs: Tracefs, flush: Option<Duration>) -> Result<Self> {
        let (session, without_format) = TraceSession::of_boot(tracefs)?;
        for event in without_format {
            printable::print_message(format_args!(
                "hyperscope-agent: {event} has no format file: its events will have no names"
            ));
        }
        Ok(Self { session, flush, is_boot: true })
    }

    /// Sets filters on recorded events.
    pub(crate) fn filter(&self, filters: &[EventFilter]) -> Result<()> {
        for EventFilter { event, filter } in filters {
            self.session.filter(event, filter)?;
        }
        Ok(())
    }

    /// Sets tracing options by the kernel's names; a prefix `no` clears one.
    pub(crate) fn set_options(&self, options: &[String]) -> Result<()> {
        Ok(options.iter().try_for_each(|option| self.session.set_option(option))?)
    }

    /// Starts recording before there are page streams: until then the events stay in the kernel's buffers.
    pub(crate) fn begin_early(&self) -> Result<()> {
        Ok(self.session.on()?)
    }

    /// Records only the first `count` CPUs.
    pub(crate) fn keep_cpus(&mut self, count: usize) {
        self.session.keep_cpus(count);
    }

    /// CPUs to record.
    pub(crate) fn cpus(&self) -> &[u32] {
        self.session.cpus()
    }

    /// The trace clock.
    pub(crate) fn clock(&self) -> &Clock {
        self.session.clock()
    }

    /// The texts that decode the pages.
    pub(crate) fn texts(&self) -> &Texts {
        self.session.texts()
    }

    /// The status that the host gets.
    pub(crate) fn started(&self) -> Started {
        let session = &self.session;
        let clock = session.clock();
        Started {
            events: u32::try_from(session.events().len()).unwrap_or(u32::MAX),
            clock: clock.name.clone(),
            clock_line: clock.line.clone(),
            conversion: clock.tsc_conversion.map(|tsc| (tsc.mult, tsc.shift, tsc.zero_ns)),
            buffer_kib: u32::try_from(session.buffer_kib()).unwrap_or(u32::MAX),
            cpus: session.cpus().to_vec(),
            traced: session.traced().map(|many| u32::try_from(many).unwrap_or(u32::MAX)),
        }
    }

    /// Starts recording into these streams; with fewer streams than CPUs, CPUs share them round-robin.
    pub(crate) fn begin(self, sinks: Vec<PageSink>) -> Result<Recording> {
        let signals = Signals { stop: Signal::new()?, abort: Signal::new()? };
        let sinks: Vec<_> = sinks.into_iter().map(|sink| Arc::new(Mutex::new(sink))).collect();
        let begun_cpu_ns = sys::process_cpu_ns();
        let mut recording = Recording { pumps: Vec::new(), signals, prepared: self, begun_cpu_ns };
        let (cpus, flush) = (recording.prepared.cpus().to_vec(), recording.prepared.flush);
        for (cpu, sink) in cpus.into_iter().zip(sinks.iter().cycle()) {
            let raw = recording.prepared.session.raw_pages(cpu)?;
            let signals = recording.signals.clone();
            recording.pumps.push(Pump::start(cpu, raw, Arc::clone(sink), flush, signals)?);
        }
        if !recording.prepared.is_boot {
            recording.prepared.session.on()?;
        }
        Ok(recording)
    }
}

impl Recording {
    /// Sets filters on recorded events.
    pub(crate) fn filter(&self, filters: &[EventFilter]) -> Result<()> {
        self.prepared.filter(filters)
    }

    /// Progress of the recording.
    pub(crate) fn status(&self) -> Status {
        let of_pump = |pump: &Pump| {
            let stats = self.prepared.session.stats(pump.cpu);
            let lost = stats.map_or(0, |(stats, _)| stats.events());
            CpuCounts { cpu: pump.cpu, lost, sent_bytes: pump.counts.bytes() }
        };
        Status {
            agent_cpu_ns: sys::process_cpu_ns().saturating_sub(self.begun_cpu_ns),
            wakeups: self.pumps.iter().map(|pump| pump.counts.wakeups()).sum(),
            cpus: self.pumps.iter().map(of_pump).collect(),
        }
    }

    /// Stops recording and sends the remaining pages.
    pub(crate) fn end(mut self) -> Result<Ended> {
        let mut interference = self.prepared.session.off()?.map(|why| why.to_string());
        self.signals.stop.set();
        let end = Instant::now() + REST;
        while Instant::now() < end && !self.pumps.iter().all(Pump::is_finished) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let status = self.status();
        self.signals.abort.set();
        let pumped = self.pumps.drain(..).map(Pump::join).collect::<Vec<_>>();
        let mut of_cpu = |pumped: Pumped| {
            let stats = self.prepared.session.stats(pumped.cpu);
            CpuEnd {
                cpu: pumped.cpu,
                sent_bytes: pumped.sent.bytes,
                stats: stats.map(|(_, text)| text).unwrap_or_default(),
                // Interference concerns all CPUs; the first one reports it.
                fault: pumped.fault.or_else(|| interference.take()),
            }
        };
        let ends = pumped.into_iter().map(&mut of_cpu).collect();
        Ok(Ended {
            cpus: ends,
            names: self.prepared.session.thread_names(),
            status,
            clock: self.prepared.clock().clone(),
            is_boot: self.prepared.is_boot,
        })
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        // Pumps hold files of the instance, which the kernel can't remove before.
        self.signals.abort.set();
        self.signals.stop.set();
        for pump in self.pumps.drain(..) {
            pump.join();
        }
    }
}

/// The function tracer of a host's request.
fn function_tracer(requested: &TracedFunctions) -> FunctionTracer {
    let TracedFunctions { returns, functions, except, within, depth } = requested.clone();
    FunctionTracer { returns, functions, except, within, depth }
}
