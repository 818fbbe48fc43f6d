//! Random histories of a few vCPU threads: any order of events, times and losses.
//!
//! Four bytes are a step on one of two CPUs, so that a mutation changes the events and not their
//! encoding; the recording around them is always valid.

use std::io::Cursor;
use std::path::Path;

use raw_bytes::{Abi, ByteOrder, LongSize};
use testkit::{EventBuilder, HEADER_EVENT, KernelFormats, Machine, MissedEvents, StreamBuilder};
use tracedat::{
    BufferSpec, Compression, Contents, EventFormat, Formats, Header, TraceDatWriter, Version,
};

use crate::recording;

const CPUS: usize = 2;
const PAGE_SIZE: usize = 512;
/// Maximum steps; more find nothing new.
const MAX_STEPS: usize = 4096;
const THREADS: [i32; 4] = [0, 10, 11, 12];

/// Writes the story as a recording, and accounts for it.
pub fn run(story: &[u8]) {
    let (file, written) = recording_of(story);
    let recording = match sources::open_bytes(Path::new("story"), file) {
        Ok(recording) => recording,
        Err(error) => panic!("a sound recording is refused: {error}"),
    };
    let (found, contents) = recording::count(&recording);
    assert_eq!((found.events, found.damaged), (written.events, 0));
    assert!(found.exits <= written.exits, "{found:?} of {written:?}");
    assert!(
        contents.is_some_and(|contents| contents.events_lost() == written.lost),
        "of {written:?}"
    );
}

/// The recording that a story makes.
pub(crate) fn file_of(story: &[u8]) -> Vec<u8> {
    recording_of(story).0
}

/// Counts of what the recording contains.
#[derive(Debug, Default)]
struct Written {
    events: u64,
    exits: u64,
    /// Lost events that were counted and are followed by an event on the same CPU.
    lost: u64,
}

fn recording_of(story: &[u8]) -> (Vec<u8>, Written) {
    let flags = story.first().copied().unwrap_or(0);
    let abi = Abi { order: ByteOrder::Little, long: LongSize::Eight };
    let machine = if flags & 1 == 0 { Machine::X86 } else { Machine::Arm64 };
    let formats = KernelFormats::new(machine, abi);
    let mut streams = [StreamBuilder::new(abi, PAGE_SIZE), StreamBuilder::new(abi, PAGE_SIZE)];
    let (mut now_ns, mut written) = ([1_000_000_u64; CPUS], Written::default());
    let mut lost = [0_u64; CPUS];
    for step in story.get(1..).unwrap_or_default().chunks_exact(4).take(MAX_STEPS) {
        let &[who, what, value, after] = step else { continue };
        let cpu = usize::from(who) % CPUS;
        let (stream, now_ns) = (&mut streams[cpu], &mut now_ns[cpu]);
        *now_ns += u64::from(after) << (who >> 4);
        match what {
            254 => {
                lost[cpu] = 0;
                stream.lose(MissedEvents::Uncounted);
            }
            255 => {
                lost[cpu] = u64::MAX >> (value & 63);
                stream.lose(MissedEvents::Counted(lost[cpu]));
            }
            _ => {
                let thread = THREADS[usize::from(who >> 1) % THREADS.len()];
                let format = &formats.all()[usize::from(what) % formats.all().len()];
                let event = fill(EventBuilder::new(abi, format).pid(thread), format, value);
                stream.event(*now_ns, &event);
                written.events += 1;
                written.lost = written.lost.saturating_add(std::mem::take(&mut lost[cpu]));
                written.exits += u64::from(matches!(format.name, "kvm_exit" | "kvm_nested_vmexit"));
            }
        }
    }
    (file(&formats, streams), written)
}

/// Sets the fields to small numbers that the analyses interpret.
fn fill<'f>(mut event: EventBuilder<'f>, format: &testkit::Format, value: u8) -> Vec<u8> {
    for field in format.fields.iter().filter(|field| field.size <= 8 && !field.is_dynamic()) {
        let number = match field.name.as_str() {
            "isa" => u64::from(value & 1) + 1,
            "exit_reason" | "exit_code" => REASONS[usize::from(value) % REASONS.len()],
            name if name.ends_with("pid") => {
                THREADS[usize::from(value >> 2) % THREADS.len()].unsigned_abs().into()
            }
            "ns" => u64::from(value) << 6,
            _ => value.into(),
        };
        if field.size == field.align {
            event = event.set(&field.name, number);
        }
    }
    event.build()
}

/// HLT, EXTERNAL_INTERRUPT, VMRESUME, IO, MSR of both kinds of machine.
const REASONS: [u64; 10] = [12, 1, 24, 30, 32, 0x78, 0x60, 0x80, 0x7b, 0x7c];

fn file(formats: &KernelFormats, streams: [StreamBuilder; CPUS]) -> Vec<u8> {
    let contents = contents(formats, PAGE_SIZE as u32, Version::V7);
    let written = TraceDatWriter::new(Cursor::new(Vec::new()), &contents).and_then(|mut writer| {
        for (cpu, stream) in (0..).zip(streams) {
            writer.write_cpu("", cpu, &stream.bytes()[..])?;
        }
        writer.finish()
    });
    match written {
        Ok(file) => file.into_inner(),
        Err(error) => panic!("a sound recording can't be written: {error}"),
    }
}

/// A recording of a test kernel, without pages.
pub(crate) fn contents(formats: &KernelFormats, page_size: u32, version: Version) -> Contents {
    let events = formats.systems().into_iter().flat_map(|(system, texts)| {
        texts.into_iter().map(move |text| EventFormat { system: system.into(), text })
    });
    Contents {
        header: Header {
            version,
            order: formats.abi().order,
            user_long: formats.abi().long,
            page_size,
            compression: Compression::None,
            compression_version: String::new(),
        },
        formats: Formats {
            header_page: formats.header_page(page_size as usize),
            header_event: HEADER_EVENT.to_owned(),
            ftrace: Vec::new(),
            events: events.collect(),
        },
        kallsyms: b"10 t low\nffffffffffffff00 t high [m]\n".to_vec(),
        printk: b"0x0 : \"%s %d\"\n".to_vec(),
        cmdlines: b"10 CPU 0/KVM\n11 CPU 1/KVM\n12 vhost-10\n".to_vec(),
        options: vec![(tracedat::id::TRACECLOCK, b"[local] global\n\0".to_vec())],
        cpus: CPUS as u32,
        buffers: vec![BufferSpec { name: String::new(), clock: "local".to_owned(), page_size }],
    }
}
