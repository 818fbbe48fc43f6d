//! Valid recordings with damage where it has most effect: headers of sections, chunks and pages,
//! records, and texts.

use std::ops::Range;

use testkit::Random;
use tracedat::{Compression, TraceDat};

use crate::{recording, timeline};

/// A valid file, and the positions of its structural data.
#[derive(Clone, Debug)]
pub struct Sound {
    /// Name for messages.
    pub name: String,
    /// Content of the file.
    pub file: Vec<u8>,
    /// Header, options, section headers, tables, chunk headers.
    pub container: Vec<Range<usize>>,
    /// Page headers and first records.
    pub pages: Vec<Range<usize>>,
    /// Lines of formats, symbols, thread names and compressed pages.
    pub texts: Vec<Range<usize>>,
}

/// Strings that mark format texts.
const MARKS: [&[u8]; 4] = [b"print fmt: ", b"\tfield:", b"format:", b"ID: "];
/// Maximum positions of texts to remember.
const MAX_TEXTS: usize = 4096;

impl Sound {
    /// Finds these positions in a valid trace.dat; `None` for other input.
    #[must_use]
    pub fn find(name: String, file: Vec<u8>) -> Option<Self> {
        let dat = TraceDat::parse(&file).ok()?;
        let len = file.len();
        let around = |at: u64, before: usize, after: usize| {
            let at = usize::try_from(at).unwrap_or(len);
            let from = at.saturating_sub(before).min(len.saturating_sub(1));
            from..at.saturating_add(after).min(len)
        };
        let mut container = vec![around(0, 0, 64)];
        let options = dat.options.iter();
        container.extend(options.map(|option| around(option.offset, 6, option.data.len())));
        let sections = [&dat.kallsyms, &dat.printk, &dat.cmdlines].into_iter().flatten();
        container.extend(sections.clone().map(|section| around(section.offset, 16, 16)));
        let mut texts = marked(&file);
        texts.extend(sections.map(|section| around(section.offset, 0, 400)));
        let mut pages = Vec::new();
        for cpu in dat.buffers.iter().flat_map(|buffer| &buffer.cpus) {
            container.push(around(cpu.data.offset, 8, 12));
            for chunk in &cpu.chunks(&file).list {
                container.push(around(chunk.offset, 8, 4));
                if chunk.compression == Compression::None {
                    let heads = (0..chunk.size).step_by(4096);
                    pages.extend(heads.map(|at| around(chunk.offset + u64::from(at), 0, 96)));
                } else {
                    texts.push(around(chunk.offset, 0, chunk.stored as usize));
                }
            }
        }
        for ranges in [&mut container, &mut pages, &mut texts] {
            ranges.retain(|range| !range.is_empty());
        }
        Some(Self { name, file, container, pages, texts })
    }

    /// A position where damage has much effect.
    #[must_use]
    pub fn place(&self, random: &mut Random) -> usize {
        let ranges = match random.below(12) {
            0 => &[][..],
            1..=4 => &self.pages,
            5..=7 => &self.texts,
            _ => &self.container,
        };
        let Some(range) = ranges.get(below(random, ranges.len())) else {
            return below(random, self.file.len());
        };
        range.start + below(random, range.len())
    }

    /// The file with random damage, and a description of it.
    #[must_use]
    pub fn damaged(&self, random: &mut Random) -> (Vec<u8>, String) {
        let (mut file, mut done) = (self.file.clone(), self.name.clone());
        for _ in 0..=random.below(3) {
            let at = self.place(random).min(file.len().saturating_sub(1));
            done += &self.damage(&mut file, at, random);
        }
        (file, done)
    }

    fn damage(&self, file: &mut Vec<u8>, at: usize, random: &mut Random) -> String {
        const ABSURD: [u32; 8] =
            [0, 1, 0xff, u32::MAX, 0x7fff_ffff, 0x8000_0000, 8 << 20, 0x1_0000];
        match random.below(16) {
            0 => {
                file.truncate(at.max(1));
                format!(", cut to {at}")
            }
            1..=5 => {
                let bit = 1 << random.below(8);
                if let Some(byte) = file.get_mut(at) {
                    *byte ^= bit;
                }
                format!(", bit {bit:#x} at {at}")
            }
            6..=9 => {
                let value = ABSURD.get(below(random, ABSURD.len())).copied().unwrap_or(0);
                let times = 1 + below(random, 2);
                put(file, at, &value.to_le_bytes().repeat(times));
                format!(", {times} of {value:#x} at {at}")
            }
            10 | 11 => {
                // Copies another page, or its header, to this place: time runs back, pages repeat.
                let other = self.pages.get(below(random, self.pages.len()));
                let from = other.map_or(at, |other| other.start);
                let to = self.pages.get(below(random, self.pages.len()));
                let to = to.map_or(at, |to| to.start);
                let len = if random.below(2) == 0 { 8 } else { 4096 };
                let bytes = file.get(from..(from + len).min(file.len())).unwrap_or_default();
                let bytes = bytes.to_vec();
                put(file, to, &bytes);
                format!(", {len} bytes of {from} at {to}")
            }
            12 => {
                let len = 1 + below(random, 64);
                let byte = b"(%{[,0\n\"s".get(below(random, 9)).copied().unwrap_or(0);
                put(file, at, &vec![byte; len]);
                format!(", {len} of {byte:#x} at {at}")
            }
            13 => {
                let end = (at + 1 + below(random, 4096)).min(file.len());
                file.drain(at.min(end)..end);
                format!(", without {at} to {end}")
            }
            14 => {
                let end = (at + 1 + below(random, 4096)).min(file.len());
                let again = file.get(at..end).unwrap_or_default().to_vec();
                file.splice(at..at, again);
                format!(", {at} to {end} twice")
            }
            _ => {
                let noise: Vec<u8> = (0..16).map(|_| random.below(256) as u8).collect();
                put(file, at, &noise);
                format!(", noise at {at}")
            }
        }
    }
}

fn below(random: &mut Random, limit: usize) -> usize {
    usize::try_from(random.below(limit as u64)).unwrap_or(0)
}

fn put(file: &mut [u8], at: usize, bytes: &[u8]) {
    for (to, from) in file.iter_mut().skip(at).zip(bytes) {
        *to = *from;
    }
}

fn marked(file: &[u8]) -> Vec<Range<usize>> {
    let is_mark = |at: &usize| MARKS.iter().any(|mark| file[*at..].starts_with(mark));
    let starts = (0..file.len()).filter(is_mark).take(MAX_TEXTS);
    starts.map(|at| at..(at + 120).min(file.len())).collect()
}

/// The first byte is the length of a story of threads, which becomes a recording; the remaining
/// bytes decide how the recording is damaged.
pub fn run(bytes: &[u8]) {
    let Some((&first, bytes)) = bytes.split_first() else { return };
    let (story, rest) = bytes.split_at(bytes.len() * usize::from(first) / 256);
    let Some(sound) = Sound::find("story".to_owned(), timeline::file_of(story)) else { return };
    let mut file = sound.file.clone();
    for seed in rest.chunks(4).take(16) {
        let seed = seed.iter().fold(1, |sum, byte| sum << 8 | u64::from(*byte));
        let mut random = Random(seed);
        let at = sound.place(&mut random).min(file.len().saturating_sub(1));
        let _ = sound.damage(&mut file, at, &mut random);
    }
    recording::run(&file);
}

/// Seed inputs.
pub(crate) fn inputs() -> Vec<(String, Vec<u8>)> {
    let story: Vec<u8> = (0..200_u8).map(|at| at.wrapping_mul(37)).collect();
    let with = |damage: &[u8]| [&[230][..], &story, damage].concat();
    vec![("few".to_owned(), with(&[1, 2, 3, 4])), ("many".to_owned(), with(&[7; 24]))]
}
