//! Finds out what an input is and opens it.

use std::path::{Path, PathBuf};

use perfdata::{PerfData, PerfDataError};
use sys::FileMap;
use tracedat::{TraceDat, TraceDatError};

use crate::recording::Recording;
use crate::unpacked::{self, Unpacked};
use crate::{Damage, ctf, perf_data, raw_pages, text, trace_dat};

/// An input that can't be opened as a recording.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file can't be read at all.
    #[error(transparent)]
    File(#[from] sys::OpenError),
    /// The file holds nothing.
    #[error("{} is empty; was the recording stopped before it wrote anything?", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// A file of no kind that is read.
    #[error(
        "{} is not a recording; give a trace.dat (trace-cmd record), a perf.data (perf record), text of \
         trace-cmd report or perf script, each as it is or compressed with gzip or zstd; or a folder: a \
         session (NAME.hscope), a CTF trace (LTTng), or ring-buffer pages next to their events folder",
        path.display()
    )]
    NotARecording {
        /// The file.
        path: PathBuf,
    },
    /// What a kernel's trace file prints with the option `bin`.
    #[error(
        "{} is not a recording: it looks like a kernel's trace file with the option bin, which prints neither the names of \
         events nor what most of them say: turn that off (trace_options), or record with trace-cmd",
        path.display()
    )]
    PrintedInBinary {
        /// The file.
        path: PathBuf,
    },
    /// A compressed file that ends early or is damaged, so that nothing readable comes out of it.
    #[error(
        "{}: cut short or damaged: {program} unpacks {unpacked_bytes} bytes of it, in which nothing can be \
         read; copy it again",
        path.display()
    )]
    Packed {
        /// The file.
        path: PathBuf,
        /// The program whose format it has.
        program: &'static str,
        /// Bytes that could be unpacked.
        unpacked_bytes: usize,
    },
    /// A trace.dat that is damaged beyond use.
    #[error("{}", path.display())]
    TraceDat {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: TraceDatError,
    },
    /// A perf.data that is damaged beyond use.
    #[error("{}", path.display())]
    PerfData {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: PerfDataError,
    },
    /// A CTF trace whose metadata can't be understood.
    #[error("{} is cut short or damaged, copy the trace again", path.display())]
    Ctf {
        /// The metadata.
        path: PathBuf,
        /// What is wrong with them.
        source: ::ctf::CtfError,
    },
    /// A file of a CTF trace, which is a folder.
    #[error("{} is part of a CTF trace; give the folder that it is in", path.display())]
    PartOfCtf {
        /// The file.
        path: PathBuf,
    },
    /// A file that is compressed with a program whose format is not read, or twice.
    #[error(
        "{} is compressed with {program}; unpack it, or give it to a pipe: {program} -dc {} | hyperscope \
         VERB -",
        path.display(), path.display()
    )]
    Compressed {
        /// The file.
        path: PathBuf,
        /// The program that unpacks it.
        program: &'static str,
    },
    /// A folder that is no recording.
    #[error("{}: {what}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What is missing.
        what: String,
    },
    /// A text in which no trace can be found.
    #[error(
        "{} is not a recording: a text, and no trace in it: {first}; {lack}. Expected lines such as \"CPU 0/KVM-102 [000] \
         42.342151: kvm_exit: reason HLT\", as trace-cmd report, perf script, a kernel's trace file and \
         hyperscope events print them",
        path.display()
    )]
    Text {
        /// The file.
        path: PathBuf,
        /// What it begins with.
        first: String,
        /// What its lines lack.
        lack: String,
    },
    /// A text of several recordings, where one is asked for.
    #[error(
        "{} holds {} recordings ({}); split it by what its lines begin with",
        path.display(), names.len(), names.join(", ")
    )]
    Several {
        /// The file.
        path: PathBuf,
        /// What the recordings are called in it.
        names: Vec<String>,
    },
    /// What a collector wrote, which can't be read.
    #[error("{}: {what}", path.display())]
    Collected {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// Samples next to a recording that can't be put on its times.
    #[error("{}: {what}", path.display())]
    Samples {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// More streams than can be known apart.
    #[error("{} has {count} per-CPU buffers; at most 65535 can be read", path.display())]
    TooManyStreams {
        /// The file.
        path: PathBuf,
        /// Buffers it has.
        count: usize,
    },
}

/// Opens the recording at `path`: a trace.dat, a perf.data, text of trace-cmd report or perf script, either of them
/// compressed by gzip or zstd, a folder with bare pages and event formats, or one with a CTF trace.
///
/// # Errors
/// When it can't be read as a recording at all; damage to parts is in [`Recording::damage`].
pub fn open(path: &Path) -> Result<Recording, OpenError> {
    only(path, open_each(path)?)
}

/// Opens the recordings at `path`, which are several where a text was printed of several.
///
/// # Errors
/// As [`open`].
pub fn open_each(path: &Path) -> Result<Vec<Recording>, OpenError> {
    if path.is_dir() {
        if perf_data::is_folder(path) {
            let source = PerfDataError::Folder;
            return Err(OpenError::PerfData { path: path.to_owned(), source });
        }
        // Pages have their events' formats in a folder.
        if !path.join("events").is_dir()
            && let Some(trace) = ctf::trace(path)?
        {
            return checked(vec![ctf::open(path, &trace)?]);
        }
        return checked(vec![raw_pages::open(path)?]);
    }
    open_file(path, FileMap::open(path)?)
}

/// Whether a folder is a CTF trace, or a session with one of the kernel.
///
/// # Errors
/// When it is a session whose traces have to be named one by one.
pub fn is_ctf(path: &Path) -> Result<bool, OpenError> {
    Ok(ctf::trace(path)?.is_some())
}

/// Opens a recording that is in memory; messages call it `name`.
///
/// # Errors
/// As [`open`].
pub fn open_bytes(name: &Path, bytes: Vec<u8>) -> Result<Recording, OpenError> {
    only(name, open_file(name, FileMap::from(bytes))?)
}

/// The only one of the recordings at a path.
fn only(path: &Path, mut recordings: Vec<Recording>) -> Result<Recording, OpenError> {
    match (recordings.pop(), recordings.len()) {
        (Some(recording), 0) => Ok(recording),
        (last, _) => Err(OpenError::Several {
            path: path.to_owned(),
            names: recordings.iter().chain(&last).map(|each| each.name_in(path)).collect(),
        }),
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
        // What is in it can't be known from what is missing.
        Ok(_) | Err(_) => Err(OpenError::Packed { path: path.to_owned(), program, unpacked_bytes }),
    }
}

/// A recording out of a compressed file of which not all could be unpacked.
fn damaged_archive(mut recording: Recording, program: &str, unpacked_bytes: usize) -> Recording {
    let what = format!(
        "the compressed file is cut short or damaged: {program} unpacks no more than {unpacked_bytes} bytes \
         of it; copy it again"
    );
    recording.damage.insert(0, Damage::at(unpacked_bytes as u64, what));
    recording
}

fn open_unpacked(path: &Path, file: FileMap) -> Result<Vec<Recording>, OpenError> {
    if file.is_empty() {
        return Err(OpenError::Empty { path: path.to_owned() });
    }
    if perf_data::is_perf_data(&file) {
        let perf = PerfData::parse(&file)
            .map_err(|source| OpenError::PerfData { path: path.to_owned(), source })?;
        return checked(vec![perf_data::recording(path, file, &perf)?]);
    }
    if ctf::is_part(&file) {
        return Err(OpenError::PartOfCtf { path: path.to_owned() });
    }
    if text::is_text(&file) {
        return checked(text::recordings(path, file)?);
    }
    let dat = TraceDat::parse(&file).map_err(|source| match source {
        TraceDatError::NotTraceDat if text::is_printed_in_binary(&file) => {
            OpenError::PrintedInBinary { path: path.to_owned() }
        }
        TraceDatError::NotTraceDat => OpenError::NotARecording { path: path.to_owned() },
        source => OpenError::TraceDat { path: path.to_owned(), source },
    })?;
    checked(vec![trace_dat::recording(path, file, dat)])
}

/// Stored pages that are read of all streams before any event is complete, at most: of each, a block.
const FIRST_BLOCKS_BYTES: usize = 32 << 20;

/// Refuses more streams than a number of 16 bits names; of thousands, each has small blocks.
fn checked(mut recordings: Vec<Recording>) -> Result<Vec<Recording>, OpenError> {
    let count: usize = recordings.iter().map(|recording| recording.streams.len()).sum();
    if count > usize::from(u16::MAX) {
        let path = recordings.pop().map(|recording| recording.path).unwrap_or_default();
        return Err(OpenError::TooManyStreams { path, count });
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
