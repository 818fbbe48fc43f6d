//! Finds the frames that guests' modules stored in memory: in files of sessions, or in a guest's
//! memory.

use std::fs::{self, File};
use std::io::Read;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use analyses::hypertrace::StoredFrames;
use anyhow::{Context, bail};
use channel::{Access, SharedMap, TakeFrom, frame_rings};
use hypertrace::{FrameWords, STORED_MAGIC, Stored, StoredWriter};
use sources::{Recording, guest_named};
use sys::FileMap;

/// Frames from any source.
pub(crate) struct Frames {
    path: PathBuf,
    bytes: Bytes,
}

enum Bytes {
    File(FileMap),
    Copied(Vec<u8>),
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::File(map) => map,
            Self::Copied(bytes) => bytes,
        }
    }
}

/// Splits paths into those of recordings and those of frames. A session has both.
pub(crate) fn find(paths: &[PathBuf]) -> anyhow::Result<(Vec<PathBuf>, Vec<Frames>)> {
    let (mut recordings, mut frames) = (Vec::new(), Vec::new());
    for path in paths {
        if path.is_dir() {
            for file in in_session(path)? {
                frames.push(Frames { bytes: Bytes::File(FileMap::open(&file)?), path: file });
            }
            recordings.push(path.clone());
        } else if begins_with(path, &STORED_MAGIC) {
            frames.push(Frames { bytes: Bytes::File(FileMap::open(path)?), path: path.clone() });
        } else if let Some(bytes) = of_memory(path) {
            frames.push(Frames { bytes: Bytes::Copied(bytes), path: path.clone() });
        } else {
            recordings.push(path.clone());
        }
    }
    Ok((recordings, frames))
}

impl Frames {
    /// Reads the frames; times are those of the host's recording in the same session, or of the
    /// only recording.
    pub(crate) fn read(&self, recordings: &[Recording]) -> anyhow::Result<StoredFrames<'_>> {
        let unknown_version = || format!("{}: unknown version", self.path.display());
        let stored = Stored::read(&self.bytes).with_context(unknown_version)?;
        let is_its = |candidate: &&(u16, &Recording)| is_host_of(candidate.1.path(), &self.path);
        let all: Vec<(u16, &Recording)> = (0_u16..).zip(recordings).collect();
        let host = match all.as_slice() {
            [only] => Some(only.0),
            many => many.iter().find(is_its).map(|(at, _)| *at),
        };
        Ok(StoredFrames { stored, host })
    }

    /// The guest's name: the NAME of `guest-NAME.hypertrace`.
    pub(crate) fn guest(&self) -> Option<String> {
        guest_named(&self.path).map(str::to_owned)
    }

    /// Their path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

fn is_host_of(recording: &Path, frames: &Path) -> bool {
    let name = recording.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    recording.parent() == frames.parent() && name.starts_with("host.")
}

/// The files `guest-NAME.hypertrace` of a session, by name.
fn in_session(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let failed = || format!("cannot read {}", folder.display());
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).with_context(failed)? {
        let path = entry.with_context(failed)?.path();
        let is_frames = path.extension().is_some_and(|kind| kind == "hypertrace");
        if is_frames && guest_named(&path).is_some() {
            if !begins_with(&path, &STORED_MAGIC) {
                bail!("{}: not a file of frames", path.display());
            }
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn begins_with(path: &Path, magic: &[u8]) -> bool {
    let mut first = vec![0; magic.len()];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut first));
    read.is_ok() && first == magic
}

/// All frames in a guest's memory; the guest may be dead.
fn of_memory(path: &Path) -> Option<Vec<u8>> {
    if !path.is_file() {
        return None;
    }
    let map = Arc::new(SharedMap::open(path, Access::Read).ok()?);
    let mut writer = StoredWriter::new();
    for (cpu, mut ring) in (0_u16..).zip(frame_rings(&map, TakeFrom::Oldest).ok()?) {
        while let Some(frame) = ring.take().or_else(|| ring.take_open()) {
            let words = FrameWords::new(frame.filled, frame.words, frame.is_whole);
            writer.frame(cpu, frame.position, &words);
        }
        if ring.damage() > 0 {
            writer.damage(cpu, ring.damage());
        }
    }
    Some(writer.take())
}
