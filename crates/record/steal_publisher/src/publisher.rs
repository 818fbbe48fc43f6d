//! One thread per guest: reads the trace, publishes spans, sleeps.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use os::waits::Signal;
use shmring::spans::SpanWriter;
use shmring::{Access, SharedMap};
use sys::{ClockId, clock_ns};
use vms::Vm;

use crate::error::{PublishError, Result};
use crate::guest_clock::GuestClock;
use crate::names::Names;
use crate::permission::{self, Permitted};
use crate::spans::Spans;
use crate::trace::Trace;

/// The published time lags by this fraction of a second: an event that had begun by then is in the kernel's buffer,
/// even if its CPU is a vCPU that was preempted.
const BEHIND: u64 = 200;
/// Min interval.
const SHORTEST: Duration = Duration::from_millis(1);
/// Number of intervals between two checks of KVM's clocks and of the VM's existence.
const CLOCK_LOOKS: u32 = 10;

/// Which guests get spans, and how soon.
#[derive(Clone, Debug)]
pub struct PublishOptions {
    /// Guests: names of VMs, or `[NAME=]shm:FILE`.
    pub guests: Vec<String>,
    /// Publishing interval, at least a millisecond.
    pub interval: Duration,
}

/// Guests that spans are published to.
#[derive(Debug)]
pub struct Publisher {
    stop: Signal,
    guests: Vec<(String, JoinHandle<Result<Summary>>)>,
}

/// Totals of one guest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub vm: String,
    /// Spans of all its vCPUs.
    pub spans: u64,
    /// Number of event pages read.
    pub pages: u64,
    /// Lost events.
    pub lost_events: u64,
    pub looks: u64,
    /// CPU time of the publishing thread, in nanoseconds; excludes the kernel's time for writing events.
    pub cpu_ns: u64,
    /// Why publishing ended early.
    pub over: Option<&'static str>,
}

impl Publisher {
    /// Starts publishing, for all guests or for none.
    ///
    /// # Errors
    /// When a guest can't be served, or this system can't be traced.
    pub fn begin(options: &PublishOptions) -> Result<Self> {
        let vms = vms::running();
        let lookups = options.guests.iter().map(|guest| permission::find(guest, &vms));
        let permitted: Vec<Permitted> = lookups.collect::<Result<_>>()?;
        let stop = Signal::new().map_err(PublishError::Pages)?;
        let interval = options.interval.max(SHORTEST);
        let mut guests = Vec::<Guest>::new();
        for permit in permitted {
            if guests.iter().any(|other| other.vm.pid == permit.vm.pid) {
                let text = format!("{} is listed twice", permit.vm.name);
                return Err(PublishError::Usage(text));
            }
            guests.push(Guest::begin(permit, interval, guests.is_empty())?);
        }
        let start = |guest: Guest| {
            let (name, stop) = (guest.vm.name.clone(), stop.clone());
            (name, std::thread::spawn(move || guest.go_on(&stop, interval)))
        };
        let guests = guests.into_iter().map(start).collect();
        Ok(Self { stop, guests })
    }

    /// Names of the VMs that get spans.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.guests.iter().map(|(name, _)| name.as_str())
    }

    /// Whether all guests' threads have ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.guests.iter().all(|(_, thread)| thread.is_finished())
    }

    /// Stops, and returns the totals.
    ///
    /// # Errors
    /// When the trace of a guest could not be read.
    pub fn end(self) -> Result<Vec<Summary>> {
        self.stop.set();
        let join = |(_, thread): (String, JoinHandle<Result<Summary>>)| {
            let broken = || PublishError::Pages(std::io::Error::other("a thread has ended"));
            thread.join().unwrap_or_else(|_| Err(broken()))
        };
        self.guests.into_iter().map(join).collect()
    }
}

#[derive(Debug)]
struct Guest {
    vm: Vm,
    trace: Trace,
    spans: Spans,
    behind: u64,
}

impl Guest {
    fn begin(permit: Permitted, interval: Duration, is_first: bool) -> Result<Self> {
        let Permitted { vm, memory } = permit;
        let clocks = clocks(&vm)?;
        let (trace, names) = Trace::begin(&vm, is_first)?;
        let of_host = trace.ticks_per_second().unwrap_or(0);
        let of_guest = clocks.first().map_or(0, |clock| clock.scaled(of_host));
        let map = vms::open_memory(&memory, Some(&vm), true)
            .and_then(|file| SharedMap::of_others(&file, Access::ReadWrite))
            .map_err(|source| PublishError::Memory { path: PathBuf::from(&memory), source })?;
        let vcpus: Vec<u32> = vm.vcpus.iter().map(|vcpu| vcpu.vcpu).collect();
        let interval_ns = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX);
        let writer = SpanWriter::lay_out(Arc::new(map), &vcpus, of_guest, interval_ns)
            .map_err(|source| PublishError::Area { vm: vm.name.clone(), source })?;
        let spans = Spans::new(&vm, &clocks, writer, Names::new(names));
        Ok(Self { vm, trace, spans, behind: of_host / BEHIND })
    }

    fn go_on(mut self, stop: &Signal, interval: Duration) -> Result<Summary> {
        let begun_ns = clock_ns(ClockId::ThreadCPUTime);
        let (mut looks, mut over) = (0_u64, None);
        let mut until_clocks = CLOCK_LOOKS;
        while over.is_none() && !stop.wait(interval) {
            over = self.look(self.behind)?;
            looks += 1;
            until_clocks -= 1;
            if until_clocks == 0 && over.is_none() {
                until_clocks = CLOCK_LOOKS;
                over = self.look_at_clocks();
            }
        }
        if over.is_none() {
            over = self.look(0)?;
            looks += 1;
        }
        let summary = Summary {
            vm: self.vm.name,
            spans: self.spans.count(),
            pages: self.trace.pages_read(),
            lost_events: self.trace.lost(),
            looks,
            cpu_ns: clock_ns(ClockId::ThreadCPUTime).saturating_sub(begun_ns),
            over,
        };
        self.spans.end();
        Ok(summary)
    }

    /// Publishes everything older than `behind` ticks.
    fn look(&mut self, behind: u64) -> Result<Option<&'static str>> {
        let until = sys::tsc().unwrap_or(0).saturating_sub(behind);
        self.trace.take(until, &mut self.spans)?;
        Ok(self.spans.publish(until, self.trace.lost()).err())
    }

    /// The guest or a migration may have set the clocks.
    fn look_at_clocks(&mut self) -> Option<&'static str> {
        let Some(now) = vms::vm_of(self.vm.pid) else { return Some("it has ended") };
        for (index, vcpu) in self.vm.vcpus.iter().enumerate() {
            let same = now.iter().find(|other| other.tid == vcpu.tid);
            if let Some(clock) = same.and_then(GuestClock::for_vcpu) {
                self.spans.set_clock(index, clock);
            }
        }
        None
    }
}

fn clocks(vm: &Vm) -> Result<Vec<GuestClock>> {
    let why = |why| PublishError::NoClock { vm: vm.name.clone(), why };
    if vm.vcpus.is_empty() {
        return Err(why("its vCPU threads can't be distinguished by name"));
    }
    let clocks = vm.vcpus.iter().map(GuestClock::for_vcpu);
    clocks.collect::<Option<_>>().ok_or_else(|| why("KVM's debugfs has no TSC offset"))
}
