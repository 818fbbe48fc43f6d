//! Counts the events of a trace by their names, packets handed to a thread for each CPU: what reading alone
//! takes.
//!
//! `cargo run --release -p hyperscope-ctf --example count -- target/big.ctf`

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use ctf::{Events, Layout, Packet, Packets};
use parking_lot::Mutex;

type Failed = Box<dyn std::error::Error + Send + Sync>;

/// Events by the indices of their classes of streams and of events.
type Counts = Vec<Vec<u64>>;

/// Bytes that are read at once, unless a packet is longer: they stay in the cache.
const WINDOW_BYTES: u64 = 128 << 10;
/// What is read lies as far into a page as it does in the file: the kernel copies that several times faster.
const PAGE_BYTES: usize = 4096;

fn main() -> Result<(), Failed> {
    let folder = std::env::args().nth(1).ok_or("usage: count TRACE_FOLDER")?;
    let folder = Path::new(&folder);
    let layout = Layout::parse(&fs::read(folder.join("metadata"))?)?;
    let mut streams = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name() != "metadata" && entry.file_type()?.is_file() {
            let file = File::open(entry.path())?;
            let len = file.metadata()?.len();
            streams.push(Mutex::new(StreamFile { file, len, at: 0, window: WINDOW_BYTES }));
        }
    }
    let threads = std::thread::available_parallelism()?.get();
    let counts: Vec<Result<Counts, Failed>> = std::thread::scope(|scope| {
        let (layout, streams) = (&layout, &streams);
        let count =
            |number| move || count(layout, streams.iter().cycle().skip(number), streams.len());
        let threads: Vec<_> = (0..threads).map(|number| scope.spawn(count(number))).collect();
        let gone = || Err("a thread has panicked".into());
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| gone())).collect()
    });
    let mut all: BTreeMap<(usize, usize), u64> = BTreeMap::new();
    for result in counts {
        for (stream, events) in result?.into_iter().enumerate() {
            for (event, number) in events.into_iter().enumerate().filter(|(_, number)| *number > 0)
            {
                *all.entry((stream, event)).or_default() += number;
            }
        }
    }
    for ((stream, event), number) in all {
        let class = layout.streams.get(stream).and_then(|stream| stream.events.get(event));
        println!("{number:>12} {}", class.map_or("", |class| &class.name));
    }
    Ok(())
}

/// Counts the content of each stream that no other thread has claimed.
fn count<'s>(
    layout: &Layout,
    streams: impl Iterator<Item = &'s Mutex<StreamFile>>,
    number: usize,
) -> Result<Counts, Failed> {
    let mut counts: Counts =
        layout.streams.iter().map(|stream| vec![0; stream.events.len()]).collect();
    let (mut buffer, mut packets) = (Vec::new(), Vec::new());
    for stream in streams.take(number) {
        loop {
            let result = stream.lock().take(layout, &mut buffer, &mut packets);
            let window = result?;
            if packets.is_empty() {
                break;
            }
            for packet in packets.drain(..) {
                count_packet(layout, &packet, window, &mut counts)?;
            }
        }
    }
    Ok(counts)
}

fn count_packet(
    layout: &Layout,
    packet: &Packet,
    window: &[u8],
    counts: &mut Counts,
) -> Result<(), Failed> {
    let bytes = raw_bytes::slice::range(window, packet.offset, packet.len);
    let mut events = Events::new(layout, packet, bytes).ok_or("a packet belongs to no stream")?;
    let counts = counts.get_mut(packet.stream).ok_or("a packet belongs to no stream")?;
    events.heads(|event, _| {
        if let Some(number) = counts.get_mut(event) {
            *number += 1;
        }
    })?;
    Ok(())
}

/// A stream's file, up to a byte that has been taken.
struct StreamFile {
    file: File,
    len: u64,
    at: u64,
    /// Bytes that are read at once.
    window: u64,
}

impl StreamFile {
    /// Reads the next packets, whose offsets are those in the bytes that it gives; none: there are no more.
    fn take<'b>(
        &mut self,
        layout: &Layout,
        buffer: &'b mut Vec<u8>,
        packets: &mut Vec<Packet>,
    ) -> Result<&'b [u8], Failed> {
        let mut wanted = self.window;
        loop {
            let remaining = self.len.saturating_sub(self.at);
            let len = usize::try_from(wanted.min(remaining))?;
            let begin = self.read(len, buffer)?;
            let window = buffer.get(begin..begin + len).unwrap_or(&[]);
            for packet in Packets::new(layout, window) {
                // The next window begins with what this one cuts, or might: packets need not say their sizes.
                let is_last = len as u64 == remaining;
                match packet {
                    Ok(packet) if !is_last && packet.offset + packet.len >= len as u64 => break,
                    Err(_) if !is_last => break,
                    packet => packets.push(packet?),
                }
            }
            let packets_end = packets.last().map_or(0, |packet| packet.offset + packet.len);
            if packets_end > 0 || len as u64 == remaining {
                self.at += packets_end;
                // Where packets are of one length, whole ones are read, and a byte to see that they end there.
                self.window =
                    if packets_end > WINDOW_BYTES / 2 { packets_end + 1 } else { WINDOW_BYTES };
                return Ok(buffer.get(begin..begin + len).unwrap_or(&[]));
            }
            wanted = wanted.saturating_mul(2);
        }
    }

    /// Reads what follows; gives where it is in the buffer.
    fn read(&self, len: usize, buffer: &mut Vec<u8>) -> Result<usize, Failed> {
        if buffer.len() < len + 2 * PAGE_BYTES {
            buffer.resize(len + 2 * PAGE_BYTES, 0);
        }
        let page = buffer.as_ptr().align_offset(PAGE_BYTES).min(PAGE_BYTES);
        let begin = page + (self.at % PAGE_BYTES as u64) as usize;
        self.file.read_exact_at(buffer.get_mut(begin..begin + len).unwrap_or_default(), self.at)?;
        Ok(begin)
    }
}
