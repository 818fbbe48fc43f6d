//! Writes the published spans as a trace.dat on the guest's TSC, to read together with the guest's own recording: each
//! vCPU is a thread on the CPU of its number, which exits, goes to user space and is switched out. Events have the
//! kernel's names and formats, with the fields that the host publishes.

mod events;
#[cfg(test)]
mod tests;
mod vcpu_pages;

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Seek};
use std::path::{Path, PathBuf};

use raw_bytes::{ByteOrder, LongSize};
use shmring::spans::{Span, SpanReader};
use tracedat::{
    BufferSpec, Compression, Contents, Guest, GuestCpu, Header, TraceDatWriter, Tsc2Nsec, Version,
    id, option,
};

use self::events::{cmdlines, formats, thread};
use self::vcpu_pages::VcpuPages;
use crate::error::{Result, StealError};
use crate::rate::Rate;
use crate::table::Names;

const PAGE_BYTES: u32 = 4096;
/// Name of the machine that runs the vCPUs.
const CALLED: &str = "this";

/// A running recording: until it ends, the pages of each vCPU are in a file next to it.
#[derive(Debug)]
pub(crate) struct Recording {
    path: PathBuf,
    rate: Rate,
    vcpus: Vec<(u32, PathBuf, VcpuPages)>,
}

impl Recording {
    /// Starts writing.
    pub(crate) fn begin(path: &Path, reader: &SpanReader, rate: Rate) -> Result<Self> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            |source| StealError::Recording { path, source }
        };
        // Fails now, not after an hour.
        File::create(path).map_err(failed(path))?;
        let begin = |vcpu: u32| {
            let mut vcpu_path = path.as_os_str().to_owned();
            vcpu_path.push(format!(".cpu{vcpu}"));
            let vcpu_path = PathBuf::from(vcpu_path);
            let mut how = File::options();
            how.read(true).write(true).create(true).truncate(true);
            let file = how.open(&vcpu_path).map_err(failed(&vcpu_path))?;
            Ok((vcpu, vcpu_path, VcpuPages::new(vcpu, file)))
        };
        let vcpus = reader.vcpus().map(begin).collect::<Result<_>>()?;
        Ok(Self { path: path.to_owned(), rate, vcpus })
    }

    /// Adds the next span of the vCPU at `index`.
    pub(crate) fn span(&mut self, index: usize, span: &Span) -> Result<()> {
        let Some((_, path, pages)) = self.vcpus.get_mut(index) else { return Ok(()) };
        pages.span(span).map_err(|source| StealError::Recording { path: path.clone(), source })
    }

    /// Notes the time up to which everything is known, by vCPU.
    pub(crate) fn known(&mut self, known: impl Iterator<Item = (u32, u64)>) -> Result<()> {
        for ((_, path, pages), (_, known_to)) in self.vcpus.iter_mut().zip(known) {
            let failed = |source| StealError::Recording { path: path.clone(), source };
            pages.known(known_to).map_err(failed)?;
        }
        Ok(())
    }

    /// Writes the file, and removes those of the vCPUs.
    pub(crate) fn end(self, names: &Names) -> Result<()> {
        let Self { path, rate, vcpus } = self;
        let vcpu_paths: Vec<PathBuf> = vcpus.iter().map(|(_, path, _)| path.clone()).collect();
        let written = write(&path, rate, vcpus, names);
        written.map_err(|source| StealError::Recording { path, source })?;
        vcpu_paths.iter().for_each(|path| drop(fs::remove_file(path)));
        Ok(())
    }
}

fn write(
    path: &Path,
    rate: Rate,
    vcpus: Vec<(u32, PathBuf, VcpuPages)>,
    names: &Names,
) -> io::Result<()> {
    let numbers: Vec<u32> = vcpus.iter().map(|(vcpu, ..)| *vcpu).collect();
    let out = BufWriter::new(File::create(path)?);
    let mut writer = TraceDatWriter::new(out, &contents(rate, &numbers, names))?;
    for (vcpu, _, pages) in vcpus {
        let mut file = pages.end()?;
        file.rewind()?;
        writer.write_cpu("", vcpu, BufReader::new(file))?;
    }
    writer.finish().map(drop)
}

fn contents(rate: Rate, vcpus: &[u32], names: &Names) -> Contents {
    let order = ByteOrder::Little;
    let text = |text: &str| [text.as_bytes(), b"\0"].concat();
    let guest = Guest {
        name: CALLED.into(),
        trace_id: 1,
        vcpus: vcpus.iter().map(|&cpu| GuestCpu { cpu, pid: thread(cpu) }).collect(),
    };
    // The same conversion as in recordings of this kernel.
    let tsc = match sys::tsc_conversion() {
        Some((mult, shift, offset)) => Tsc2Nsec { mult, shift: shift.into(), offset },
        None => Tsc2Nsec { mult: rate.mult_of_shift_32(), shift: 32, offset: 0 },
    };
    let cpus = vcpus.iter().map(|cpu| cpu.saturating_add(1)).max().unwrap_or(0);
    let options = vec![
        (id::TRACECLOCK, text("[x86-tsc]")),
        (
            id::VERSION,
            text(concat!("hyperscope ", env!("CARGO_PKG_VERSION"), ", published by the host")),
        ),
        (id::CPUCOUNT, option::cpu_count(order, cpus)),
        (id::TSC2NSEC, option::tsc2nsec(order, &tsc)),
        (id::GUEST, option::guest(order, &guest)),
    ];
    Contents {
        header: Header {
            version: Version::V7,
            order,
            user_long: LongSize::Eight,
            page_size: PAGE_BYTES,
            compression: Compression::None,
            compression_version: String::new(),
        },
        formats: formats(names),
        kallsyms: Vec::new(),
        printk: Vec::new(),
        cmdlines: cmdlines(vcpus),
        options,
        cpus,
        buffers: vec![BufferSpec {
            name: String::new(),
            clock: "tsc2nsec".into(),
            page_size: PAGE_BYTES,
        }],
    }
}
