//! Why an input cannot be opened as a recording, with the path and the fault separate.

use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};

use perfdata::PerfDataError;
use raw_bytes::{bytes, counted};
use sys::SaidOfFile;
use tracedat::TraceDatError;

/// An input that cannot be opened as a recording.
#[derive(Debug)]
pub struct OpenError {
    /// The file or folder.
    pub path: PathBuf,
    /// The fault.
    pub fault: OpenFault,
}

/// Why an input cannot be opened as a recording.
#[derive(Debug)]
pub enum OpenFault {
    /// The file cannot be read.
    File(sys::OpenFault),
    /// The file is empty.
    Empty,
    /// The file's format is unknown.
    NotARecording,
    /// Output of the kernel's trace file with the option `bin`.
    PrintedInBinary,
    /// A compressed file that is truncated or damaged, without readable content.
    Packed {
        /// The program that uses this compression format.
        program: &'static str,
        /// Number of unpacked bytes.
        unpacked_bytes: usize,
    },
    /// A trace.dat that is too damaged to read.
    TraceDat(TraceDatError),
    /// A perf.data that is too damaged to read.
    PerfData(PerfDataError),
    /// Metadata of a CTF trace that cannot be parsed.
    Ctf(::ctf::CtfError),
    /// A file of a CTF trace; the trace is its folder.
    PartOfCtf,
    /// A file with an unsupported compression format, or that is compressed twice.
    Compressed {
        /// The program that unpacks it.
        program: &'static str,
    },
    /// A text without a trace.
    Text {
        /// Its first line.
        first: String,
        /// What its lines lack.
        lack: String,
    },
    /// A text with several recordings, if only one is allowed.
    Several {
        /// The names of the recordings in the text.
        names: Vec<String>,
    },
    /// Too many streams to index.
    TooManyStreams {
        /// Number of buffers.
        count: usize,
    },
    /// Other reasons: a folder that is not a recording, a file that does not match the recording
    /// next to it, or an input without readable content.
    Refused(String),
}

impl OpenError {
    /// An error for an input.
    #[must_use]
    pub fn new(path: &Path, fault: OpenFault) -> Self {
        Self { path: path.to_owned(), fault }
    }

    /// The fault and its cause, for a message that has already mentioned `named`, which is the
    /// input or a folder that contains it.
    #[must_use]
    pub fn after(&self, named: &Path) -> String {
        let message = self.fault.describe(&self.path);
        match self.path.strip_prefix(named) {
            Ok(inside) if inside.as_os_str().is_empty() => message.without_path(self.source()),
            inside => {
                let text = message.with_path(inside.unwrap_or(&self.path));
                match self.source() {
                    Some(cause) => format!("{text}: {cause}"),
                    None => text,
                }
            }
        }
    }
}

impl OpenFault {
    fn describe(&self, path: &Path) -> SaidOfFile {
        let is = |what: &str| SaidOfFile::Is(what.to_owned());
        match self {
            Self::File(fault) => fault.describe(),
            Self::TraceDat(_) | Self::PerfData(_) => SaidOfFile::Cause,
            Self::Refused(what) => SaidOfFile::Says(what.clone()),
            Self::Empty => is("is empty; was the recording stopped before it wrote anything?"),
            Self::NotARecording => is(NO_RECORDING),
            Self::PrintedInBinary => is(IN_BINARY),
            Self::PartOfCtf => is("is part of a CTF trace; name the folder that contains it"),
            Self::Ctf(_) => is("is cut short or damaged; copy the trace again"),
            Self::Packed { program, unpacked_bytes } => SaidOfFile::Says(format!(
                "cut short or damaged: {program} unpacks {} of it, none of which is readable; copy it again",
                bytes(*unpacked_bytes)
            )),
            Self::Compressed { program } => SaidOfFile::Is(format!(
                "is compressed with {program}; unpack it, or use a pipe: {program} -dc {} | hyperscope VERB -",
                path.display()
            )),
            Self::Text { first, lack } => SaidOfFile::Is(format!(
                "is not a recording: it is a text without trace events: {first}; {lack}. Expected lines such as \"CPU 0/KVM-102 \
                 [000] 42.342151: kvm_exit: reason HLT\", as trace-cmd report, perf script, a kernel's trace file and \
                 hyperscope events print them"
            )),
            Self::Several { names } => SaidOfFile::Is(format!(
                "holds {} ({}); split it by the prefixes of its lines",
                counted(names.len(), "recording", "recordings"),
                names.join(", ")
            )),
            Self::TooManyStreams { count } => {
                SaidOfFile::Is(format!("has {count} per-CPU buffers; at most 65535 can be read"))
            }
        }
    }
}

/// The message for a file of unknown format.
const NO_RECORDING: &str = "is not a recording; expected a trace.dat (trace-cmd record), a perf.data (perf \
    record), or the text of trace-cmd report or perf script, plain or compressed with gzip or zstd; or a \
    folder: a session (NAME.hscope), a CTF trace (LTTng), or ring-buffer pages next to their events folder";
/// The message for the kernel's output with the option `bin`.
const IN_BINARY: &str = "is not a recording: it looks like a kernel's trace file with the option bin, which \
    omits the names of events and most of their fields: turn that option off (trace_options), or record with \
    trace-cmd";

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.fault.describe(&self.path).with_path(&self.path))
    }
}

impl Error for OpenError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.fault {
            OpenFault::File(fault) => fault.cause(),
            OpenFault::TraceDat(source) => Some(source),
            OpenFault::PerfData(source) => Some(source),
            OpenFault::Ctf(source) => Some(source),
            _ => None,
        }
    }
}

impl From<sys::OpenError> for OpenError {
    fn from(error: sys::OpenError) -> Self {
        Self { path: error.path, fault: OpenFault::File(error.fault) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_once() {
        let shown = |path: &str, fault, named: &str| {
            OpenError::new(Path::new(path), fault).after(Path::new(named))
        };
        let missing = || {
            let source = std::io::Error::from(std::io::ErrorKind::NotFound);
            OpenFault::File(sys::OpenFault::Io(source))
        };
        assert!(shown("a.dat", OpenFault::Empty, "a.dat").starts_with("it is empty; was"));
        assert_eq!(shown("a.dat", missing(), "a.dat"), "cannot be read: entity not found");
        assert_eq!(shown("s/a.dat", missing(), "s"), "cannot read a.dat: entity not found");
        assert_eq!(shown("s/a.dat", OpenFault::Refused("gone".into()), "s"), "a.dat: gone");
        assert_eq!(shown("a: b", OpenFault::Refused("gone".into()), "a: b"), "gone");
        assert_eq!(shown("a", OpenFault::Refused("gone".into()), "b"), "a: gone");
        let cut = || OpenFault::TraceDat(TraceDatError::NotTraceDat);
        let cause = TraceDatError::NotTraceDat.to_string();
        assert_eq!(shown("a.dat", cut(), "a.dat"), cause);
        assert_eq!(shown("s/a.dat", cut(), "s"), format!("a.dat: {cause}"));
    }
}
