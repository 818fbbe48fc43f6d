//! A recording of one machine: formats, clock, names, streams.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use eventfmt::{Kallsyms, PrintkFormats};
use raw_bytes::Abi;
use sys::FileMap;
use tracedat::{ClockPieces, Cmdlines, Correction, TimeUnit, TraceDat};

use crate::stream::{Block, BlockReader, Stream};
use crate::{Damage, Ending, FormatTable};

static IDENTITY: Correction = Correction::identity();

/// What kind of input a recording was read from.
#[derive(Debug)]
pub enum Container {
    /// A trace.dat file.
    TraceDat(Box<TraceDat>),
    /// A folder with bare ring-buffer pages per CPU and an `events` folder.
    RawPages,
}

/// What is known of a recording besides its events.
#[derive(Debug, Default)]
pub struct RecordingInfo {
    /// Name of the clock the events are stamped with.
    pub clock: Option<String>,
    /// Names of the buffers; the top one is empty.
    pub buffers: Vec<String>,
    /// System, host name, release and machine.
    pub uname: Option<String>,
}

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
    /// One per buffer.
    pub(crate) corrections: Vec<Correction>,
    pub(crate) cmdlines: Cmdlines,
    /// Texts that are read when first asked for.
    pub(crate) kallsyms: OnceLock<Kallsyms>,
    pub(crate) kallsyms_text: Option<Vec<u8>>,
    pub(crate) printk: OnceLock<PrintkFormats>,
    pub(crate) printk_text: Option<Vec<u8>>,
    pub(crate) guest_kallsyms: Option<Kallsyms>,
    pub(crate) damage: Vec<Damage>,
    pub(crate) ending: Ending,
}

impl Recording {
    /// Where it was read from.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What kind of input it is.
    #[must_use]
    pub fn container(&self) -> &Container {
        &self.container
    }

    /// What is known of it besides its events.
    #[must_use]
    pub fn info(&self) -> &RecordingInfo {
        &self.info
    }

    /// Byte order and long size of the recorded kernel.
    #[must_use]
    pub fn abi(&self) -> Abi {
        self.abi
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

    /// Number of CPUs of the recorded machine; those with pages where the recording does not say.
    #[must_use]
    pub fn cpus(&self) -> u64 {
        let stated = match &self.container {
            Container::TraceDat(dat) => dat.metadata.cpu_count,
            Container::RawPages => None,
        };
        let with_pages = || self.streams.iter().map(Stream::cpu).collect::<BTreeSet<_>>().len();
        stated.map_or_else(|| with_pages() as u64, u64::from)
    }

    /// Turns the recorded stamps of a stream into times.
    #[must_use]
    pub fn correction(&self, stream: &Stream) -> &Correction {
        self.corrections.get(stream.buffer).unwrap_or(&IDENTITY)
    }

    /// The time of a stamp of its trace clock that is in none of its streams.
    #[must_use]
    pub fn time_ns(&self, trace: u64) -> u64 {
        self.corrections.first().unwrap_or(&IDENTITY).ns(trace, 0)
    }

    /// Brings its times to another machine's clock by what was worked out from events, in place of
    /// what the recording says of it.
    pub fn set_clock_pieces(&mut self, pieces: &ClockPieces) {
        for correction in &mut self.corrections {
            *correction = correction.by(pieces);
        }
    }

    /// Leaves its times on its own clock, whatever it says of another.
    pub fn set_own_clock(&mut self) {
        for correction in &mut self.corrections {
            *correction = correction.own();
        }
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
        self.corrections.iter().all(|one| one.unit() == TimeUnit::Nanoseconds)
    }

    /// Offset of its times to the clock of a peer, where the file has one and it is applied.
    #[must_use]
    pub fn peer(&self) -> Option<u64> {
        self.corrections.iter().find_map(Correction::peer)
    }

    /// Identity of the recording, by which its peers name it.
    #[must_use]
    pub fn trace_id(&self) -> Option<u64> {
        match &self.container {
            Container::TraceDat(dat) => dat.metadata.trace_id,
            Container::RawPages => None,
        }
    }

    /// What was missing or wrong outside the pages.
    #[must_use]
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    /// What its end says of events that are not in it.
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
        if thread == 0 { Some("<idle>") } else { self.cmdlines.name(thread) }
    }

    /// All threads whose names were recorded, and the idle thread.
    pub fn threads(&self) -> impl Iterator<Item = (u32, &str)> {
        let idle = self.comm(0).map(|comm| (0, comm));
        idle.into_iter().chain(self.cmdlines.iter().filter(|(thread, _)| *thread != 0))
    }

    /// Guest name and vCPU number of a host thread, where the recording names its guests.
    #[must_use]
    pub fn guest_of_thread(&self, thread: u32) -> Option<(&str, u32)> {
        let Container::TraceDat(dat) = &self.container else { return None };
        dat.metadata.guests.iter().find_map(|guest| {
            let vcpu = guest.vcpus.iter().find(|vcpu| vcpu.pid == thread && thread != 0)?;
            Some((guest.name.as_str(), vcpu.cpu))
        })
    }

    /// All threads of guests that the recording names, with their guests' names.
    pub fn guest_threads(&self) -> impl Iterator<Item = (u32, &str)> {
        let guests = match &self.container {
            Container::TraceDat(dat) => dat.metadata.guests.as_slice(),
            Container::RawPages => &[],
        };
        let named = guests.iter().filter(|guest| !guest.name.is_empty());
        named.flat_map(|guest| guest.vcpus.iter().map(|vcpu| (vcpu.pid, guest.name.as_str())))
    }

    /// Symbols of the recorded kernel; read on first use, which takes milliseconds.
    #[must_use]
    pub fn kallsyms(&self) -> &Kallsyms {
        self.kallsyms.get_or_init(|| {
            let text = self.text(&self.kallsyms_text, |dat| dat.kallsyms.as_ref());
            Kallsyms::parse(&text)
        })
    }

    /// Format strings of the recorded kernel's `trace_printk`; read on first use.
    #[must_use]
    pub fn printk(&self) -> &PrintkFormats {
        self.printk.get_or_init(|| {
            let text = self.text(&self.printk_text, |dat| dat.printk.as_ref());
            PrintkFormats::parse(&text)
        })
    }

    /// The guest function at an address of a guest, where the guest's symbols were given.
    #[must_use]
    pub fn guest_symbol(&self, address: u64) -> Option<String> {
        let symbol = self.guest_kallsyms.as_ref()?.lookup(address)?;
        Some(String::from_utf8_lossy(symbol.name).into_owned())
    }

    /// Names guest addresses by the symbols of `guest`, a recording made inside the guest.
    pub fn set_guest_symbols(&mut self, guest: &Self) {
        let text = guest.text(&guest.kallsyms_text, |dat| dat.kallsyms.as_ref());
        self.guest_kallsyms = Some(Kallsyms::parse(&text));
    }

    /// Reads a block of one of its streams.
    ///
    /// # Errors
    /// When the block does not decompress.
    pub fn block<'a>(
        &'a self,
        stream: &Stream,
        index: usize,
        reader: &'a mut BlockReader,
    ) -> Result<Block<'a>, Damage> {
        let missing = || Damage::on_cpu(stream.cpu, 0, "its file is gone".to_owned());
        let file = self.files.get(stream.file).ok_or_else(missing)?;
        reader.read(file, stream, index)
    }

    pub(crate) fn text(
        &self,
        own: &Option<Vec<u8>>,
        section: impl Fn(&TraceDat) -> Option<&tracedat::Section>,
    ) -> Vec<u8> {
        if let Some(own) = own {
            return own.clone();
        }
        let Container::TraceDat(dat) = &self.container else { return Vec::new() };
        let (Some(section), Some(file)) = (section(dat), self.files.first()) else {
            return Vec::new();
        };
        // A damaged symbol table names nothing; the events are still there.
        section.read(file).map(std::borrow::Cow::into_owned).unwrap_or_default()
    }
}
