//! Writes one trace.dat from the pages of all CPUs.

#[cfg(test)]
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::mem;
use std::path::Path;
use std::sync::mpsc;

use os::confine::{Confined, Unconfined, apart_while};
use os::folder::{Folder, OutFile};
use tracedat::{
    BufferSpec, Contents, Guest, Header, TimeShift, TraceDatWriter, Tsc2Nsec, id, option,
};
use tracefs::{Clock, Texts, TscConversion};

use crate::cut_pages::CutPages;
use crate::error::{RecordError, Result};
use crate::page_events::PageEvents;
use crate::pages_folder::{formats, header, pages};

/// Contents of a recording other than pages and texts.
#[derive(Debug)]
pub(crate) struct About<'a> {
    /// The head of the file: versions, sizes, byte order.
    pub(crate) header: Header,
    /// The kernel's name of the selected clock.
    pub(crate) clock: &'a str,
    /// The text of `trace_clock`, with the selected clock in brackets.
    pub(crate) clock_line: &'a str,
    pub(crate) tsc_conversion: Option<TscConversion>,
    pub(crate) trace_id: u64,
    /// The machine's kernel.
    pub(crate) uname: String,
    /// Guests of this machine.
    pub(crate) guests: Vec<Guest>,
    /// Converts its times to its host's clock.
    pub(crate) time_shift: Option<TimeShift>,
    /// CPUs with pages.
    pub(crate) cpus: Vec<u32>,
    /// The kernel's counts of each CPU.
    pub(crate) stats: &'a [(u32, String)],
    pub(crate) cmdlines: Vec<u8>,
}

impl<'a> About<'a> {
    /// For a host, with the counts of CPUs that have pages, and the names of tasks.
    pub(crate) fn of_host(
        texts: &Texts,
        clock: &'a Clock,
        trace_id: u64,
        guests: Vec<Guest>,
        stats: &'a [(u32, String)],
        cmdlines: Vec<u8>,
    ) -> Self {
        Self {
            header: header(texts),
            clock: &clock.name,
            clock_line: &clock.line,
            tsc_conversion: clock.tsc_conversion,
            trace_id,
            uname: uname(),
            guests,
            time_shift: None,
            cpus: stats.iter().map(|(cpu, _)| *cpu).collect(),
            stats,
            cmdlines,
        }
    }
}

/// Max queued progress reports.
const REPORTS: usize = 64;

/// Gets the number of bytes written; an error stops the writing and discards the file.
pub(crate) type Tick<'a> = &'a dyn Fn(u64) -> io::Result<()>;

/// The source of pages.
#[derive(Debug)]
pub(crate) enum From<'f> {
    /// Files in a folder, one per CPU.
    Folder(&'f Folder),
    /// Open files, by CPU.
    Open(Vec<(u32, CutPages)>),
}

/// Number of events in a file, by CPU.
pub(crate) type Held = Vec<(u32, u64)>;

/// Writes and syncs a trace.dat from the pages in another folder, so that the pages can be removed afterwards. Returns
/// the number of events.
pub(crate) fn write(
    texts: Texts,
    about: About<'_>,
    from: &Folder,
    to: (&Folder, &str),
    progress: Tick<'_>,
) -> Result<Held> {
    write_from(texts, about, From::Folder(from), to, progress)
}

/// [`write()`] from any source of pages.
pub(crate) fn write_from(
    texts: Texts,
    about: About<'_>,
    from: From<'_>,
    (to, name): (&Folder, &str),
    progress: Tick<'_>,
) -> Result<Held> {
    let unfinished = format!("{name}.new");
    let written = write_new(texts, about, from, (to, &unfinished), progress).and_then(|held| {
        let renamed = to.rename(&unfinished, name);
        renamed.map_err(RecordError::io("write", &to.path().join(name)))?;
        Ok(held)
    });
    if written.is_err() {
        // Frees the space of a full disk; the pages are still where they were.
        let _ = to.remove(&unfinished);
    }
    written
}

/// A guest controls its pages and texts, so a confined thread that opens no files reads them; other threads open the
/// files. The calling thread reports progress.
fn write_new(
    texts: Texts,
    about: About<'_>,
    from: From<'_>,
    (to, unfinished): (&Folder, &str),
    progress: Tick<'_>,
) -> Result<Held> {
    let path = to.path().join(unfinished);
    let failed = || RecordError::io("write", &path);
    let file = to.create_new(unfinished).map_err(RecordError::io("make", &path))?;
    let opener = Unconfined::start("opens").map_err(failed())?;
    let (read, bytes_read) = mpsc::sync_channel(REPORTS);
    let write = || {
        let read = read;
        let progress: Tick<'_> = &|bytes| read.send(bytes).map_err(|_| ended());
        Ok(write_into(file, &path, texts, about, (from, &opener), progress))
    };
    let report = || bytes_read.into_iter().try_for_each(progress);
    let (written, reported) = apart_while(Confined::Reader, "assembles", write, report);
    reported.map_err(failed())?;
    written.map_err(failed())?
}

/// The error of an unwanted file; the calling thread reports the reason.
fn ended() -> io::Error {
    io::Error::other("writing was stopped")
}

fn write_into(
    file: OutFile,
    path: &Path,
    texts: Texts,
    mut about: About<'_>,
    (from, opener): (From<'_>, &Unconfined),
    progress: Tick<'_>,
) -> Result<Held> {
    let out = BufWriter::with_capacity(1 << 20, file);
    let failed = || RecordError::io("write", path);
    // Writes and frees the texts before it copies pages: a guest's texts may have tens of megabytes.
    let mut writer = TraceDatWriter::new(out, &contents(texts, &mut about)).map_err(failed())?;
    let (header, mut held) = (about.header, Held::new());
    match from {
        From::Folder(from) => {
            for cpu in &about.cpus {
                let (folder, name) = (from.clone(), pages(*cpu));
                let path = from.path().join(&name);
                let file = opener.run(move || folder.read(&name)).and_then(|opened| opened);
                let pages = file.map_err(RecordError::io("read", &path))?;
                let mut pages = Ticking { pages, events: PageEvents::new(&header), tick: progress };
                writer.write_cpu("", *cpu, &mut pages).map_err(failed())?;
                held.push((*cpu, pages.events.events()));
            }
        }
        From::Open(cpus) => {
            for (cpu, pages) in cpus {
                let mut pages = Ticking { pages, events: PageEvents::new(&header), tick: progress };
                writer.write_cpu("", cpu, &mut pages).map_err(failed())?;
                held.push((cpu, pages.events.events()));
            }
        }
    }
    let mut out = writer.finish().map_err(failed())?;
    out.flush().and_then(|()| out.get_ref().sync()).map_err(failed())?;
    Ok(held)
}

/// Counts the events and reports the bytes read.
struct Ticking<'a, P> {
    pages: P,
    events: PageEvents,
    tick: Tick<'a>,
}

impl<P: Read> Read for Ticking<'_, P> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.pages.read(buffer)?;
        self.events.take(buffer.get(..read).unwrap_or_default());
        (self.tick)(read as u64)?;
        Ok(read)
    }
}

/// Contents of the file before its pages; moves the texts instead of copying them.
fn contents(mut texts: Texts, about: &mut About<'_>) -> Contents {
    // trace-cmd's name of a TSC with a conversion to nanoseconds.
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

pub(crate) fn uname() -> String {
    let name = rustix::system::uname();
    let parts = [name.sysname(), name.nodename(), name.release(), name.version(), name.machine()];
    parts.map(|part| part.to_string_lossy().into_owned()).join(" ")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use os::folder::{Modes, Observer, Operation};
    use parking_lot::Mutex;

    use super::*;
    use crate::pages_folder::header;

    /// Whether a thread could open files, noted at each write.
    #[derive(Debug, Default)]
    struct Openings(Mutex<Vec<bool>>);

    impl Observer for Openings {
        fn before(&self, operation: &Operation<'_>) -> io::Result<()> {
            if matches!(operation, Operation::Write { .. }) {
                self.0.lock().push(File::open("/dev/null").is_ok());
            }
            Ok(())
        }
    }

    fn about() -> About<'static> {
        About {
            header: header(&Texts::default()),
            clock: "local",
            clock_line: "[local]",
            tsc_conversion: None,
            trace_id: 7,
            uname: "Linux g".into(),
            guests: Vec::new(),
            time_shift: None,
            cpus: vec![0, 1],
            stats: &[],
            cmdlines: Vec::new(),
        }
    }

    /// A folder with pages of two CPUs, and the log of its writers.
    fn prepared() -> (tempfile::TempDir, Folder, Arc<Openings>) {
        let at = tempfile::tempdir().unwrap();
        for cpu in ["cpu0", "cpu1"] {
            fs::write(at.path().join(cpu), [0; 8192]).unwrap();
        }
        let openings = Arc::new(Openings::default());
        let observer = Some(Arc::clone(&openings) as Arc<dyn Observer>);
        let (folder, _) = Folder::open_or_make(at.path(), Modes::default(), observer).unwrap();
        (at, folder, openings)
    }

    #[test]
    fn files_are_put_together_by_threads_that_open_nothing() {
        let (at, folder, openings) = prepared();
        let read = std::cell::Cell::new(0);
        let caller = std::thread::current().id();
        let progress: Tick<'_> = &|bytes| {
            assert_eq!(std::thread::current().id(), caller);
            read.set(read.get() + bytes);
            Ok(())
        };
        write(Texts::default(), about(), &folder, (&folder, "g.dat"), progress).unwrap();
        assert_eq!(read.get(), 2 * 8192);
        let openings = openings.0.lock();
        assert!(!openings.is_empty() && openings.iter().all(|opened| !opened), "{openings:?}");
        assert!(fs::metadata(at.path().join("g.dat")).unwrap().len() > 2 * 8192);
    }

    #[test]
    fn whoever_is_reported_to_ends_the_writing() {
        let (at, folder, _) = prepared();
        let progress: Tick<'_> = &|_| Err(io::Error::other("enough"));
        let written = write(Texts::default(), about(), &folder, (&folder, "g.dat"), progress);
        let error = printable::with_causes(&written.unwrap_err());
        assert!(error.contains("enough"), "{error}");
        let mut names: Vec<_> =
            fs::read_dir(at.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["cpu0", "cpu1"]);
    }
}
