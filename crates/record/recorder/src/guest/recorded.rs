//! Result of a guest's recording: its file, its losses, and its cost.

use std::collections::HashMap;
use std::mem;

use channel::wire::{CpuEnd, DeviceRange, EventCost, GuestHello, NamedDevice, Started};
use os::folder::Folder;
use raw_bytes::{ByteOrder, LongSize};
use session_json::{DeviceRanges, EventCostSummary, GuestCpu, GuestDevice, GuestSummary};
use tracedat::{Compression, Header, TimeShift, Version};
use tracefs::{Clock, CpuStats, FunctionTracer, TscConversion};
use vms::Vm;

use crate::assemble::{self, About, Tick};
use crate::error::Result;
use crate::guest::files::CpuReceived;
use crate::guest::recording::{AgentReport, GuestIdentity};
use crate::nanoseconds::nanoseconds;
use crate::relation::to_host;
use crate::tracer;

/// The clock that relates an x86 host and its guests.
pub(crate) const TSC: &str = "x86-tsc";

/// All data of a guest after its recording has ended.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) identity: GuestIdentity,
    /// The folder of its pages.
    pub(crate) folder: Folder,
    /// Counts of each CPU.
    pub(crate) received: Vec<CpuReceived>,
    /// Bytes that belonged to no page of this guest.
    pub(crate) malformed: u64,
    pub(crate) report: AgentReport,
    /// The requested function tracer.
    pub(crate) tracer: Option<FunctionTracer>,
}

/// A guest whose recording has ended.
#[derive(Debug)]
pub(crate) struct GuestRecorded {
    parts: Parts,
    summary: GuestSummary,
}

fn event_cost(cost: &EventCost) -> EventCostSummary {
    EventCostSummary {
        event: cost.event.clone(),
        repeats: cost.repeats,
        off_ns: cost.rounds.iter().map(|round| round.off_ns).collect(),
        on_ns: cost.rounds.iter().map(|round| round.on_ns).collect(),
    }
}

fn ranges(ranges: &[DeviceRange]) -> DeviceRanges {
    let chosen = |ports| {
        let chosen = ranges.iter().filter(move |range| range.ports == ports);
        chosen.map(|range| (range.first, range.last)).collect()
    };
    DeviceRanges { memory: chosen(false), ports: chosen(true) }
}

/// A device, with names that the guest chose.
fn device(device: &NamedDevice) -> GuestDevice {
    GuestDevice {
        name: printable::label(&device.name),
        called: device.called.as_deref().map(printable::label),
        ranges: ranges(&device.ranges),
    }
}

impl GuestRecorded {
    pub(crate) fn new(parts: Parts) -> Self {
        let summary = summary(&parts);
        Self { parts, summary }
    }

    pub(crate) fn summary(&self) -> &GuestSummary {
        &self.summary
    }

    /// The guest's VM, if known.
    pub(crate) fn vm(&self) -> Option<&Vm> {
        self.parts.identity.vm.as_ref()
    }

    /// Trace id of its recording, for the host's file.
    pub(crate) fn trace_id(&self) -> u64 {
        self.parts.identity.trace_id
    }

    /// Whether its pages can be decoded: it has sent the texts.
    pub(crate) fn is_readable(&self) -> bool {
        let report = &self.parts.report;
        !report.texts.texts.header_page.is_empty() && report.started.is_some()
    }

    /// Writes its file into the session, and frees its texts, which may be large. Times are shifted to the host's clock
    /// if the relation is known.
    ///
    /// # Errors
    /// When the file can't be written.
    pub(crate) fn write(
        &mut self,
        host: &HostClock,
        to: &Folder,
        progress: Tick<'_>,
    ) -> Result<()> {
        let texts = mem::take(&mut self.parts.report.texts);
        let Parts { identity: GuestIdentity { hello, trace_id, .. }, folder, report, .. } =
            &self.parts;
        let Some(started) = &report.started else { return Ok(()) };
        let guest_conversion =
            started.conversion.map(|(mult, shift, zero_ns)| TscConversion { mult, shift, zero_ns });
        let time_shift = self.time_shift(host, started);
        let is_related = time_shift.is_some();
        // trace-cmd's agent sends no counts.
        let with_stats = report.cpus.iter().filter(|end| !end.stats.is_empty());
        let stats: Vec<(u32, String)> =
            with_stats.map(|end| (end.cpu, end.stats.clone())).collect();
        let about = About {
            header: header(hello),
            clock: &started.clock,
            clock_line: &started.clock_line,
            // The shift precedes the conversion: shifted ticks are the host's.
            tsc_conversion: if is_related { host.tsc_conversion } else { guest_conversion },
            trace_id: *trace_id,
            uname: hello.uname.clone(),
            guests: Vec::new(),
            time_shift,
            cpus: self.present(),
            stats: &stats,
            cmdlines: texts.cmdlines,
        };
        let held = assemble::write(texts.texts, about, folder, (to, &self.summary.file), progress)?;
        let held: HashMap<u32, u64> = held.into_iter().collect();
        for cpu in &mut self.summary.cpus {
            let held = held.get(&cpu.cpu).copied().unwrap_or(0);
            cpu.missing = cpu.kept.map(|kept_events| kept_events.saturating_sub(held));
        }
        Ok(())
    }

    /// CPUs that sent pages.
    fn present(&self) -> Vec<u32> {
        let received = (0..).zip(&self.parts.received);
        received.filter(|(_, counts)| counts.written > 0).map(|(cpu, _)| cpu).collect()
    }

    /// The shift from the guest's clock to the host's: measured, or, for a TSC, KVM's offset of each vCPU.
    fn time_shift(&self, host: &HostClock, started: &Started) -> Option<TimeShift> {
        if host.name != started.clock {
            return None;
        }
        let measured = self.parts.report.clock_samples.as_ref();
        if let Some(shift) = measured.and_then(|samples| samples.time_shift(host.trace_id)) {
            return Some(shift);
        }
        let vm = self.parts.identity.vm.as_ref()?;
        if host.name != TSC || started.clock != TSC {
            return None;
        }
        let cpus = (0..self.parts.identity.hello.cpus).map(|cpu| {
            let vcpu = vm.vcpus.iter().find(|vcpu| vcpu.vcpu == cpu);
            let sample = vcpu.and_then(|vcpu| to_host(vcpu, 0));
            sample.into_iter().collect::<Vec<_>>()
        });
        let cpus: Vec<_> = cpus.collect();
        let any = cpus.iter().any(|samples| !samples.is_empty());
        any.then_some(TimeShift { peer: host.trace_id, flags: 0, cpus })
    }
}

/// The host's clock, the target of guests' times.
#[derive(Clone, Debug)]
pub(crate) struct HostClock {
    pub(crate) name: String,
    pub(crate) tsc_conversion: Option<TscConversion>,
    pub(crate) trace_id: u64,
}

impl HostClock {
    /// The clock of a recording.
    pub(crate) fn new(clock: &Clock, trace_id: u64) -> Self {
        let tsc_conversion = clock.tsc_conversion;
        Self { name: clock.name.clone(), tsc_conversion, trace_id }
    }
}

fn header(hello: &GuestHello) -> Header {
    Header {
        version: Version::V7,
        order: if hello.big_endian { ByteOrder::Big } else { ByteOrder::Little },
        user_long: if hello.long_bytes == 4 { LongSize::Four } else { LongSize::Eight },
        page_size: hello.page_bytes,
        compression: Compression::None,
        compression_version: String::new(),
    }
}

fn summary(parts: &Parts) -> GuestSummary {
    let Parts { identity, report, .. } = parts;
    let started = report.started.clone().unwrap_or_default();
    let has_stats = |cpu: u32, end: &CpuEnd| end.cpu == cpu && !end.stats.is_empty();
    let end_of = |cpu: u32| report.cpus.iter().find(|end| has_stats(cpu, end));
    let counts = |cpu: u32| end_of(cpu).map(|end| CpuStats::parse(cpu, &end.stats));
    let cpus = (0..).zip(&parts.received).map(|(cpu, received)| GuestCpu {
        cpu,
        events_lost: counts(cpu).map(|counts| counts.events()),
        kept: counts(cpu).map(|counts| counts.kept_events()),
        missing: None,
        bytes: received.written,
        lost_bytes: received.lost,
        over_quota_bytes: received.over_quota,
        gaps: received.gaps,
    });
    let is_of_use = |cpu: &GuestCpu| *cpu != GuestCpu { cpu: cpu.cpu, ..GuestCpu::default() };
    let traced = started.traced.and_then(|many| usize::try_from(many).ok());
    GuestSummary {
        name: identity.name.clone(),
        file: format!("guest-{}.dat", identity.name),
        label: Some(printable::label(&identity.hello.host_name)).filter(|label| !label.is_empty()),
        identity: None,
        channel: identity.channel.clone(),
        pid: identity.vm.as_ref().map(|vm| vm.pid),
        tracer: parts.tracer.as_ref().map(|tracer| tracer::summary(tracer, traced)),
        sampler: report.sampled.clone(),
        clock: report.started.as_ref().map(|_| started.clock),
        recorded_ns: report.recorded.map(nanoseconds),
        events: started.events,
        buffer_kib: started.buffer_kib,
        cpus: cpus.filter(is_of_use).collect(),
        senseless_bytes: parts.malformed,
        agent_cpu_ns: report.status.as_ref().map(|status| status.agent_cpu_ns),
        agent_wakeups: report.status.as_ref().map(|status| status.wakeups),
        channel_exits: None,
        channel_device: ranges(&report.device),
        devices: report.devices.iter().map(device).collect(),
        event_cost: report.event_cost.as_ref().map(event_cost),
        faults: report.faults.clone(),
    }
}
