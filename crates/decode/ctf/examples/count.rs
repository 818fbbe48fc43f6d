//! Counts the events of a trace by their names, a thread for each of its streams: what reading alone takes.
//!
//! `cargo run --release -p hyperscope-ctf --example count -- target/big.ctf`

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use ctf::{Events, Layout, Packets};

type Failed = Box<dyn std::error::Error + Send + Sync>;

/// Events by the indices of their classes of streams and of events.
type Counts = BTreeMap<(usize, usize), u64>;

fn main() -> Result<(), Failed> {
    let folder = std::env::args().nth(1).ok_or("give a folder with metadata")?;
    let folder = Path::new(&folder);
    let layout = Layout::parse(&fs::read(folder.join("metadata"))?)?;
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name() != "metadata" && entry.file_type()?.is_file() {
            files.push(entry.path());
        }
    }
    let counts: Vec<Result<Counts, Failed>> = std::thread::scope(|scope| {
        let layout = &layout;
        let threads: Vec<_> =
            files.iter().map(|file| scope.spawn(move || count(layout, &fs::read(file)?))).collect();
        let gone = || Err("a thread has panicked".into());
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| gone())).collect()
    });
    let mut all = Counts::new();
    for one in counts {
        for (class, number) in one? {
            *all.entry(class).or_default() += number;
        }
    }
    for ((stream, event), number) in all {
        let class = layout.streams.get(stream).and_then(|stream| stream.events.get(event));
        println!("{number:>12} {}", class.map_or("", |class| &class.name));
    }
    Ok(())
}

fn count(layout: &Layout, file: &[u8]) -> Result<Counts, Failed> {
    let mut counts = Counts::new();
    for packet in Packets::new(layout, file) {
        let packet = packet?;
        let from = packet.offset as usize;
        let bytes = file.get(from..from + packet.len as usize).unwrap_or(&[]);
        let mut numbers = Vec::new();
        let mut events = Events::new(layout, &packet, bytes).ok_or("a packet of no stream")?;
        while let Some(event) = events.next_event() {
            let index = event?.index;
            if numbers.len() <= index {
                numbers.resize(index + 1, 0);
            }
            if let Some(number) = numbers.get_mut(index) {
                *number += 1;
            }
        }
        for (event, number) in numbers.into_iter().enumerate().filter(|(_, number)| *number > 0) {
            *counts.entry((packet.stream, event)).or_default() += number;
        }
    }
    Ok(counts)
}
