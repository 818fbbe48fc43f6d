//! The JSON document of recordings and their contents.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use analyses::contents::{Contents, CpuContents};
use raw_bytes::ByteOrder;
use schemars::JsonSchema;
use serde::Serialize;
use sources::{CpuMode, Guest, Recording};
use timeline::Vm;

use super::{Covered, FileInfo, InfoReport, unknown_because};
use crate::json::{VcpuThread, threads, times};
use crate::units::unit;

/// Output of `hyperscope info --format json`: properties and contents of recordings.
#[derive(Debug, JsonSchema, Serialize)]
pub(crate) struct Document<'r> {
    schema: &'static str,
    /// One per recording.
    files: Vec<File<'r>>,
}

/// A recording.
#[derive(Debug, JsonSchema, Serialize)]
struct File<'r> {
    /// As it was named.
    path: String,
    /// The kind of input.
    #[schemars(extend("enum" = ["trace.dat v6", "trace.dat v7", "CTF 1.8", "CTF 2", "ring-buffer pages", "text", "perf.data", "perf.data of a pipe"]))]
    format: &'r str,
    /// none, zlib or zstd; null for bare pages.
    compression: Option<&'r str>,
    /// Byte order of the recorded kernel. Null: unknown (a text).
    #[schemars(extend("enum" = ["little", "big", null]))]
    byte_order: Option<&'static str>,
    /// Size of the recorded kernel's long. Null: a program recorded, or unknown (a text).
    #[schemars(extend("enum" = [4, 8, null]))]
    long_bytes: Option<usize>,
    /// System, host name, release and machine. Null: not recorded.
    uname: Option<&'r str>,
    /// Name of the trace clock. Null: not recorded.
    clock: Option<&'r str>,
    /// Unit of its times after all corrections in the file; cycles: raw ticks that can't be turned into
    /// nanoseconds.
    #[schemars(extend("enum" = ["ns", "cycles"]))]
    clock_unit: &'static str,
    /// Rounding of times in a text; null: they are as exact as the clock.
    time_resolution_ns: Option<u64>,
    /// Id by which recordings of one run name each other, hexadecimal. Null: none.
    trace_id: Option<String>,
    /// Trace id of the recording whose clock its times were moved to. Null: its own clock.
    aligned_to: Option<String>,
    /// CPUs of the recorded machine; if the file does not say, CPUs with pages.
    cpus: u64,
    /// Events read.
    total_events: u64,
    /// Events read, by system:name; those without a format as unknown:ID.
    #[schemars(with = "BTreeMap<String, NonZeroU64>")]
    events: &'r BTreeMap<String, u64>,
    /// Samples of a perf.data that are not tracepoints, by event and by the CPU's mode according to the kernel.
    /// Empty for other recordings.
    samples: BTreeMap<&'r str, SampleModes>,
    #[serde(flatten)]
    times: FileTimes,
    /// Its losses.
    losses: FileLosses,
    /// Unreadable parts with their positions; at most 100 of those in pages.
    damage: Vec<String>,
    /// Names of the buffers; the top one is empty, the others are instances.
    buffers: Vec<&'r str>,
    /// One per CPU and buffer with pages.
    per_cpu: Vec<Cpu<'r>>,
    /// Faults that a session's recorder reported for this recording, such as pages that could not be written.
    /// Empty: none, or it belongs to no session.
    faults: &'r [String],
    /// How long guests were recorded while their host was: in a host's recording, the guests of its session; in a
    /// guest's, only that guest. Empty: unknown.
    // Older versions' documents lack it.
    #[schemars(skip_serializing_if = "Vec::is_empty")]
    covered: &'r [Covered],
    /// CPUs whose statistics, stored by the recorder, count more events than the file holds.
    claims_unmet: Vec<UnmetClaim>,
    /// Guests recorded together with this machine, according to the file.
    guests: Vec<RecordedGuest<'r>>,
    /// Notes that are not damage, such as a trace without ids of CPUs or threads.
    notes: &'r [String],
    /// Ids of unknown trace.dat options, which are skipped.
    unknown_options: &'r [u16],
    /// VMs, by their exits and entries.
    vms: Vec<SeenVm<'r>>,
}

/// Samples of one event.
#[derive(Debug, JsonSchema, Serialize)]
struct SampleModes {
    /// In the host's kernel.
    host_kernel: u64,
    /// In the host's user space.
    host_user: u64,
    /// In a guest's kernel.
    guest_kernel: u64,
    /// In a guest's user space.
    guest_user: u64,
    /// In a hypervisor below the host.
    hypervisor: u64,
    /// The kernel doesn't report the mode.
    unknown: u64,
}

/// Losses.
#[derive(Debug, JsonSchema, Serialize)]
struct FileLosses {
    /// Events the kernel dropped: by its counts of whole CPUs where the recording has them, otherwise by those in
    /// pages.
    events_lost: u64,
    /// Places where pages say that events were dropped without a count. Counts of whole CPUs have them, too.
    uncounted_losses: u64,
    /// Parts of the container, pages, records and compressed chunks that could not be read.
    pages_damaged: u64,
    /// Events that the kernel kept, by its counts, but that are not in the file: the sum over `claims_unmet`.
    events_missing: u64,
    /// Whether nothing else than events_lost and events_missing was lost, with certainty.
    known: bool,
    /// Why that is uncertain. Null: it is certain.
    unknown_because: Option<String>,
}

/// A CPU in a buffer.
#[derive(Debug, JsonSchema, Serialize)]
struct Cpu<'r> {
    /// Number of the CPU.
    cpu: u32,
    /// Name of the buffer.
    buffer: &'r str,
    /// Events read.
    events: u64,
    /// Pages read.
    pages: u64,
    #[serde(flatten)]
    times: CpuTimes,
    /// Events the kernel dropped: by its count for the CPU where the recording has it, otherwise by those in pages.
    events_lost: u64,
    /// Places where it dropped events without a count.
    uncounted_losses: u64,
}

/// A CPU.
#[derive(Debug, JsonSchema, Serialize)]
struct UnmetClaim {
    /// Number of the CPU.
    cpu: u32,
    /// Events in its statistics.
    claimed: u64,
    /// Events in the file.
    found: u64,
}

/// A guest.
#[derive(Debug, JsonSchema, Serialize)]
struct RecordedGuest<'r> {
    /// Its name; may be empty.
    name: &'r str,
    /// Trace id of its own recording, hexadecimal.
    trace_id: String,
    /// Its CPUs and the threads that run them; may be empty.
    vcpus: Vec<RecordedVcpu>,
}

/// A vCPU.
#[derive(Debug, JsonSchema, Serialize)]
struct RecordedVcpu {
    /// Number of the CPU in the guest.
    vcpu: u32,
    /// Thread on this machine; 0: not found by the recorder.
    tid: u32,
}

/// A VM.
#[derive(Debug, JsonSchema, Serialize)]
struct SeenVm<'r> {
    /// The guest's name if the recording has it, otherwise vm- and the thread id of its first vCPU.
    vm: &'r str,
    /// The VMM's comm. Null: not recorded.
    comm: Option<&'r str>,
    /// Number of vCPUs seen.
    vcpus: usize,
    /// Its vCPUs.
    threads: Vec<VcpuThread>,
}

times! {
    /// The time of the first event and of the last.
    struct FileTimes {
        /// Time of the first event; null without events.
        first = "first",
        /// Time of the last event; null without events.
        last = "last",
    }
}

times! {
    /// The time of a CPU's first event and of its last.
    struct CpuTimes {
        /// Time of its first event; null without events.
        first = "first",
        /// Time of its last event; null without events.
        last = "last",
    }
}

/// Byte order of the recorded kernel; `None`: unknown.
pub(super) fn byte_order(recording: &Recording) -> Option<&'static str> {
    recording.recorded_abi().map(|abi| match abi.order {
        ByteOrder::Little => "little",
        ByteOrder::Big => "big",
    })
}

/// Size of the recorded kernel's long; `None`: a program recorded.
pub(super) fn long_bytes(recording: &Recording) -> Option<usize> {
    let abi = recording.recorded_abi().filter(|_| recording.info().tracer.is_of_kernel())?;
    Some(abi.long.bytes())
}

impl<'r> Document<'r> {
    pub(super) fn new(report: &'r InfoReport) -> Self {
        Self { schema: "hyperscope.info/1", files: report.files.iter().map(File::new).collect() }
    }
}

impl<'r> File<'r> {
    fn new(file: &'r FileInfo) -> Self {
        let (recording, contents) = (&file.recording, &file.contents);
        let (info, in_ns) = (recording.info(), recording.is_nanoseconds());
        let damage = recording.damage().iter().chain(contents.damage.as_slice());
        Self {
            path: recording.path().display().to_string(),
            format: &info.format,
            compression: info.compression.as_deref(),
            byte_order: byte_order(recording),
            long_bytes: long_bytes(recording),
            uname: info.uname.as_deref(),
            clock: info.clock.as_deref(),
            clock_unit: unit(in_ns),
            time_resolution_ns: info.resolution_ns,
            trace_id: recording.trace_id().map(hex),
            aligned_to: recording.peer().map(hex),
            cpus: recording.cpus(),
            total_events: contents.total(),
            events: &contents.events,
            samples: samples(recording),
            times: FileTimes { in_ns, first: contents.first_ns(), last: contents.last_ns() },
            losses: FileLosses::new(file),
            damage: damage.map(ToString::to_string).collect(),
            buffers: info.buffers.iter().map(|buffer| buffer.name.as_str()).collect(),
            per_cpu: contents.cpus.iter().map(|cpu| Cpu::new(cpu, in_ns)).collect(),
            faults: &file.faults,
            covered: &file.covered,
            claims_unmet: claims_unmet(contents),
            guests: info.guests.iter().map(RecordedGuest::new).collect(),
            notes: &info.notes,
            unknown_options: &info.unknown_options,
            vms: file.vms.iter().map(SeenVm::new).collect(),
        }
    }
}

fn hex(id: u64) -> String {
    format!("{id:#x}")
}

/// Samples by event and mode.
fn samples(recording: &Recording) -> BTreeMap<&str, SampleModes> {
    let samples = recording.info().samples.iter();
    samples.map(|(name, counts)| (name.as_str(), SampleModes::new(counts))).collect()
}

impl SampleModes {
    fn new(counts: &[u64; CpuMode::ALL.len()]) -> Self {
        let count = |wanted: CpuMode| {
            let mut modes = CpuMode::ALL.iter().zip(counts);
            modes.find(|(mode, _)| **mode == wanted).map_or(0, |(_, count)| *count)
        };
        Self {
            host_kernel: count(CpuMode::HostKernel),
            host_user: count(CpuMode::HostUser),
            guest_kernel: count(CpuMode::GuestKernel),
            guest_user: count(CpuMode::GuestUser),
            hypervisor: count(CpuMode::Hypervisor),
            unknown: count(CpuMode::Unknown),
        }
    }
}

impl FileLosses {
    fn new(file: &FileInfo) -> Self {
        let (recording, contents) = (&file.recording, &file.contents);
        Self {
            events_lost: contents.events_lost(),
            uncounted_losses: contents.uncounted_losses(),
            pages_damaged: contents.pages_damaged() + recording.damage().len() as u64,
            events_missing: contents.events_missing(),
            known: contents.losses_known,
            unknown_because: unknown_because(file),
        }
    }
}

impl<'r> Cpu<'r> {
    fn new(cpu: &'r CpuContents, in_ns: bool) -> Self {
        Self {
            cpu: cpu.cpu,
            buffer: &cpu.buffer,
            events: cpu.events,
            pages: cpu.pages,
            times: CpuTimes { in_ns, first: cpu.first_ns, last: cpu.last_ns },
            events_lost: cpu.events_lost,
            uncounted_losses: cpu.uncounted_losses,
        }
    }
}

fn claims_unmet(contents: &Contents) -> Vec<UnmetClaim> {
    let claims = contents.unmet.iter();
    claims.map(|&(cpu, claimed, found)| UnmetClaim { cpu, claimed, found }).collect()
}

impl<'r> RecordedGuest<'r> {
    fn new(guest: &'r Guest) -> Self {
        let vcpus = guest.vcpus.iter();
        Self {
            name: &guest.name,
            trace_id: hex(guest.trace_id),
            vcpus: vcpus.map(|vcpu| RecordedVcpu { vcpu: vcpu.cpu, tid: vcpu.pid }).collect(),
        }
    }
}

impl<'r> SeenVm<'r> {
    fn new(vm: &'r Vm) -> Self {
        Self { vm: &vm.name, comm: vm.comm.as_deref(), vcpus: vm.vcpus.len(), threads: threads(vm) }
    }
}
