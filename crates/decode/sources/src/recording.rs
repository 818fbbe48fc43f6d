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
    /// How its pages are compressed, in the words of its format; `None`: the format knows no compression.
    pub compression: Option<String>,
    /// The program that recorded it, and its version.
    pub recorder: Option<String>,
    /// Name of the clock the events are stamped with.
    pub clock: Option<String>,
    /// Its buffers: the top one, where there is one, then instances.
    pub buffers: Vec<BufferInfo>,
    /// System, host name, release and machine.
    pub uname: Option<String>,
    /// What times are rounded to, in nanoseconds, where that is more than the clock's own step.
    pub resolution_ns: Option<u64>,
    /// Number of CPUs of the recorded machine.
    pub cpu_count: Option<u32>,
    /// Identity of the recording, by which its peers name it.
    pub trace_id: Option<u64>,
    /// Guests that were recorded at the same time.
    pub guests: Vec<Guest>,
    /// How to bring times to the clocks of peers.
    pub time_shifts: Vec<TimeShift>,
    /// Numbers of options whose meaning is not known.
    pub unknown_options: Vec<u16>,
    /// What recorded the events.
    pub tracer: Tracer,
    /// What its reader has to know, and is no damage.
    pub notes: Vec<String>,
    /// Its file ends early.
    pub cut: Option<CutFile>,
    /// Samples that are no events, by what made them and the mode that the kernel says the CPU was in.
    pub samples: SampleCounts,
}

/// What records events, and drops them where its buffers are full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tracer {
    /// The kernel's own ring buffers, however they were read.
    #[default]
    Kernel,
    /// The kernel's perf.
    Perf,
    /// The kernel modules of LTTng.
    Lttng,
    /// LTTng in programs.
    LttngOfPrograms,
    /// A program that records what it does itself.
    Program,
}

impl Tracer {
    /// Whether it records what a kernel does.
    #[must_use]
    pub const fn is_of_kernel(self) -> bool {
        matches!(self, Self::Kernel | Self::Perf | Self::Lttng)
    }
}

/// Facts about a buffer besides its events.
#[derive(Clone, Debug, Default)]
pub struct BufferInfo {
    /// Its name; that of the top one is empty.
    pub name: String,
    /// Its clock, where that is not the recording's.
    pub clock: Option<String>,
    /// Size of its pages in bytes; `None`: its records were not read from pages.
    pub page_size: Option<u32>,
}

/// No kernel has more CPUs: a larger number is damage.
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
    /// Where it was read from.
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

    /// The same, where the recording says it: a text does not.
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

    /// Number of CPUs of the recorded machine, with and without events; where the recording does not say it,
    /// there are as many as the highest number of one with events shows.
    #[must_use]
    pub fn cpus(&self) -> u64 {
        let seen = self.streams.iter().map(|stream| u64::from(stream.cpu()) + 1);
        let seen = seen.filter(|&cpus| cpus <= MAX_CPUS).max();
        self.info.cpu_count.map_or(0, u64::from).max(seen.unwrap_or(0))
    }

    /// Name of the buffer that a stream is of; that of the top one is empty.
    #[must_use]
    pub fn buffer_name(&self, stream: &Stream) -> &str {
        self.info.buffers.get(stream.buffer).map_or("", |buffer| buffer.name.as_str())
    }

    /// Turns the recorded stamps of a stream into times.
    #[must_use]
    pub fn correction(&self, stream: &Stream) -> &Correction {
        self.clock.correction(stream.buffer)
    }

    /// The time of a stamp of its trace clock that is in none of its streams.
    #[must_use]
    pub fn time_ns(&self, trace: u64) -> u64 {
        self.time_of_cpu_ns(trace, 0)
    }

    /// The same of a CPU, which clocks of guests can differ by.
    #[must_use]
    pub fn time_of_cpu_ns(&self, trace: u64, cpu: u32) -> u64 {
        self.clock.correction(0).ns(trace, cpu)
    }

    /// Brings its times to another machine's clock by what was worked out from events, in place of
    /// what the recording says of it.
    pub fn set_clock_pieces(&mut self, pieces: &ClockPieces) {
        self.clock.set_pieces(pieces);
    }

    /// Leaves its times on its own clock, whatever it says of another.
    pub fn set_own_clock(&mut self) {
        self.clock.set_own();
    }

    /// Its clocks as they are now, for [`Recording::set_clock`].
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.clock.clone()
    }

    /// Sets clocks as [`Recording::clock`] gave them, of this recording.
    pub fn set_clock(&mut self, clock: Clock) {
        self.clock = clock;
    }

    /// Whether its trace clock is the processor's counter, which guests' clocks are made from.
    #[must_use]
    pub fn is_of_tsc(&self) -> bool {
        // The second has how to make nanoseconds of it in trace.dat.
        matches!(self.info().clock.as_deref(), Some("x86-tsc" | "tsc2nsec"))
    }

    /// Whether times are nanoseconds; else they are ticks of the recording's clock.
    #[must_use]
    pub fn is_nanoseconds(&self) -> bool {
        self.clock.is_nanoseconds()
    }

    /// Offset of its times to the clock of a peer, where the file has one and it is applied.
    #[must_use]
    pub fn peer(&self) -> Option<u64> {
        self.clock.peer()
    }

    /// Identity of the recording, by which its peers name it.
    #[must_use]
    pub fn trace_id(&self) -> Option<u64> {
        self.info.trace_id
    }

    /// What was missing or wrong outside the pages.
    #[must_use]
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    /// Facts from its end about events that it lacks.
    #[must_use]
    pub fn ending(&self) -> &Ending {
        &self.ending
    }

    /// Bytes of pages in all streams, as they lie in the file.
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

    /// Guest name and vCPU number of host threads, where the recording names its guests.
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

    /// Calls VMs by other names than it has for them.
    pub fn set_vm_names(&mut self, names: BTreeMap<String, String>) {
        self.names.vms = names;
    }

    /// What a VM is called that has this name by the recording.
    #[must_use]
    pub fn vm_name<'n>(&'n self, name: &'n str) -> &'n str {
        self.names.vms.get(name).map_or(name, String::as_str)
    }

    /// All threads of guests that the recording names, with their guests' names.
    pub fn guest_threads(&self) -> impl Iterator<Item = (u32, &str)> {
        let named = self.info.guests.iter().filter(|guest| !guest.name.is_empty());
        named.flat_map(|guest| guest.vcpus.iter().map(|vcpu| (vcpu.pid, guest.name.as_str())))
    }

    /// Symbols of the recorded kernel; read on first use, which takes milliseconds.
    #[must_use]
    pub fn kallsyms(&self) -> &Kallsyms {
        self.names.kallsyms(self.files.first())
    }

    /// Format strings of the recorded kernel's `trace_printk`; read on first use.
    #[must_use]
    pub fn printk(&self) -> &PrintkFormats {
        self.names.printk(self.files.first())
    }

    /// The guest function at an address of a guest, where the guest's symbols were given.
    #[must_use]
    pub fn guest_symbol(&self, address: u64) -> Option<String> {
        let symbol = self.names.guest_kallsyms.as_ref()?.lookup(address)?;
        Some(String::from_utf8_lossy(symbol.name).into_owned())
    }

    /// Names guest addresses by the symbols of `guest`, a recording made inside the guest.
    pub fn set_guest_symbols(&mut self, guest: &Self) {
        let text = guest.names.kallsyms_text.read(guest.files.first());
        self.names.guest_kallsyms = Some(Kallsyms::parse(&text));
    }

    /// Its options as a trace.dat has them, in order, and that file's head; `None`: it was not read from
    /// a trace.dat.
    #[must_use]
    pub fn trace_dat_head(&self) -> Option<(&Header, &[RawOption])> {
        self.container.trace_dat_head()
    }

    /// Bytes of its blocks, as they lie in the file, that were read since it was opened, so how often it was
    /// read. Looks at the first and last block of each stream for [`Self::first_and_last_ns`] do not count.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Relaxed)
    }

    /// Reads a block of one of its streams.
    ///
    /// # Errors
    /// When the block does not decompress.
    pub fn block<'a>(
        &'a self,
        stream: &'a Stream,
        index: usize,
        reader: &'a mut BlockReader,
    ) -> Result<Block<'a>, Damage> {
        self.bytes_read.fetch_add(stream.block_len(index), Relaxed);
        self.uncounted_block(stream, index, reader)
    }

    /// As [`Self::block`], for a look at few blocks that is no reading of the recording.
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

    /// Whether events may be missing: by what the recording says of itself, and by the pages that have been
    /// read since it was opened.
    #[must_use]
    pub fn may_lack_events(&self) -> bool {
        let is_counted =
            self.ending.counts.iter().any(|count| count.lost > 0 || count.events_kept.is_some());
        let is_doubted = self.ending.doubt.as_ref().is_some_and(|doubt| *doubt != Doubt::NoCounts);
        is_counted || is_doubted || !self.damage.is_empty() || self.lacks_events.load(Relaxed)
    }
}
