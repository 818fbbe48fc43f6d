//! A recording: how it begins, runs and ends.

mod end;
mod needed;
mod progress;

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use channel::{Deadline, Signal};
use collector::Collector;
use folder::Folder;
use rustix::time::{ClockId, clock_gettime};
use sampler::Sampler;
use tracefs::{
    Available, Clock, FunctionTracer, Instance, Owner, Probes, RawPages, Texts, Tracefs,
    usual_buffer_kib,
};
use vms::Vm;

use crate::ending::{Ending, STOP_MESSAGE, Stop};
use crate::error::{RecordError, Result};
use crate::flusher::{self, Flusher, GrowingFiles};
use crate::guests::{self, Ready, SharedGuests};
use crate::hypercalls;
use crate::module::{self, Module};
use crate::pending_guests::PendingGuests;
use crate::plan::RecordPlan;
use crate::pump::{Pump, stop_signal};
use crate::quota::Quota;
use crate::samples;
use crate::session;
use crate::session_folder::{PAGES_FOLDER, SessionFolder};
use crate::session_number;

pub use self::progress::Progress;

/// A running recording. Dropped before [`Recording::end`], it leaves its pages in a folder.
#[derive(Debug)]
pub struct Recording {
    // Dropped in this order: the instance's events go off before probes and the mount go.
    instance: Instance,
    probes: Probes,
    tracefs: Tracefs,
    /// What ends it from outside.
    outside: Stop,
    /// The end of its guests.
    ending: Ending,
    guest_wait: Duration,
    quota: Quota,
    /// The signal to pumps, and to whoever else writes what the host records, that it is over.
    stop: Signal,
    pumps: Vec<Pump>,
    flusher: Option<Flusher>,
    /// How long events stay off the disk at most.
    flush: Duration,
    texts: Texts,
    clock: Clock,
    events: Vec<String>,
    buffer_kib: u64,
    tracer: Option<FunctionTracer>,
    /// Functions that get its call.
    traced: Option<usize>,
    vms: Vec<Vm>,
    /// Only the threads of one VM are recorded.
    of_vm: bool,
    guests: SharedGuests,
    guests_asked: usize,
    /// Guests that are not up yet.
    pending_guests: Option<PendingGuests>,
    modules: Vec<module::Recorded>,
    collector: Option<Collector>,
    /// With the samples a second that were asked for.
    sampler: Option<(Sampler, u32)>,
    to: SessionFolder,
    begun: Instant,
    begun_unix_ns: u64,
    /// The number by which files of guests name this recording.
    trace_id: u64,
    own_cpu_ns: u64,
    /// Says what this recorder has, until all of it is gone.
    _owner: Arc<Owner>,
}

impl Recording {
    /// Begins to record into a session's folder, unless `outside` ends it before it has begun. Where
    /// that fails, it leaves nothing in it.
    ///
    /// # Errors
    /// When the plan names what is not there, or the system allows no tracing.
    pub fn begin(plan: &RecordPlan, to: &SessionFolder, outside: &Stop) -> Result<Self> {
        let tracefs = Tracefs::find()?;
        let vms = chosen_vms(plan.vm.as_deref())?;
        let owner = to.own()?;
        let instance = match &plan.tracer {
            Some(tracer) => tracer.instance(&tracefs)?,
            None => Instance::make(&tracefs)?,
        };
        let probes = Probes::set(tracefs.root(), &plan.probes)?;
        let optional = plan.profile.map(tracefs::Profile::patterns).unwrap_or_default();
        let mut events =
            Available::list(&instance.file("events"))?.choose(&optional, &plan.events)?;
        events.extend(probes.events());
        if events.is_empty() && plan.hypercalls.is_none() && plan.tracer.is_none() {
            return Err(RecordError::Usage("no event is to be recorded".into()));
        }
        let clock = Clock::select(&instance, plan.clock.as_deref())?;
        let cpus = instance.cpus()?;
        let buffer_kib = plan.buffer_kib.unwrap_or_else(|| usual_buffer_kib(cpus.len()));
        instance.set("buffer_size_kb", &buffer_kib.to_string())?;
        let texts = Texts::read(tracefs.root(), &instance, &events)?;
        let traced = plan.tracer.as_ref().and_then(|one| one.traced(&tracefs, &instance));
        let mut recording = Self {
            instance,
            probes,
            tracefs,
            outside: outside.clone(),
            ending: outside.ending()?,
            guest_wait: plan.in_guests.wait(),
            quota: Quota::new(plan.quota_bytes, outside),
            stop: stop_signal()?,
            pumps: Vec::new(),
            flusher: None,
            flush: plan.flush.unwrap_or(flusher::FLUSH),
            texts,
            clock,
            events,
            buffer_kib,
            tracer: plan.tracer.clone(),
            traced,
            vms,
            of_vm: plan.vm.is_some(),
            guests: SharedGuests::default(),
            guests_asked: plan.guests.len(),
            pending_guests: None,
            modules: Vec::new(),
            collector: None,
            sampler: None,
            to: to.clone(),
            begun: Instant::now(),
            begun_unix_ns: unix_ns(),
            trace_id: session_number::random()?,
            own_cpu_ns: own_cpu_ns(),
            _owner: owner,
        };
        let (clock, trace_id) = (&recording.clock.name, recording.trace_id);
        // What a guest has recorded since it booted can be had later, too.
        let now = if plan.in_guests.boot { &[][..] } else { &plan.guests };
        let stop = outside.end_signal();
        let ready = guests::connect(now, &plan.in_guests, clock, trace_id, stop)?;
        let modules = module::find_all(&plan.modules)?;
        let names: Vec<String> = ready.iter().map(|guest| guest.name().to_owned()).collect();
        let started = recording.start_all(&cpus, ready, modules, plan);
        match started.and_then(|()| recording.await_guests(plan)) {
            Ok(()) => Ok(recording),
            Err(error) => {
                // Nothing was recorded yet that anybody would want. Pumps hold files of the instance,
                // which could not go before them.
                recording.stop.give();
                drop(recording.collector.take().map(Collector::end));
                drop(recording.sampler.take().map(|(sampler, _)| sampler.end()));
                recording.pumps.drain(..).for_each(|pump| drop(pump.join()));
                let until = Deadline::after(STOP_MESSAGE);
                drop(recording.flusher.take().map(|flusher| flusher.end(until)));
                for module in recording.modules.drain(..) {
                    let _ = to.remove(&module.end(Deadline::after(STOP_MESSAGE)).file);
                }
                drop(recording);
                guests::forget(&names, to);
                hypercalls::forget(to);
                samples::forget(to);
                let _ = to.remove_all(FOLDER);
                session::free_room(to);
                Err(error)
            }
        }
    }

    fn start_all(
        &mut self,
        cpus: &[u32],
        ready: Vec<Ready>,
        modules: Vec<Module>,
        plan: &RecordPlan,
    ) -> Result<()> {
        let load = |what| hypercalls::load(what, &self.clock.name, self.trace_id);
        let loaded = plan.hypercalls.map(load).transpose()?;
        let only = self.of_vm.then_some(&*self.vms);
        let open = |what| samples::open(what, cpus, only, (&self.clock.name, self.trace_id));
        let sampling = plan.sampling;
        let opened = sampling.map(open).transpose()?;
        self.start(cpus)?;
        if let Some((sampling, opened)) = sampling.zip(opened) {
            self.sampler = Some((samples::begin(opened, &self.to)?, sampling.hz));
        }
        self.collector = loaded.map(|one| hypercalls::begin(one, &self.to)).transpose()?;
        for module in modules {
            self.modules.push(module.begin(&self.to, &self.stop, plan.in_guests.quota())?);
        }
        let (what, stop) = (&plan.in_guests, self.outside.end_signal());
        self.guests.lock().begin(ready, what, &self.clock.name, &self.to, stop, &self.ending)
    }

    /// Takes guests in as they come up, where what they record began without this.
    fn await_guests(&mut self, plan: &RecordPlan) -> Result<()> {
        if plan.in_guests.boot && !plan.guests.is_empty() {
            let (clock, trace_id) = (self.clock.name.clone(), self.trace_id);
            let guests = self.guests.clone();
            let pending_guests =
                PendingGuests::begin(plan, &self.to, clock, trace_id, guests, &self.ending);
            self.pending_guests = Some(pending_guests?);
        }
        Ok(())
    }

    /// Guests that are to be recorded.
    #[must_use]
    pub fn guests_asked(&self) -> usize {
        self.guests_asked
    }

    /// Names of the guests that are recorded, or were.
    #[must_use]
    pub fn guest_names(&self) -> Vec<String> {
        self.guests.lock().names()
    }

    fn start(&mut self, cpus: &[u32]) -> Result<()> {
        let made = self.to.subfolder(FOLDER);
        let folder = made.map_err(RecordError::io("make", &self.to.path().join(FOLDER)))?;
        session::take_room(&self.to)?;
        self.texts.write(&folder, &self.clock.line)?;
        let page_size = self.texts.page_size() as usize;
        // The kernel changes no tracer while somebody reads pages.
        self.tracer.as_ref().map_or(Ok(()), |one| one.begin(&self.instance))?;
        for &cpu in cpus {
            let raw = RawPages::open(&self.instance, cpu, page_size)?;
            let (stop, quota) = (self.stop.clone(), self.quota.clone());
            self.pumps.push(Pump::start(cpu, raw, &folder, stop, quota, Some(self.flush))?);
        }
        folder
            .sync()
            .and_then(|()| self.to.sync())
            .map_err(RecordError::io("write", folder.path()))?;
        let files = GrowingFiles::default();
        self.pumps.iter_mut().filter_map(Pump::growing).for_each(|file| files.add(file));
        let path = folder.path().to_owned();
        let flusher = Flusher::start((*self.to).clone(), folder, files, self.flush);
        self.flusher = Some(flusher.map_err(RecordError::io("start a thread for", &path))?);
        if self.of_vm {
            let threads = threads(&self.vms);
            self.instance.set("set_event_pid", &threads)?;
            self.tracer.as_ref().map_or(Ok(()), |one| one.only(&self.instance, &threads))?;
        }
        for event in &self.events {
            self.instance.enable(event)?;
        }
        self.own_cpu_ns = own_cpu_ns();
        self.begun = Instant::now();
        Ok(self.instance.set("tracing_on", "1")?)
    }

    /// The folder with the pages while it runs.
    fn pages_folder(&self) -> Result<Folder> {
        let opened = self.to.existing_subfolder(FOLDER);
        opened.map_err(RecordError::io("open", &self.to.path().join(FOLDER)))
    }

    /// Size of each CPU's buffer in the kernel.
    #[must_use]
    pub fn buffer_kib(&self) -> u64 {
        self.buffer_kib
    }

    /// CPUs that are recorded.
    #[must_use]
    pub fn cpus(&self) -> usize {
        self.pumps.len()
    }

    /// The trace clock.
    #[must_use]
    pub fn clock(&self) -> &str {
        &self.clock.name
    }

    /// Events that are on.
    #[must_use]
    pub fn events(&self) -> &[String] {
        &self.events
    }

    /// The tracer of functions, and how many it is in.
    #[must_use]
    pub fn tracer(&self) -> Option<(&'static str, Option<usize>)> {
        Some((self.tracer.as_ref()?.name(), self.traced))
    }

    /// VMs that run.
    #[must_use]
    pub fn vms(&self) -> &[Vm] {
        &self.vms
    }
}

/// The folder with the pages, in the session's.
pub(crate) const FOLDER: &str = PAGES_FOLDER;

/// All VMs, or the one that is named.
fn chosen_vms(asked: Option<&str>) -> Result<Vec<Vm>> {
    let vms = vms::running();
    let Some(asked) = asked else { return Ok(vms) };
    match vms::called(&vms, asked)? {
        Some(vm) => Ok(vec![vm.clone()]),
        None => {
            let shown = |vm: &Vm| format!("{} (process {})", printable::label(&vm.name), vm.pid);
            let vms = vms.iter().map(shown).collect();
            Err(RecordError::NoSuchVm { name: asked.to_owned(), vms })
        }
    }
}

/// Numbers of all threads of the VMs' processes.
fn threads(vms: &[Vm]) -> String {
    let of_vm = |vm: &Vm| {
        let entries = fs::read_dir(format!("/proc/{}/task", vm.pid)).into_iter().flatten();
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect::<Vec<_>>()
    };
    vms.iter().flat_map(of_vm).collect::<Vec<_>>().join(" ")
}

pub(crate) fn unix_ns() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

/// CPU time of this process.
fn own_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let whole = u64::try_from(time.tv_sec).unwrap_or(0).saturating_mul(1_000_000_000);
    whole.saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}
