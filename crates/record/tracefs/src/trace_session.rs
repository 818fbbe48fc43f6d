//! The kernel side of a recording: an instance, probes, a function tracer, a clock and the chosen events.

use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use parking_lot::Mutex;

use crate::clock::Clock;
use crate::error::{Result, TracefsError};
use crate::events::{Available, FilteredEvent};
use crate::instance::{Instance, usual_buffer_kib};
use crate::interference::Watch;
use crate::mounted::Tracefs;
use crate::probes::{MissedHits, Probes};
use crate::raw_pages::RawPages;
use crate::stats::{CpuStats, StatsFile};
use crate::texts::Texts;
use crate::tracer::FunctionTracer;

#[derive(Clone, Debug, Default)]
pub struct TraceRequest<'r> {
    /// Events, systems and patterns; each must match an event.
    pub events: &'r [String],
    /// Patterns that may match nothing.
    pub optional: Vec<&'r str>,
    /// Events with a filter. An event that another list chooses, too, is recorded without its filter.
    pub filtered: &'r [FilteredEvent],
    /// Probes, each `FUNCTION [ARGUMENTS]`.
    pub probes: &'r [String],
    /// Function tracer, in addition to events.
    pub tracer: Option<&'r FunctionTracer>,
    /// The trace clock; `None`: the best one.
    pub clock: Option<&'r str>,
    /// Size of each CPU's buffer; `None`: depends on the number of CPUs.
    pub buffer_kib: Option<u64>,
    /// Allows a session without events, because something else is recorded along with it.
    pub may_be_empty: bool,
    /// Makes another instance: this process has one already.
    pub is_another: bool,
}

/// Changes that other programs made to a session while it was on: the files of its instance that they wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interference {
    files: Vec<String>,
    /// The instance's folder, if it is gone.
    gone: Option<PathBuf>,
}

impl Interference {
    /// From the files that others wrote. If the instance is gone, nothing is known about the files.
    fn from_files(files: Vec<String>, instance: &Instance) -> Option<Self> {
        let gone = (!instance.is_there()).then(|| instance.file(""));
        (gone.is_some() || !files.is_empty()).then_some(Self { files, gone })
    }
}

impl fmt::Display for Interference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(gone) = &self.gone {
            return write!(
                f,
                "{} disappeared, because tracefs was unmounted or another program removed it: uncounted events may be missing",
                gone.display()
            );
        }
        let files = self.files.join(", ");
        write!(
            f,
            "another program changed the tracing instance during recording (it wrote {files}): uncounted events may be missing"
        )
    }
}

/// Tracing set up in the kernel. Drop removes all of it.
#[derive(Debug)]
pub struct TraceSession {
    /// Set while the session is on.
    watch: Mutex<Option<Watch>>,
    // Drop order: the instance disables its events before the probes and the mount go.
    instance: Instance,
    probes: Probes,
    tracefs: Tracefs,
    clock: Clock,
    events: Vec<String>,
    texts: Texts,
    cpus: Vec<u32>,
    buffer_kib: u64,
    tracer: Option<FunctionTracer>,
    traced: Option<usize>,
}

impl TraceSession {
    /// Sets up the request; enables nothing yet.
    ///
    /// # Errors
    /// When the kernel lacks a requested feature, or the user has no permission to trace.
    pub fn set_up(tracefs: Tracefs, request: &TraceRequest<'_>) -> Result<Self> {
        let instance = match request.tracer {
            Some(tracer) => tracer.instance(&tracefs)?,
            None if request.is_another => Instance::make_another(&tracefs)?,
            None => Instance::make(&tracefs)?,
        };
        let probes = Probes::set(tracefs.root(), request.probes)?;
        let available = Available::list(&instance.file("events"))?;
        let mut events = available.choose(&request.optional, request.events)?;
        let filtered = available.besides(&events, request.filtered);
        for FilteredEvent { event, filter } in &filtered {
            let _ = instance.set_filter(event, filter);
        }
        events.extend(filtered.iter().map(|filtered_event| filtered_event.event.to_owned()));
        events.extend(probes.events());
        if events.is_empty() && request.tracer.is_none() && !request.may_be_empty {
            return Err(TracefsError::NothingChosen);
        }
        let clock = Clock::select(&instance, request.clock)?;
        let usual = || Ok(usual_buffer_kib(instance.cpus()?.len()));
        let buffer_kib = request.buffer_kib.map_or_else(usual, Ok)?;
        instance.set("buffer_size_kb", &buffer_kib.to_string())?;
        let tracer = request.tracer.cloned();
        let traced = tracer.as_ref().and_then(|tracer| tracer.traced(&tracefs, &instance));
        Ok(Self {
            tracer,
            traced,
            ..Self::from_parts(tracefs, (instance, probes), clock, events, buffer_kib)?
        })
    }

    /// A session without a function tracer, from parts that are set up.
    fn from_parts(
        tracefs: Tracefs,
        (instance, probes): (Instance, Probes),
        clock: Clock,
        events: Vec<String>,
        buffer_kib: u64,
    ) -> Result<Self> {
        let cpus = instance.cpus()?;
        let texts = Texts::read(tracefs.root(), &instance, &events)?;
        Ok(Self {
            watch: Mutex::new(None),
            instance,
            probes,
            tracefs,
            clock,
            events,
            texts,
            cpus,
            buffer_kib,
            tracer: None,
            traced: None,
        })
    }

    /// The recording that the kernel's command line started at boot, and its events that have no format: they will have
    /// no names.
    ///
    /// # Errors
    /// When the user has no permission to trace.
    pub fn of_boot(tracefs: Tracefs) -> Result<(Self, Vec<String>)> {
        let instance = Instance::top(&tracefs);
        // Kernels that set probes from the command line while other CPUs create tracefs leave some events without a
        // folder (6.1). An unreadable event must not prevent the recording of all others.
        let folder = instance.file("events");
        let has_format =
            |event: &String| folder.join(event.replacen(':', "/", 1)).join("format").exists();
        let (events, without): (Vec<_>, Vec<_>) =
            instance.enabled()?.into_iter().partition(has_format);
        let clock = Clock::current(&instance)?;
        let kib = instance.get("buffer_size_kb")?;
        let buffer_kib =
            kib.split_whitespace().next().and_then(|kib| kib.parse().ok()).unwrap_or(0);
        let probes = Probes::set(tracefs.root(), &[])?;
        Ok((Self::from_parts(tracefs, (instance, probes), clock, events, buffer_kib)?, without))
    }

    /// Enables the function tracer, if one was requested. The kernel changes no tracer while a reader has pages open,
    /// so this comes before [`TraceSession::raw_pages`].
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn begin_tracer(&self) -> Result<()> {
        self.tracer.as_ref().map_or(Ok(()), |tracer| tracer.begin(&self.instance))
    }

    /// Limits tracing to these threads: thread ids separated by blanks.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn only_threads(&self, threads: &str) -> Result<()> {
        self.instance.set("set_event_pid", threads)?;
        self.tracer.as_ref().map_or(Ok(()), |tracer| tracer.only(&self.instance, threads))
    }

    /// Enables the events; recording begins with [`TraceSession::on`].
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn enable_events(&self) -> Result<()> {
        self.change(|| self.events.iter().try_for_each(|event| self.instance.enable(event)))
    }

    /// Starts recording.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn on(&self) -> Result<()> {
        self.change(|| self.instance.set("tracing_on", "1"))?;
        let mut watch = self.watch.lock();
        if watch.is_none() {
            *watch = Some(Watch::begin(&self.instance, &self.cpus, &self.events));
        }
        Ok(())
    }

    /// Stops recording. Returns changes by others that may have lost events without a count.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn off(&self) -> Result<Option<Interference>> {
        let watch = self.watch.lock().take();
        let files = watch.map_or_else(Vec::new, |watch| watch.end(&self.instance));
        self.instance.set("tracing_on", "0")?;
        Ok(Interference::from_files(files, &self.instance))
    }

    /// Changes by others since `begin` that may have lost events without a count.
    #[must_use]
    pub fn interference_since(&self, begin: Instant) -> Option<Interference> {
        let files =
            self.watch.lock().as_mut().map(|watch| watch.changed_since(begin, &self.instance))?;
        Interference::from_files(files, &self.instance)
    }

    /// Runs a change of our own on a session that may be on, so that it does not count as interference.
    fn change(&self, change: impl FnOnce() -> Result<()>) -> Result<()> {
        let mut watch = self.watch.lock();
        watch.iter_mut().for_each(Watch::note);
        let changed = change();
        watch.iter_mut().for_each(Watch::forget);
        changed
    }

    /// Sets a filter on those chosen events that match a pattern.
    ///
    /// # Errors
    /// When the pattern matches no event of the kernel, or the kernel rejects the filter.
    pub fn filter(&self, pattern: &str, filter: &str) -> Result<()> {
        let available = Available::list(&self.instance.file("events"))?;
        let named = available.choose(&[""; 0], &[pattern.to_owned()])?;
        let mut chosen = named.iter().filter(|event| self.events.contains(event));
        self.change(|| chosen.try_for_each(|event| self.instance.set_filter(event, filter)))
    }

    /// Sets a tracing option by the kernel's name; a prefix `no` clears it.
    ///
    /// # Errors
    /// When the kernel has no such option.
    pub fn set_option(&self, option: &str) -> Result<()> {
        self.change(|| self.instance.set("trace_options", option))
    }

    /// Opens the pages of a CPU.
    ///
    /// # Errors
    /// When they can't be opened.
    pub fn raw_pages(&self, cpu: u32) -> Result<RawPages> {
        RawPages::open(&self.instance, cpu, self.texts.page_size() as usize)
    }

    /// A CPU's counts so far, and the kernel's text. Missed hits of probes are counted for all CPUs together, on the
    /// first CPU.
    ///
    /// # Errors
    /// When the kernel does not give them.
    pub fn stats(&self, cpu: u32) -> Result<(CpuStats, String)> {
        let (stats, text) = CpuStats::now(&self.instance, cpu)?;
        let missed = self.missed_hits(cpu).map_or(0, |hits| hits.now());
        Ok(stats.and_dropped(missed, text))
    }

    /// The counts of [`TraceSession::stats`] in a file for repeated reads.
    ///
    /// # Errors
    /// When there is no such CPU.
    pub fn stats_file(&self, cpu: u32) -> Result<StatsFile> {
        StatsFile::open(&self.instance, cpu, self.missed_hits(cpu))
    }

    /// Missed hits, if this CPU's counts include them.
    fn missed_hits(&self, cpu: u32) -> Option<MissedHits> {
        (self.cpus.first() == Some(&cpu)).then(|| self.probes.missed_hits())
    }

    /// Names of threads from `saved_cmdlines`; empty if unreadable.
    #[must_use]
    pub fn thread_names(&self) -> Vec<u8> {
        fs::read(self.tracefs.root().join("saved_cmdlines")).unwrap_or_default()
    }

    /// Keeps only the first `count` CPUs.
    pub fn keep_cpus(&mut self, count: usize) {
        self.cpus.truncate(count);
    }

    /// The recorded CPUs, in order.
    #[must_use]
    pub fn cpus(&self) -> &[u32] {
        &self.cpus
    }

    #[must_use]
    pub fn tracefs(&self) -> &Tracefs {
        &self.tracefs
    }

    /// The trace clock.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The chosen events, as `SYSTEM:NAME`.
    #[must_use]
    pub fn events(&self) -> &[String] {
        &self.events
    }

    /// The texts that decode the pages.
    #[must_use]
    pub fn texts(&self) -> &Texts {
        &self.texts
    }

    /// Size of each CPU's buffer in the kernel.
    #[must_use]
    pub fn buffer_kib(&self) -> u64 {
        self.buffer_kib
    }

    /// The function tracer, if one was requested.
    #[must_use]
    pub fn tracer(&self) -> Option<&FunctionTracer> {
        self.tracer.as_ref()
    }

    /// Number of traced functions, if the kernel lists them.
    #[must_use]
    pub fn traced(&self) -> Option<usize> {
        self.traced
    }

    /// Removes the kernel side; returns the texts and the clock, which decode the pages.
    #[must_use]
    pub fn release(self) -> (Texts, Clock) {
        (self.texts, self.clock)
    }
}
