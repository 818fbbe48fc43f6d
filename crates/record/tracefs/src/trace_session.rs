//! What a recording has of a kernel, set up once: buffers of its own, probes, a tracer of functions, a clock and
//! the events chosen.

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
    /// Events, systems and patterns; each must name an event.
    pub events: &'r [String],
    /// The same, for events that the kernel need not have.
    pub optional: Vec<&'r str>,
    /// The same, each with a filter: one that is chosen in another way, too, is recorded without.
    pub filtered: &'r [FilteredEvent],
    /// Probes, each `FUNCTION [ARGUMENTS]`.
    pub probes: &'r [String],
    /// Calls of functions, in addition to events.
    pub tracer: Option<&'r FunctionTracer>,
    /// The trace clock; unset: the best one.
    pub clock: Option<&'r str>,
    /// Size of each CPU's buffer; unset: by the number of CPUs.
    pub buffer_kib: Option<u64>,
    /// Something else is recorded along with it: there may be no event.
    pub may_be_empty: bool,
    /// One more of this process, which has one already.
    pub is_another: bool,
}

/// What other programs did to a session while it was on: they wrote these files of its instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interference {
    files: Vec<String>,
    /// The instance's folder, if it is gone.
    gone: Option<PathBuf>,
}

impl Interference {
    /// Of files that others wrote; where the instance is gone, nothing is known of them.
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

/// A kernel's tracing as it was asked for. Nothing of it is left once it is dropped.
#[derive(Debug)]
pub struct TraceSession {
    /// Since it was switched on, until it is switched off.
    watch: Mutex<Option<Watch>>,
    // Dropped in this order: the instance's events go off before probes and the mount go.
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
    /// Sets up what is asked for; nothing is on yet.
    ///
    /// # Errors
    /// When the kernel does not have it, or this user may not trace.
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

    /// A session without a tracer of functions, of what is set up.
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

    /// What the kernel has recorded since it booted, because its command line says so; and those of its
    /// events that have no format: they will have no names.
    ///
    /// # Errors
    /// When this user may not trace.
    pub fn of_boot(tracefs: Tracefs) -> Result<(Self, Vec<String>)> {
        let instance = Instance::top(&tracefs);
        // Kernels that set probes from the command line while other processors make tracefs leave
        // some without a folder (6.1): what can't be read must not keep all else from being.
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

    /// Puts the tracer's call into functions, if one was asked for. The kernel changes no tracer while
    /// somebody reads pages: this comes before [`TraceSession::raw_pages`].
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn begin_tracer(&self) -> Result<()> {
        self.tracer.as_ref().map_or(Ok(()), |tracer| tracer.begin(&self.instance))
    }

    /// Traces these threads alone, their numbers with blanks between.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn only_threads(&self, threads: &str) -> Result<()> {
        self.instance.set("set_event_pid", threads)?;
        self.tracer.as_ref().map_or(Ok(()), |tracer| tracer.only(&self.instance, threads))
    }

    /// Switches the events on: they are recorded once [`TraceSession::on`] is called.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn enable_events(&self) -> Result<()> {
        self.change(|| self.events.iter().try_for_each(|event| self.instance.enable(event)))
    }

    /// Begins to record.
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

    /// Ends that; what others did to it meanwhile that may have cost events which nobody counted.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn off(&self) -> Result<Option<Interference>> {
        let watch = self.watch.lock().take();
        let files = watch.map_or_else(Vec::new, |watch| watch.end(&self.instance));
        self.instance.set("tracing_on", "0")?;
        Ok(Interference::from_files(files, &self.instance))
    }

    /// What others may have done to it since a moment that may have cost events which nobody counted.
    #[must_use]
    pub fn interference_since(&self, begin: Instant) -> Option<Interference> {
        let files =
            self.watch.lock().as_mut().map(|watch| watch.changed_since(begin, &self.instance))?;
        Interference::from_files(files, &self.instance)
    }

    /// Changes something about a session that may be on; by its own hand nothing is lost.
    fn change(&self, change: impl FnOnce() -> Result<()>) -> Result<()> {
        let mut watch = self.watch.lock();
        watch.iter_mut().for_each(Watch::note);
        let changed = change();
        watch.iter_mut().for_each(Watch::forget);
        changed
    }

    /// Filters those events among the chosen that a pattern names.
    ///
    /// # Errors
    /// When it names none of the kernel's, or the kernel can't read the filter.
    pub fn filter(&self, pattern: &str, filter: &str) -> Result<()> {
        let available = Available::list(&self.instance.file("events"))?;
        let named = available.choose(&[""; 0], &[pattern.to_owned()])?;
        let mut chosen = named.iter().filter(|event| self.events.contains(event));
        self.change(|| chosen.try_for_each(|event| self.instance.set_filter(event, filter)))
    }

    /// Switches a tracing option on, by the kernel's name; one that begins with `no` off.
    ///
    /// # Errors
    /// When the kernel has no such option.
    pub fn set_option(&self, option: &str) -> Result<()> {
        self.change(|| self.instance.set("trace_options", option))
    }

    /// The pages of a CPU.
    ///
    /// # Errors
    /// When they can't be opened.
    pub fn raw_pages(&self, cpu: u32) -> Result<RawPages> {
        RawPages::open(&self.instance, cpu, self.texts.page_size() as usize)
    }

    /// What a CPU recorded and lost so far, and the kernel's text of it. Hits of probes that the kernel did not record are
    /// counted for all CPUs together: the first has them.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn stats(&self, cpu: u32) -> Result<(CpuStats, String)> {
        let (stats, text) = CpuStats::now(&self.instance, cpu)?;
        let missed = self.missed_hits(cpu).map_or(0, |hits| hits.now());
        Ok(stats.and_dropped(missed, text))
    }

    /// The counts of a CPU as [`TraceSession::stats`] has them, to be read again and again.
    ///
    /// # Errors
    /// When the kernel has none.
    pub fn stats_file(&self, cpu: u32) -> Result<StatsFile> {
        StatsFile::open(&self.instance, cpu, self.missed_hits(cpu))
    }

    /// Hits that a CPU's counts are to have besides its own.
    fn missed_hits(&self, cpu: u32) -> Option<MissedHits> {
        (self.cpus.first() == Some(&cpu)).then(|| self.probes.missed_hits())
    }

    /// Names of threads, as the kernel saved them; empty where it does not say.
    #[must_use]
    pub fn thread_names(&self) -> Vec<u8> {
        fs::read(self.tracefs.root().join("saved_cmdlines")).unwrap_or_default()
    }

    /// Leaves out all CPUs but the first.
    pub fn keep_cpus(&mut self, count: usize) {
        self.cpus.truncate(count);
    }

    /// CPUs that are recorded, in order.
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

    /// The events chosen, as `SYSTEM:NAME`.
    #[must_use]
    pub fn events(&self) -> &[String] {
        &self.events
    }

    /// What pages are read with.
    #[must_use]
    pub fn texts(&self) -> &Texts {
        &self.texts
    }

    /// Size of each CPU's buffer in the kernel.
    #[must_use]
    pub fn buffer_kib(&self) -> u64 {
        self.buffer_kib
    }

    /// The tracer of functions, if one was asked for.
    #[must_use]
    pub fn tracer(&self) -> Option<&FunctionTracer> {
        self.tracer.as_ref()
    }

    /// Functions that the tracer is in, as far as the kernel lists them.
    #[must_use]
    pub fn traced(&self) -> Option<usize> {
        self.traced
    }

    /// Leaves the kernel as it was; what pages are read with, and the clock, are kept.
    #[must_use]
    pub fn release(self) -> (Texts, Clock) {
        (self.texts, self.clock)
    }
}
