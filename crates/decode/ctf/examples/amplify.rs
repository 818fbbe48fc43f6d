//! Makes a large LTTng trace of a small one, to measure readers on: its packets again and again, later each
//! time, so that all events stay real ones in their real order.
//!
//! `cargo run -p hyperscope-ctf --example amplify -- fixtures/x86-svm/lttng/kernel target/big.ctf 700`

use std::fs;
use std::path::Path;

use ctf::{Events, Layout, Packet, Packets};

type Failed = Box<dyn std::error::Error>;

fn main() -> Result<(), Failed> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [from, to, times] = arguments.as_slice() else {
        return Err("usage: amplify TRACE OUTPUT_FOLDER REPETITIONS".into());
    };
    let (from, to, times) = (Path::new(from), Path::new(to), times.parse()?);
    let layout = Layout::parse(&fs::read(from.join("metadata"))?)?;
    fs::create_dir_all(to)?;
    fs::copy(from.join("metadata"), to.join("metadata"))?;
    let mut streams = Vec::new();
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_name() != "metadata" && entry.file_type()?.is_file() {
            streams.push((entry.file_name(), fs::read(entry.path())?));
        }
    }
    let mut span = (u64::MAX, 0);
    for (_, file) in &streams {
        for packet in Packets::new(&layout, file) {
            let packet = packet?;
            span.0 = span.0.min(packet.begin.unwrap_or(0));
            span.1 = span.1.max(packet.end.unwrap_or(0));
        }
    }
    // Of most events only the lowest 27 bits of the clock are recorded: those stay.
    let step = (span.1.saturating_sub(span.0) + 1).next_multiple_of(1 << 27);
    for (name, file) in &streams {
        fs::write(to.join(name), repeated(&layout, file, times, step)?)?;
    }
    Ok(())
}

fn repeated(layout: &Layout, file: &[u8], times: u64, step: u64) -> Result<Vec<u8>, Failed> {
    let packets: Vec<Packet> = Packets::new(layout, file).collect::<Result<_, _>>()?;
    let mut all = Vec::new();
    let mut number = 0;
    for time in 0..times {
        for packet in &packets {
            let bytes = file.get(packet.offset as usize..).unwrap_or(&[]);
            let bytes = bytes.get(..packet.len as usize).ok_or("a packet is cut short")?;
            let mut later = bytes.to_vec();
            put_head(&mut later, packet, time * step, number);
            put_stamps(layout, packet, bytes, &mut later, time * step)?;
            all.extend_from_slice(&later);
            number += 1;
        }
    }
    Ok(all)
}

/// The packet's times and its number, which lie where LTTng has them: behind magic, UUID, stream and
/// instance.
fn put_head(later: &mut [u8], packet: &Packet, shift: u64, number: u64) {
    const CONTEXT: usize = 4 + 16 + 4 + 8;
    let times = [packet.begin, packet.end].map(|time| time.unwrap_or(0) + shift);
    for (at, value) in [(0, times[0]), (8, times[1]), (32, number)] {
        put(later, CONTEXT + at, value);
    }
}

/// Whole times of events that have one: behind a tag of five ones, and the id.
fn put_stamps(
    layout: &Layout,
    packet: &Packet,
    bytes: &[u8],
    later: &mut [u8],
    shift: u64,
) -> Result<(), Failed> {
    let mut events = Events::new(layout, packet, bytes).ok_or("a packet belongs to no stream")?;
    while let Some(event) = events.next_event() {
        let cycles = event?.cycles;
        let at = events.event_at().div_ceil(8) as usize;
        if bytes.get(at).is_some_and(|first| first & 31 == 31) {
            put(later, at + 5, cycles + shift);
        }
    }
    Ok(())
}

fn put(bytes: &mut [u8], at: usize, value: u64) {
    if let Some(to) = bytes.get_mut(at..at + 8) {
        to.copy_from_slice(&value.to_le_bytes());
    }
}
