//! Makes one trace.dat of the pages of all CPUs.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::mem;

use folder::Folder;
use tracedat::{
    BufferSpec, Contents, Guest, Header, TimeShift, TraceDatWriter, Tsc2Nsec, id, option,
};
use tracefs::{Texts, TscConversion};

use crate::error::{RecordError, Result};
use crate::pages_folder::{formats, pages};

/// What belongs to a recording in addition to pages and texts.
#[derive(Debug)]
pub(crate) struct About<'a> {
    /// The head of the file: versions, sizes, byte order.
    pub(crate) header: Header,
    /// The selected clock, as the kernel names it.
    pub(crate) clock: &'a str,
    /// The line of all clocks, the selected one in brackets.
    pub(crate) clock_line: &'a str,
    pub(crate) tsc_conversion: Option<TscConversion>,
    pub(crate) trace_id: u64,
    /// The machine's kernel.
    pub(crate) uname: String,
    /// Guests of this machine.
    pub(crate) guests: Vec<Guest>,
    /// How its times are brought to its host's clock.
    pub(crate) time_shift: Option<TimeShift>,
    /// CPUs that there are pages of.
    pub(crate) cpus: Vec<u32>,
    /// CPUs, with what the kernel counted for each.
    pub(crate) stats: &'a [(u32, String)],
    pub(crate) cmdlines: Vec<u8>,
}

/// Called with the number of bytes written; an error ends the writing and leaves the file.
pub(crate) type Tick<'a> = &'a dyn Fn(u64) -> io::Result<()>;

/// Writes a trace.dat of this name into a folder, from the pages in another. It is on the disk when
/// this returns: pages can be removed then.
pub(crate) fn write(
    texts: Texts,
    about: About<'_>,
    from: &Folder,
    (to, name): (&Folder, &str),
    tick: Tick<'_>,
) -> Result<()> {
    let unfinished = format!("{name}.new");
    let written = write_new(texts, about, from, (to, &unfinished), tick).and_then(|()| {
        to.rename(&unfinished, name).map_err(RecordError::io("write", &to.path().join(name)))
    });
    if written.is_err() {
        // A full disk has better use for the room; the pages are where they were.
        let _ = to.remove(&unfinished);
    }
    written
}

fn write_new(
    texts: Texts,
    mut about: About<'_>,
    from: &Folder,
    (to, unfinished): (&Folder, &str),
    tick: Tick<'_>,
) -> Result<()> {
    let path = to.path().join(unfinished);
    let file = to.create_new(unfinished).map_err(RecordError::io("make", &path))?;
    let out = BufWriter::with_capacity(1 << 20, file);
    let failed = || RecordError::io("write", &path);
    // Texts go to the file and are freed before pages are copied: a guest's have tens of megabytes.
    let mut writer = TraceDatWriter::new(out, &contents(texts, &mut about)).map_err(failed())?;
    for cpu in &about.cpus {
        let name = pages(*cpu);
        let file = from.read(&name).map_err(RecordError::io("read", &from.path().join(name)))?;
        writer.write_cpu("", *cpu, Ticking { file, tick }).map_err(failed())?;
    }
    let mut out = writer.finish().map_err(failed())?;
    out.flush().and_then(|()| out.get_ref().sync()).map_err(failed())
}

/// Reports bytes read.
struct Ticking<'a> {
    file: File,
    tick: Tick<'a>,
}

impl Read for Ticking<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        (self.tick)(read as u64)?;
        Ok(read)
    }
}

/// What the file holds before its pages; texts are moved there, not copied.
fn contents(mut texts: Texts, about: &mut About<'_>) -> Contents {
    // trace-cmd's name for a TSC with its conversion to nanoseconds.
    let clock = if about.tsc_conversion.is_some() { "tsc2nsec" } else { about.clock };
    let page_size = texts.page_size();
    Contents {
        header: about.header.clone(),
        kallsyms: mem::take(&mut texts.kallsyms),
        printk: mem::take(&mut texts.printk),
        formats: formats(texts),
        cmdlines: mem::take(&mut about.cmdlines),
        options: options(about),
        cpus: about.cpu_count(),
        buffers: vec![BufferSpec { name: String::new(), clock: clock.into(), page_size }],
    }
}

fn options(about: &About<'_>) -> Vec<(u16, Vec<u8>)> {
    let order = about.header.order;
    let text = |text: &str| [text.as_bytes(), b"\0"].concat();
    let mut options = vec![
        (id::TRACECLOCK, text(about.clock_line)),
        (id::UNAME, text(&about.uname)),
        (id::VERSION, text(concat!("hyperscope ", env!("CARGO_PKG_VERSION")))),
        (id::CPUCOUNT, option::cpu_count(order, about.cpu_count())),
        (id::TRACEID, option::trace_id(order, about.trace_id)),
    ];
    options.extend(about.tsc_conversion.map(|TscConversion { mult, shift, zero_ns }| {
        let tsc = Tsc2Nsec { mult, shift, offset: zero_ns };
        (id::TSC2NSEC, option::tsc2nsec(order, &tsc))
    }));
    let shift = about.time_shift.as_ref();
    options.extend(shift.map(|shift| (id::TIME_SHIFT, option::time_shift(order, shift))));
    let guests = about.guests.iter();
    options.extend(guests.map(|guest| (id::GUEST, option::guest(order, guest))));
    for (cpu, stats) in about.stats {
        options.push((id::CPUSTAT, text(&format!("CPU: {cpu}\n{stats}"))));
    }
    options
}

impl About<'_> {
    fn cpu_count(&self) -> u32 {
        let with_pages = self.cpus.iter().copied();
        let numbers = with_pages.chain(self.stats.iter().map(|(cpu, _)| *cpu));
        numbers.map(|cpu| cpu.saturating_add(1)).max().unwrap_or(0)
    }
}

/// This machine's kernel.
pub(crate) fn uname() -> String {
    let name = rustix::system::uname();
    let parts = [name.sysname(), name.nodename(), name.release(), name.version(), name.machine()];
    parts.map(|part| part.to_string_lossy().into_owned()).join(" ")
}
