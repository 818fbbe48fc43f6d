//! Makes one trace.dat of the pages of all CPUs.

use std::fs::{self, File};
use std::io::{BufWriter, Read};
use std::path::Path;

use tracedat::{BufferSpec, Contents, Guest, GuestCpu, TraceDatWriter, Tsc2Nsec, id, option};
use tracefs::{Texts, TscConversion};

use crate::error::{RecordError, Result};
use crate::pages_folder::{formats, header, pages};
use crate::vms::Vm;

/// What a recording is, beside pages and texts.
#[derive(Debug)]
pub(crate) struct About<'a> {
    /// The selected clock, as the kernel names it.
    pub(crate) clock: &'a str,
    /// The line of all clocks, the selected one in brackets.
    pub(crate) clock_line: &'a str,
    pub(crate) tsc_conversion: Option<TscConversion>,
    pub(crate) trace_id: u64,
    pub(crate) vms: &'a [Vm],
    /// CPUs, with what the kernel counted for each.
    pub(crate) stats: &'a [(u32, String)],
    pub(crate) cmdlines: Vec<u8>,
}

/// Told of bytes written.
pub(crate) type Tick<'a> = &'a dyn Fn(u64);

/// Writes a trace.dat from the pages in a folder.
pub(crate) fn write(
    texts: &Texts,
    about: &About<'_>,
    from: &Path,
    to: &Path,
    tick: Tick<'_>,
) -> Result<()> {
    let unfinished = to.with_extension("dat.new");
    let file = File::create(&unfinished).map_err(RecordError::io("make", &unfinished))?;
    let out = BufWriter::with_capacity(1 << 20, file);
    let contents = contents(texts, about);
    let failed = || RecordError::io("write", &unfinished);
    let mut writer = TraceDatWriter::new(out, &contents).map_err(failed())?;
    for (cpu, _) in about.stats {
        let path = pages(from, *cpu);
        let file = File::open(&path).map_err(RecordError::io("read", &path))?;
        writer.write_cpu("", *cpu, Ticking { file, tick }).map_err(failed())?;
    }
    writer.finish().map_err(failed())?;
    fs::rename(&unfinished, to).map_err(RecordError::io("write", to))
}

/// Tells of bytes read.
struct Ticking<'a> {
    file: File,
    tick: Tick<'a>,
}

impl Read for Ticking<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.file.read(buffer)?;
        (self.tick)(read as u64);
        Ok(read)
    }
}

fn contents(texts: &Texts, about: &About<'_>) -> Contents {
    // trace-cmd's name for a TSC with its conversion to nanoseconds.
    let clock = if about.tsc_conversion.is_some() { "tsc2nsec" } else { about.clock };
    Contents {
        header: header(texts),
        formats: formats(texts),
        kallsyms: texts.kallsyms.clone(),
        printk: texts.printk.clone(),
        cmdlines: about.cmdlines.clone(),
        options: options(texts, about),
        cpus: about.stats.iter().map(|(cpu, _)| cpu + 1).max().unwrap_or(0),
        buffers: vec![BufferSpec {
            name: String::new(),
            clock: clock.into(),
            page_size: texts.page_size(),
        }],
    }
}

fn options(texts: &Texts, about: &About<'_>) -> Vec<(u16, Vec<u8>)> {
    let order = header(texts).order;
    let text = |text: &str| [text.as_bytes(), b"\0"].concat();
    let cpus = about.stats.iter().map(|(cpu, _)| cpu + 1).max().unwrap_or(0);
    let mut options = vec![
        (id::TRACECLOCK, text(about.clock_line)),
        (id::UNAME, text(&uname())),
        (id::VERSION, text(concat!("hyperscope ", env!("CARGO_PKG_VERSION")))),
        (id::CPUCOUNT, option::cpu_count(order, cpus)),
        (id::TRACEID, option::trace_id(order, about.trace_id)),
    ];
    options.extend(about.tsc_conversion.map(|TscConversion { mult, shift, zero_ns }| {
        let tsc = Tsc2Nsec { mult, shift, offset: zero_ns };
        (id::TSC2NSEC, option::tsc2nsec(order, &tsc))
    }));
    for vm in about.vms {
        options.push((id::GUEST, option::guest(order, &guest(vm))));
    }
    for (cpu, stats) in about.stats {
        options.push((id::CPUSTAT, text(&format!("CPU: {cpu}\n{stats}"))));
    }
    options
}

/// A VM as trace-cmd tells of it. Its id stands for its own recording, if there is one.
fn guest(vm: &Vm) -> Guest {
    let vcpus = vm.vcpus.iter().map(|vcpu| GuestCpu { cpu: vcpu.vcpu, pid: vcpu.tid }).collect();
    Guest { name: vm.name.clone(), trace_id: u64::from(vm.pid), vcpus }
}

fn uname() -> String {
    let name = rustix::system::uname();
    let parts = [name.sysname(), name.nodename(), name.release(), name.version(), name.machine()];
    parts.map(|part| part.to_string_lossy().into_owned()).join(" ")
}
