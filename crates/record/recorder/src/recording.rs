//! A recording: its begin and its state.

mod end;
mod guest_side;
mod host_pages;
mod host_streams;
mod needed;
mod progress;
mod rolling;

use std::fs;
use std::sync::Arc;
use std::time::Instant;

use os::folder::Folder;
use os::waits::Deadline;
use tracefs::{Clock, Owner, Profile, TraceRequest, TraceSession, Tracefs, UnixPair};
use vms::Vm;

use self::guest_side::GuestSide;
use self::host_pages::HostPages;
use self::host_streams::{HostStreams, LoadedStreams};
use crate::ending::{STOP_MESSAGE, Stop};
use crate::error::{RecordError, Result};
use crate::flight_plan::FlightPlan;
use crate::flusher;
use crate::guest::ReadyGuest;
use crate::guests::{self, HostTrace};
use crate::hypercalls;
use crate::module;
use crate::nanoseconds::unix_ns;
use crate::pending_guests;
use crate::plan::RecordPlan;
use crate::quota::Quota;
use crate::samples;
use crate::session;
use crate::session_folder::{PAGES_FOLDER, SessionFolder};
use crate::session_number;

pub use self::progress::Progress;

/// A running recording. Dropped before [`Recording::end`], it leaves its pages in a folder.
#[derive(Debug)]
pub struct Recording {
    // Drop order: pumps hold files of the instance.
    pages: HostPages,
    session: TraceSession,
    streams: HostStreams,
    guest_side: GuestSide,
    /// Ends it from outside.
    outside: Stop,
    vms: Vec<Vm>,
    /// Only the threads of one VM are recorded.
    of_vm: bool,
    to: SessionFolder,
    start: StartTimes,
    /// The id by which guests' files refer to this recording.
    trace_id: u64,
    /// Marks this process as the owner until everything is removed.
    _owner: Arc<Owner>,
}

/// Readings at the begin of a recording.
#[derive(Clone, Copy, Debug)]
struct StartTimes {
    at: Instant,
    unix_ns: u64,
    /// This process's CPU time so far.
    own_cpu_ns: u64,
    /// The trace clock together with Unix time; `None` if it can't be read.
    clocks: Option<UnixPair>,
}

impl StartTimes {
    fn now(clock: &Clock) -> Self {
        Self {
            at: Instant::now(),
            unix_ns: unix_ns(),
            own_cpu_ns: sys::process_cpu_ns(),
            clocks: UnixPair::now(clock),
        }
    }
}

impl Recording {
    /// Starts recording into a session's folder, unless `outside` ends it before. If starting fails, the folder stays
    /// empty.
    ///
    /// # Errors
    /// When the plan names something that does not exist, or the user has no permission to trace.
    pub fn begin(plan: &RecordPlan, to: &SessionFolder, outside: &Stop) -> Result<Self> {
        let mut recording = Self::set_up(plan, to, outside)?;
        let now = if plan.takes_guests_later() { &[][..] } else { &plan.guests };
        if plan.flight.is_some() {
            pending_guests::check(&plan.guests)?;
        }
        let clock = &recording.session.clock().name;
        let host = HostTrace { clock, trace_id: recording.trace_id };
        let ready = guests::connect(now, &plan.in_guests, host, outside.end_signal())?;
        let modules = module::find_all(&plan.modules)?;
        let names: Vec<String> = ready.iter().map(|guest| guest.name().to_owned()).collect();
        match recording.start(ready, modules, plan) {
            Ok(()) => Ok(recording),
            Err(error) => {
                recording.abandon(&names);
                Err(error)
            }
        }
    }

    /// Sets up tracing; enables nothing, and writes nothing to the session's folder yet.
    fn set_up(plan: &RecordPlan, to: &SessionFolder, outside: &Stop) -> Result<Self> {
        let tracefs = Tracefs::find()?;
        let vms = chosen_vms(plan.vm.as_deref())?;
        let owner = to.claim()?;
        let request = TraceRequest {
            events: &plan.events,
            optional: plan.profile.map(Profile::patterns).unwrap_or_default(),
            filtered: &[],
            probes: &plan.probes,
            tracer: plan.tracer.as_ref(),
            clock: plan.clock.as_deref(),
            buffer_kib: plan
                .buffer_kib
                .or_else(|| plan.flight.as_ref().map(FlightPlan::buffer_kib)),
            may_be_empty: plan.hypercalls.is_some(),
            is_another: false,
        };
        let session = TraceSession::set_up(tracefs, &request)?;
        let quota = Quota::new(plan.quota_bytes, outside);
        let start = StartTimes::now(session.clock());
        Ok(Self {
            pages: HostPages::new(quota, plan.flush.unwrap_or(flusher::FLUSH))?,
            session,
            streams: HostStreams::default(),
            guest_side: GuestSide::new(plan, outside)?,
            outside: outside.clone(),
            vms,
            of_vm: plan.vm.is_some(),
            to: to.clone(),
            start,
            trace_id: session_number::random()?,
            _owner: owner,
        })
    }

    /// Enables everything, host first.
    fn start(
        &mut self,
        ready: Vec<Box<dyn ReadyGuest>>,
        modules: Vec<module::Module>,
        plan: &RecordPlan,
    ) -> Result<()> {
        let only = self.of_vm.then_some(&*self.vms);
        let loaded = LoadedStreams::load(plan, &self.session, only, self.trace_id)?;
        match &plan.flight {
            Some(flight) => self.pages.begin_rolling(flight, &self.session, &self.to)?,
            None => self.pages.begin(&self.session, &self.to)?,
        }
        if self.of_vm {
            self.session.only_threads(&threads(&self.vms))?;
        }
        self.session.enable_events()?;
        self.start =
            StartTimes { unix_ns: self.start.unix_ns, ..StartTimes::now(self.session.clock()) };
        self.session.on()?;
        self.streams.begin(loaded, &self.to)?;
        let (clock, side) = (&*self.session.clock().name, &mut self.guest_side);
        side.begin_modules(modules, &self.to, self.pages.stop(), plan.in_guests.quota())?;
        side.begin(ready, plan, clock, &self.to, self.outside.end_signal())?;
        side.await_guests(plan, &self.to, clock, self.trace_id, &self.outside)
    }

    /// Ends a recording whose command could not be started, and empties its session's folder.
    pub fn undo(mut self) {
        self.outside.end();
        let names = self.guest_names();
        let _ = self.guest_side.stop();
        drop(self.guest_side.guests.lock().end());
        self.abandon(&names);
    }

    /// Removes everything of a recording that did not begin: it contains nothing useful. `names` are those of its
    /// guests.
    fn abandon(mut self, names: &[String]) {
        let to = self.to.clone();
        self.pages.stop().set();
        self.streams.abandon();
        let until = Deadline::after(STOP_MESSAGE);
        for module in self.guest_side.end_modules(until) {
            let _ = to.remove(&module.file);
        }
        // Pumps end first, then the thread that syncs their files, then the instance is removed.
        drop(self);
        guests::forget(names, &to);
        hypercalls::forget(&to);
        samples::forget(&to);
        let _ = to.remove_all(FOLDER);
        session::free_room(&to);
    }

    /// Number of requested guests.
    #[must_use]
    pub fn guests_asked(&self) -> usize {
        self.guest_side.guest_count
    }

    /// Names of the guests that are or were recorded.
    #[must_use]
    pub fn guest_names(&self) -> Vec<String> {
        self.guest_side.guests.lock().names()
    }

    /// Their channels, in the same order; `trace-cmd:…` for trace-cmd's agent.
    #[must_use]
    pub fn guest_channels(&self) -> Vec<String> {
        self.guest_side.guests.lock().channels()
    }

    /// The folder of pages during the recording.
    fn pages_folder(&self) -> Result<Folder> {
        let opened = self.to.existing_subfolder(FOLDER);
        opened.map_err(RecordError::io("open", &self.to.path().join(FOLDER)))
    }

    /// Size of each CPU's buffer in the kernel.
    #[must_use]
    pub fn buffer_kib(&self) -> u64 {
        self.session.buffer_kib()
    }

    /// Number of recorded CPUs.
    #[must_use]
    pub fn cpus(&self) -> usize {
        self.pages.cpus()
    }

    /// The trace clock.
    #[must_use]
    pub fn clock(&self) -> &str {
        &self.session.clock().name
    }

    #[must_use]
    pub fn events(&self) -> &[String] {
        self.session.events()
    }

    /// The function tracer, and its number of functions.
    #[must_use]
    pub fn tracer(&self) -> Option<(&'static str, Option<usize>)> {
        Some((self.session.tracer()?.name(), self.session.traced()))
    }

    /// The running VMs.
    #[must_use]
    pub fn vms(&self) -> &[Vm] {
        &self.vms
    }
}

/// The session's folder of the host's pages.
pub(crate) const FOLDER: &str = PAGES_FOLDER;

/// All VMs, or the named one.
fn chosen_vms(name: Option<&str>) -> Result<Vec<Vm>> {
    let vms = vms::running();
    let Some(name) = name else { return Ok(vms) };
    match vms::called(&vms, name)? {
        Some(vm) => Ok(vec![vm.clone()]),
        None => {
            let shown = |vm: &Vm| format!("{} (process {})", printable::label(&vm.name), vm.pid);
            let vms = vms.iter().map(shown).collect();
            Err(RecordError::NoSuchVm { name: name.to_owned(), vms })
        }
    }
}

/// Thread ids of the VMs' processes.
fn threads(vms: &[Vm]) -> String {
    let of_vm = |vm: &Vm| {
        let entries = fs::read_dir(format!("/proc/{}/task", vm.pid)).into_iter().flatten();
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect::<Vec<_>>()
    };
    vms.iter().flat_map(of_vm).collect::<Vec<_>>().join(" ")
}
