//! A recording of this machine, as its host asked for it.

use std::fs;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use channel::{PageSink, Signal};
use rustix::time::{ClockId, clock_gettime};
use tracefs::{
    Available, Clock, CpuStats, FunctionTracer, Instance, Probes, RawPages, Texts, Tracefs,
    usual_buffer_kib,
};
use wire::{CpuCounts, CpuEnd, EventCost, EventFilter, Start, Started, Status, TracedFunctions};

use crate::error::{AgentError, Result};
use crate::event_cost;
use crate::pump::{Pump, Pumped, Signals};

/// How long pumps may take to send the rest before the host counts as gone.
const REST: Duration = Duration::from_secs(20);

/// What is to be recorded, with everything set up, but nothing on yet.
#[derive(Debug)]
pub(crate) struct Prepared {
    // Dropped in this order: the instance's events go off before probes and the mount go.
    instance: Instance,
    _probes: Probes,
    tracefs: Tracefs,
    clock: Clock,
    events: Vec<String>,
    texts: Texts,
    cpus: Vec<u32>,
    buffer_kib: u64,
    flush: Option<Duration>,
    is_boot: bool,
    /// Functions that a tracer is in, where one was asked for and the kernel lists them.
    traced: Option<usize>,
}

/// A running recording. Nothing of it is left when it is dropped.
#[derive(Debug)]
pub(crate) struct Recording {
    pumps: Vec<Pump>,
    signals: Signals,
    prepared: Prepared,
    begun_cpu_ns: u64,
}

/// What a recording that has ended still has to report.
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
    /// What an event costs here, where the kernel recorded before anybody could measure anything else.
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
    /// Sets up what the host asks for.
    pub(crate) fn new(start: &Start) -> Result<Self> {
        let tracefs = Tracefs::find()?;
        let flush =
            Some(Duration::from_millis(start.flush_ms.into())).filter(|time| !time.is_zero());
        if start.boot {
            return Self::of_boot(tracefs, flush);
        }
        let tracer = start.tracer.as_ref().map(function_tracer);
        let instance = match &tracer {
            Some(tracer) => tracer.instance(&tracefs)?,
            None => Instance::make(&tracefs)?,
        };
        let probes = Probes::set(tracefs.root(), &start.probes)?;
        let mut events =
            Available::list(&instance.file("events"))?.choose(&start.optional, &start.events)?;
        events.extend(probes.events());
        if events.is_empty() && tracer.is_none() {
            return Err(AgentError::Refused("no event is to be recorded".into()));
        }
        let clock = Clock::select(&instance, start.clock.as_deref())?;
        let cpus = instance.cpus()?;
        let usual = usual_buffer_kib(cpus.len());
        let buffer_kib = start.buffer_kib.map_or(usual, u64::from);
        instance.set("buffer_size_kb", &buffer_kib.to_string())?;
        let texts = Texts::read(tracefs.root(), &instance, &events)?;
        let traced = tracer.as_ref().and_then(|one| one.traced(&tracefs, &instance));
        let is_boot = false;
        let prepared = Self {
            instance,
            _probes: probes,
            tracefs,
            clock,
            events,
            texts,
            cpus,
            buffer_kib,
            flush,
            is_boot,
            traced,
        };
        prepared.filter(&start.filters)?;
        // The kernel changes no tracer while somebody reads pages.
        tracer.map_or(Ok(()), |one| one.begin(&prepared.instance))?;
        for event in &prepared.events {
            prepared.instance.enable(event)?;
        }
        Ok(prepared)
    }

    /// What the kernel records since it booted, because its command line says so.
    fn of_boot(tracefs: Tracefs, flush: Option<Duration>) -> Result<Self> {
        let instance = Instance::top(&tracefs);
        // Kernels that set probes from the command line while other processors make tracefs leave
        // some without a folder (6.1): what can't be read must not keep all else from being.
        let folder = instance.file("events");
        let has_format =
            |event: &String| folder.join(event.replacen(':', "/", 1)).join("format").exists();
        let (events, without): (Vec<_>, Vec<_>) =
            instance.enabled()?.into_iter().partition(has_format);
        for event in without {
            printable::print_message(format_args!(
                "hyperscope-agent: {event} has no format: its events will have no names"
            ));
        }
        let clock = Clock::current(&instance)?;
        let cpus = instance.cpus()?;
        let texts = Texts::read(tracefs.root(), &instance, &events)?;
        let kib = instance.get("buffer_size_kb")?;
        let buffer_kib =
            kib.split_whitespace().next().and_then(|kib| kib.parse().ok()).unwrap_or(0);
        let probes = Probes::set(tracefs.root(), &[])?;
        let is_boot = true;
        Ok(Self {
            instance,
            _probes: probes,
            tracefs,
            clock,
            events,
            texts,
            cpus,
            buffer_kib,
            flush,
            is_boot,
            traced: None,
        })
    }

    /// Sets filters of events that are recorded.
    pub(crate) fn filter(&self, filters: &[EventFilter]) -> Result<()> {
        for EventFilter { event, filter } in filters {
            let available = Available::list(&self.instance.file("events"))?;
            let chosen = available.choose(&[""; 0], std::slice::from_ref(event))?;
            for event in chosen.iter().filter(|event| self.events.contains(event)) {
                let path = format!("events/{}/filter", event.replacen(':', "/", 1));
                self.instance.set(&path, filter)?;
            }
        }
        Ok(())
    }

    /// Switches tracing options on, by the kernel's names; those that begin with `no` off.
    pub(crate) fn set_options(&self, options: &[String]) -> Result<()> {
        Ok(options.iter().try_for_each(|option| self.instance.set("trace_options", option))?)
    }

    /// Switches it on before there is anywhere to send pages to: until then the kernel's buffers hold
    /// what is recorded.
    pub(crate) fn begin_early(&self) -> Result<()> {
        Ok(self.instance.set("tracing_on", "1")?)
    }

    /// Records only the first `count` CPUs.
    pub(crate) fn keep_cpus(&mut self, count: usize) {
        self.cpus.truncate(count);
    }

    /// CPUs that will be recorded.
    pub(crate) fn cpus(&self) -> &[u32] {
        &self.cpus
    }

    /// The trace clock.
    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// What pages are read with.
    pub(crate) fn texts(&self) -> &Texts {
        &self.texts
    }

    /// The status that the host gets.
    pub(crate) fn started(&self) -> Started {
        let conversion = self.clock.tsc_conversion;
        Started {
            events: u32::try_from(self.events.len()).unwrap_or(u32::MAX),
            clock: self.clock.name.clone(),
            clock_line: self.clock.line.clone(),
            conversion: conversion.map(|tsc| (tsc.mult, tsc.shift, tsc.zero_ns)),
            buffer_kib: u32::try_from(self.buffer_kib).unwrap_or(u32::MAX),
            cpus: self.cpus.clone(),
            traced: self.traced.map(|many| u32::try_from(many).unwrap_or(u32::MAX)),
        }
    }

    /// Switches it on, with pages to these streams: CPUs take turns where there are fewer.
    pub(crate) fn begin(self, sinks: Vec<PageSink>) -> Result<Recording> {
        let signals = Signals { stop: Signal::new()?, abort: Signal::new()? };
        let sinks: Vec<_> = sinks.into_iter().map(|sink| Arc::new(Mutex::new(sink))).collect();
        let page_size = self.texts.page_size() as usize;
        let mut recording =
            Recording { pumps: Vec::new(), signals, prepared: self, begun_cpu_ns: own_cpu_ns() };
        let (cpus, flush) = (recording.prepared.cpus.clone(), recording.prepared.flush);
        for (cpu, sink) in cpus.into_iter().zip(sinks.iter().cycle()) {
            let raw = RawPages::open(&recording.prepared.instance, cpu, page_size)?;
            let signals = recording.signals.clone();
            recording.pumps.push(Pump::start(cpu, raw, Arc::clone(sink), flush, signals)?);
        }
        if !recording.prepared.is_boot {
            recording.prepared.instance.set("tracing_on", "1")?;
        }
        Ok(recording)
    }
}

impl Recording {
    /// Sets filters of events that are recorded.
    pub(crate) fn filter(&self, filters: &[EventFilter]) -> Result<()> {
        self.prepared.filter(filters)
    }

    /// How it is going.
    pub(crate) fn status(&self) -> Status {
        let of_pump = |pump: &Pump| {
            let stats = CpuStats::now(&self.prepared.instance, pump.cpu);
            let lost = stats.map_or(0, |(stats, _)| stats.events());
            CpuCounts { cpu: pump.cpu, lost, sent_bytes: pump.counts.bytes() }
        };
        Status {
            agent_cpu_ns: own_cpu_ns().saturating_sub(self.begun_cpu_ns),
            wakeups: self.pumps.iter().map(|pump| pump.counts.wakeups()).sum(),
            cpus: self.pumps.iter().map(of_pump).collect(),
        }
    }

    /// Ends it and sends the rest of its pages.
    pub(crate) fn end(mut self) -> Result<Ended> {
        self.prepared.instance.set("tracing_on", "0")?;
        self.signals.stop.give();
        let end = Instant::now() + REST;
        while Instant::now() < end && !self.pumps.iter().all(Pump::is_finished) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let status = self.status();
        self.signals.abort.give();
        let pumped = self.pumps.drain(..).map(Pump::join).collect::<Vec<_>>();
        let of_cpu = |pumped: Pumped| {
            let stats = CpuStats::now(&self.prepared.instance, pumped.cpu);
            CpuEnd {
                cpu: pumped.cpu,
                sent_bytes: pumped.sent.bytes,
                stats: stats.map(|(_, text)| text).unwrap_or_default(),
                fault: pumped.fault,
            }
        };
        let ends = pumped.into_iter().map(of_cpu).collect();
        let names = self.prepared.tracefs.root().join("saved_cmdlines");
        Ok(Ended {
            cpus: ends,
            names: fs::read(names).unwrap_or_default(),
            status,
            clock: self.prepared.clock.clone(),
            is_boot: self.prepared.is_boot,
        })
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        // Pumps hold files of the instance, which could not go before them.
        self.signals.abort.give();
        self.signals.stop.give();
        for pump in self.pumps.drain(..) {
            pump.join();
        }
    }
}

/// The tracer that a host asks for.
fn function_tracer(asked: &TracedFunctions) -> FunctionTracer {
    let TracedFunctions { returns, functions, except, within, depth } = asked.clone();
    FunctionTracer { returns, functions, except, within, depth }
}

/// CPU time of this process.
fn own_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let whole = u64::try_from(time.tv_sec).unwrap_or(0).saturating_mul(1_000_000_000);
    whole.saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}
