//! A recording of one machine: formats, clock, names, streams.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};

use ftrace::eventfmt::{Kallsyms, PrintkFormats};
use raw_bytes::Abi;
use sys::FileMap;
use tracedat::{ClockPieces, Correction, Guest, Header, RawOption, TimeShift};

use crate::clock::Clock;
use crate::container::Container;
use crate::names::Names;
use crate::part::RecordingPart;
use crate::perf_data::SampleCounts;
use crate::stream::{Block, BlockReader, Stream};
use crate::{CutFile, Damage, Doubt, Ending, FormatTable};

/// Facts about a recording besides its events.
#[derive(Clone, Debug, Default)]
pub struct RecordingInfo {
    /// The format of the input, such as `trace.dat v7`.
    pub format: String,
    /// Compression of its pages, named as in its format; `None` if the format has no compression.
    pub compression: Option<String>,
    /// The program that recorded it, with its version.
    pub recorder: Option<String>,
    /// Name of the trace clock.
    pub clock: Option<String>,
    /// Its buffers: the top-level buffer, if it exists, then instances.
    pub buffers: Vec<BufferInfo>,
    /// System, host name, release and machine.
    pub uname: Option<String>,
    /// Resolution of times in nanoseconds, if it is coarser than the clock's.
    pub resolution_ns: Option<u64>,
    /// Number of CPUs of the recorded machine.
    pub cpu_count: Option<u32>,
    /// The trace id, by which peers refer to the recording.
    pub trace_id: Option<u64>,
    /// Guests that were recorded at the same time.
    pub guests: Vec<Guest>,
    /// Conversions of times to the clocks of peers.
    pub time_shifts: Vec<TimeShift>,
    /// Numbers of unknown options.
    pub unknown_options: Vec<u16>,
    /// The tracer of the events.
    pub tracer: Tracer,
    /// Facts that a reader of reports needs, and that are not damage.
    pub notes: Vec<String>,
    /// Set if the file is truncated.
    pub cut: Option<CutFile>,
    /// Samples that are not tracepoints, by event and by the CPU mode that the kernel reports.
    pub samples: SampleCounts,
}

/// The tracer, which records events and drops them if its buffers are full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tracer {
    /// The kernel's ftrace ring buffers, independent of how they were read.
    #[default]
    Kernel,
    /// The kernel's perf.
    Perf,
    /// The kernel modules of LTTng.
    Lttng,
    /// LTTng in user space.
    LttngOfPrograms,
    /// A program that records its own activity.
    Program,
}

impl Tracer {
    /// Whether it records a kernel.
    #[must_use]
    pub const fn is_of_kernel(self) -> bool {
        matches!(self, Self::Kernel | Self::Perf | Self::Lttng)
    }
}

/// Facts about a buffer besides its events.
#[derive(Clone, Debug, Default)]
pub struct BufferInfo {
    /// Its name; empty for the top-level buffer.
    pub name: String,
    /// Its clock, if it differs from the recording's.
    pub clock: Option<String>,
    /// Size of its pages in bytes; `None` if its records are not on pages.
    pub page_size: Option<u32>,
}

/// Upper bound of CPU numbers: a larger number is damage.
pub(crate) const MAX_CPUS: u64 = 1 << 16;

/// A recording of one machine.
#[derive(Debug)]
pub struct Recording {
    pub(crate) path: PathBuf,
    pub(crate) files: Vec<FileMap>,
    pub(crate) container: Container,
    pub(crate) info: RecordingInfo,
    pub(crate) abi: Abi,
    pub(crate) formats: FormatTable,
    pub(crate) streams: Vec<Stream>,
    pub(crate) clock: Clock,
    pub(crate) names: Names,
    pub(crate) damage: Vec<Damage>,
    pub(crate) ending: Ending,
    pub(crate) part: Option<RecordingPart>,
    pub(crate) bytes_read: AtomicU64,
    pub(crate) lacks_events: AtomicBool,
}

impl Recording {
    /// The path that it was read from.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its name in a file with several recordings.
    pub(crate) fn name_in(&self, file: &Path) -> String {
        let (path, file) = (self.path.to_string_lossy(), file.to_string_lossy());
        let name = path.strip_prefix(&*file).and_then(|rest| rest.strip_prefix(':'));
        name.map_or_else(|| path.to_string(), str::to_owned)
    }

    /// Facts about it besides its events.
    #[must_use]
    pub fn info(&self) -> &RecordingInfo {
        &self.info
    }

    /// Byte order and long size of the recorded kernel.
    #[must_use]
    pub fn abi(&self) -> Abi {
        self.abi
    }

    /// The same, if the recording states it: a text does not.
    #[must_use]
    pub fn recorded_abi(&self) -> Option<Abi> {
        (!matches!(self.container, Container::Text(_))).then_some(self.abi)
    }

    /// Its event formats.
    #[must_use]
    pub fn formats(&self) -> &FormatTable {
        &self.formats
    }

    /// Its streams: one per CPU and buffer that has pages.
    #[must_use]
    pub fn streams(&self) -> &[Stream] {
        &self.streams
    }

    /// Number of CPUs of the recorded machine, including CPUs without events; if the recording does
    /// not state it, one more than the highest CPU number with events.
    #[must_use]
    pub fn cpus(&self) -> u64 {
        let seen = self.streams.iter().map(|stream| u64::from(stream.cpu()) + 1);
        let seen = seen.filter(|&cpus| cpus <= MAX_CPUS).max();
        self.info.cpu_count.map_or(0, u64::from).max(seen.unwrap_or(0))
    }

    /// Name of a stream's buffer; empty for the top-level buffer.
    #[must_use]
    pub fn buffer_name(&self, stream: &Stream) -> &str {
        self.info.buffers.get(stream.buffer).map_or("", |buffer| buffer.name.as_str())
    }

    /// Converts the time stamps of a stream to times.
    #[must_use]
    pub fn correction(&self, stream: &Stream) -> &Correction {
        self.clock.correction(stream.buffer)
    }

    /// The time of a stamp of its trace clock from outside its streams.
    #[must_use]
    pub fn time_ns(&self, trace: u64) -> u64 {
        self.time_of_cpu_ns(trace, 0)
    }

    /// The same for a CPU: guest clocks can differ between CPUs.
    #[must_use]
    pub fn time_of_cpu_ns(&self, trace: u64, cpu: u32) -> u64 {
        self.clock.correction(0).ns(trace, cpu)
    }

    /// Converts its times to another machine's clock with a relation derived from events, which
    /// replaces the one in the recording.
    pub fn set_clock_pieces(&mut self, pieces: &ClockPieces) {
        self.clock.set_pieces(pieces);
    }

    /// Uses its own clock for its times, and ignores relations to other clocks in the recording.
    pub fn set_own_clock(&mut self) {
        self.clock.set_own();
    }

    /// Its current clocks, for [`Recording::set_clock`].
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.clock.clone()
    }

    /// Restores clocks from [`Recording::clock`] of this recording.
    pub fn set_clock(&mut self, clock: Clock) {
        self.clock = clock;
    }

    /// Whether its trace clock is the TSC, from which guests' clocks are derived.
    #[must_use]
    pub fn is_of_tsc(&self) -> bool {
        // In a trace.dat, `tsc2nsec` has the conversion to nanoseconds.
        matches!(self.info().clock.as_deref(), Some("x86-tsc" | "tsc2nsec"))
    }

    /// Whether times are nanoseconds; otherwise they are ticks of the recording's clock.
    #[must_use]
    pub fn is_nanoseconds(&self) -> bool {
        self.clock.is_nanoseconds()
    }

    /// Trace id of the peer to whose clock its times are converted, if any.
    #[must_use]
    pub fn peer(&self) -> Option<u64> {
        self.clock.peer()
    }

    /// The trace id, by which peers refer to the recording.
    #[must_use]
    pub fn trace_id(&self) -> Option<u64> {
        self.info.trace_id
    }

    /// Missing or damaged data outside the pages.
    #[must_use]
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    /// Facts from its end about missing events.
    #[must_use]
    pub fn ending(&self) -> &Ending {
        &self.ending
    }

    /// Total size of pages in the file, in bytes.
    #[must_use]
    pub fn stored_len(&self) -> u64 {
        self.streams.iter().map(Stream::stored_len).sum()
    }

    /// The recorded name of a thread.
    #[must_use]
    pub fn comm(&self, thread: u32) -> Option<&str> {
        if thread == 0 { Some("<idle>") } else { self.names.cmdlines().name(thread) }
    }

    /// All threads whose names were recorded, and the idle thread.
    pub fn threads(&self) -> impl Iterator<Item = (u32, &str)> {
        let idle = self.comm(0).map(|comm| (0, comm));
        idle.into_iter().chain(self.names.cmdlines().iter().filter(|(thread, _)| *thread != 0))
    }

    /// Guest name and vCPU number by host thread, if the recording names its guests.
    #[must_use]
    pub fn guests_by_thread(&self) -> HashMap<u32, (&str, u32)> {
        let mut by_thread: HashMap<u32, (&str, u32)> = self.kept_vcpus().collect();
        for guest in &self.info.guests {
            for vcpu in guest.vcpus.iter().filter(|vcpu| vcpu.pid != 0) {
                by_thread.entry(vcpu.pid).or_insert((guest.name.as_str(), vcpu.cpu));
            }
        }
        by_thread
    }

    /// Sets other names for VMs.
    pub fn set_vm_names(&mut self, names: BTreeMap<String, String>) {
        self.names.vms = names;
    }

    /// The user's name for a VM with this name in the recording.
    #[must_use]
    pub fn vm_name<'n>(&'n self, name: &'n str) -> &'n str {
        self.names.vms.get(name).map_or(name, String::as_str)
    }

    /// All guest threads that the recording names, with their guests' names.
    pub fn guest_threads(&self) -> impl Iterator<Item = (u32, &str)> {
        let named = self.info.guests.iter().filter(|guest| !guest.name.is_empty());
        named.flat_map(|guest| guest.vcpus.iter().map(|vcpu| (vcpu.pid, guest.name.as_str())))
    }

    /// Symbols of the recorded kernel; reading them on first use takes milliseconds.
    #[must_use]
    pub fn kallsyms(&self) -> &Kallsyms {
        self.names.kallsyms(self.files.first())
    }

    /// Format strings of the recorded kernel's `trace_printk`; read on first use.
    #[must_use]
    pub fn printk(&self) -> &PrintkFormats {
        self.names.printk(self.files.first())
    }

    /// The guest function at a guest address, if the guest's symbols are known.
    #[must_use]
    pub fn guest_symbol(&self, address: u64) -> Option<String> {
        let symbol = self.names.guest_kallsyms.as_ref()?.lookup(address)?;
        Some(String::from_utf8_lossy(symbol.name).into_owned())
    }

    /// Resolves guest addresses with the symbols of `guest`, a recording made inside the guest.
    pub fn set_guest_symbols(&mut self, guest: &Self) {
        let text = guest.names.kallsyms_text.read(guest.files.first());
        self.names.guest_kallsyms = Some(Kallsyms::parse(&text));
    }

    /// Its options as in a trace.dat, in order, and the file's header; `None` if it does not come
    /// from a trace.dat.
    #[must_use]
    pub fn trace_dat_head(&self) -> Option<(&Header, &[RawOption])> {
        self.container.trace_dat_head()
    }

    /// Bytes of blocks in the file that were read since it was opened, which shows how often it was
    /// read. Reads of the first and last blocks for [`Self::first_and_last_ns`] do not count.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Relaxed)
    }

    /// Reads a block of a stream.
    ///
    /// # Errors
    /// If the block cannot be decompressed.
    pub fn block<'a>(
        &'a self,
        stream: &'a Stream,
        index: usize,
        reader: &'a mut BlockReader,
    ) -> Result<Block<'a>, Damage> {
        self.bytes_read.fetch_add(stream.block_len(index), Relaxed);
        self.uncounted_block(stream, index, reader)
    }

    /// As [`Self::block`], for access to few blocks that does not count as a reading of the
    /// recording.
    pub(crate) fn uncounted_block<'a>(
        &'a self,
        stream: &'a Stream,
        index: usize,
        reader: &'a mut BlockReader,
    ) -> Result<Block<'a>, Damage> {
        let part = self.part.as_ref().map(|part| part.of_stream(stream));
        match reader.read(&self.files, stream, index) {
            Ok(block) => Ok(block.within(part).noting_gaps(&self.lacks_events)),
            Err(damage) => {
                self.lacks_events.store(true, Relaxed);
                Err(damage)
            }
        }
    }

    /// Whether events may be missing, according to the recording's metadata and the pages read
    /// since it was opened.
    #[must_use]
    pub fn may_lack_events(&self) -> bool {
        let is_counted =
            self.ending.counts.iter().any(|count| count.lost > 0 || count.events_kept.is_some());
        let is_doubted = self.ending.doubt.as_ref().is_some_and(|doubt| *doubt != Doubt::NoCounts);
        is_counted || is_doubted || !self.damage.is_empty() || self.lacks_events.load(Relaxed)
    }
}
