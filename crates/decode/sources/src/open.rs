//! Detects the type of an input and opens it.

use std::path::Path;

use perfdata::{PerfData, PerfDataError};
use sys::FileMap;
use tracedat::{TraceDat, TraceDatError};

use raw_bytes::bytes;

use crate::open_error::{OpenError, OpenFault};
use crate::recording::Recording;
use crate::unpacked::{self, Unpacked};
use crate::{Damage, ctf, perf_data, raw_pages, text, trace_dat};

/// Opens the recording at `path`: a trace.dat, a perf.data, text from trace-cmd report or perf
/// script (all optionally compressed by gzip or zstd), a folder with raw pages and event formats,
/// or a folder with a CTF trace.
///
/// # Errors
/// If it cannot be read as a recording; damage to parts is in [`Recording::damage`].
pub fn open(path: &Path) -> Result<Recording, OpenError> {
    only(path, open_each(path)?)
}

/// Opens the recordings at `path`; a text can contain several.
///
/// # Errors
/// As for [`open`].
pub fn open_each(path: &Path) -> Result<Vec<Recording>, OpenError> {
    if path.is_dir() {
        if perf_data::is_folder(path) {
            return Err(OpenError::new(path, OpenFault::PerfData(PerfDataError::Folder)));
        }
        // A folder of raw pages has an `events` folder.
        if !path.join("events").is_dir()
            && let Some(trace) = ctf::trace(path)?
        {
            return checked(vec![ctf::open(path, &trace)?]);
        }
        return checked(vec![raw_pages::open(path)?]);
    }
    open_file(path, FileMap::open(path)?)
}

/// Whether a folder is a CTF trace, or a session with a kernel trace.
///
/// # Errors
/// If it is a session with several traces, none of which is from the kernel.
pub fn is_ctf(path: &Path) -> Result<bool, OpenError> {
    Ok(ctf::trace(path)?.is_some())
}

/// Opens a recording in memory; messages call it `name`.
///
/// # Errors
/// As for [`open`].
pub fn open_bytes(name: &Path, bytes: Vec<u8>) -> Result<Recording, OpenError> {
    only(name, open_file(name, FileMap::from(bytes))?)
}

/// The recording at a path, if there is exactly one.
fn only(path: &Path, mut recordings: Vec<Recording>) -> Result<Recording, OpenError> {
    match (recordings.pop(), recordings.len()) {
        (Some(recording), 0) => Ok(recording),
        (last, _) => {
            let names = recordings.iter().chain(&last).map(|each| each.name_in(path)).collect();
            Err(OpenError::new(path, OpenFault::Several { names }))
        }
    }
}

fn open_file(path: &Path, file: FileMap) -> Result<Vec<Recording>, OpenError> {
    let Unpacked { file, fault } = unpacked::unpacked(path, file)?;
    let unpacked_bytes = file.len();
    let opened = open_unpacked(path, file);
    let Some(program) = fault else { return opened };
    match opened {
        Ok(recordings) if recordings.iter().any(|each| each.nothing_readable().is_none()) => {
            let damaged = |recording| damaged_archive(recording, program, unpacked_bytes);
            Ok(recordings.into_iter().map(damaged).collect())
        }
        // The remaining fragment does not show the type of the content.
        Ok(_) | Err(_) => Err(OpenError::new(path, OpenFault::Packed { program, unpacked_bytes })),
    }
}

/// A recording from a compressed file that could not be unpacked completely.
fn damaged_archive(mut recording: Recording, program: &str, unpacked_bytes: usize) -> Recording {
    let what = format!(
        "the compressed file is cut short or damaged: {program} unpacks no more than {} of it; copy it \
         again",
        bytes(unpacked_bytes)
    );
    recording.damage.insert(0, Damage::at(unpacked_bytes as u64, what));
    recording
}

fn open_unpacked(path: &Path, file: FileMap) -> Result<Vec<Recording>, OpenError> {
    let refused = |fault| OpenError::new(path, fault);
    if file.is_empty() {
        return Err(refused(OpenFault::Empty));
    }
    if perf_data::is_perf_data(&file) {
        let perf = PerfData::parse(&file).map_err(|source| refused(OpenFault::PerfData(source)))?;
        return checked(vec![perf_data::recording(path, file, &perf)?]);
    }
    if ctf::is_part(&file) {
        return Err(refused(OpenFault::PartOfCtf));
    }
    if text::is_text(&file) {
        return checked(text::recordings(path, file)?);
    }
    let dat = TraceDat::parse(&file).map_err(|source| {
        refused(match source {
            TraceDatError::NotTraceDat if text::is_printed_in_binary(&file) => {
                OpenFault::PrintedInBinary
            }
            TraceDatError::NotTraceDat => OpenFault::NotARecording,
            source => OpenFault::TraceDat(source),
        })
    })?;
    checked(vec![trace_dat::recording(path, file, dat)])
}

/// Maximum stored pages to read from all streams before the first event is complete: a block per
/// stream.
const FIRST_BLOCKS_BYTES: usize = 32 << 20;

/// Refuses more streams than a 16-bit number can index; with thousands of streams, blocks are
/// small.
fn checked(mut recordings: Vec<Recording>) -> Result<Vec<Recording>, OpenError> {
    let count: usize = recordings.iter().map(|recording| recording.streams.len()).sum();
    if count > usize::from(u16::MAX) {
        let path = recordings.pop().map(|recording| recording.path).unwrap_or_default();
        return Err(OpenError { path, fault: OpenFault::TooManyStreams { count } });
    }
    let most_bytes = FIRST_BLOCKS_BYTES / count.max(1);
    let most_bytes = u32::try_from(most_bytes).unwrap_or(u32::MAX);
    for recording in &mut recordings {
        recording.streams.iter_mut().for_each(|stream| stream.part(most_bytes));
        if let Some(cut) = recording.info.cut {
            recording.damage.insert(0, Damage::at(cut.has_bytes, cut.to_string()));
        }
    }
    Ok(recordings)
}
