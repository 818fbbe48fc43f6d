//! Messages to and from the process with the store's client: a little-endian length of four bytes, a JSON
//! document of that length, and the bytes that the document announces.

use std::io::{self, Read, Write};

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Before;
use crate::storage::Entry;

/// Max bytes of a document.
const MAX_BYTES: u32 = 16 << 20;
/// Max objects listed in one document.
pub(super) const MAX_LISTED: usize = 1024;

/// A call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Call {
    /// The object's bytes follow.
    Put {
        name: String,
        bytes: u64,
        before: Before,
    },
    List {
        folder: String,
    },
    Read {
        file: Entry,
        from: u64,
        bytes: u64,
    },
    ReadWhole {
        files: Vec<Entry>,
    },
    Remove {
        names: Vec<String>,
    },
}

/// A reply.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Reply {
    Done {
        version: Option<String>,
    },
    /// More follow unless this is the last.
    Listed {
        files: Vec<Entry>,
        is_last: bool,
    },
    /// The bytes of the objects follow, one after the other.
    Bytes {
        lengths: Vec<u64>,
    },
    Failed {
        kind: Kind,
        why: String,
    },
}

/// Kinds of errors that callers distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Kind {
    NotFound,
    AlreadyExists,
    PermissionDenied,
    InvalidData,
    Other,
}

impl Kind {
    pub(super) fn from_error(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::NotFound,
            io::ErrorKind::AlreadyExists => Self::AlreadyExists,
            io::ErrorKind::PermissionDenied => Self::PermissionDenied,
            io::ErrorKind::InvalidData => Self::InvalidData,
            _ => Self::Other,
        }
    }

    pub(super) fn error(self, why: String) -> io::Error {
        let kind = match self {
            Self::NotFound => io::ErrorKind::NotFound,
            Self::AlreadyExists => io::ErrorKind::AlreadyExists,
            Self::PermissionDenied => io::ErrorKind::PermissionDenied,
            Self::InvalidData => io::ErrorKind::InvalidData,
            Self::Other => io::ErrorKind::Other,
        };
        io::Error::new(kind, why)
    }
}

/// Writes one document.
pub(super) fn write(to: &mut dyn Write, document: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_vec(document)?;
    let length = u32::try_from(text.len()).ok().filter(|length| *length <= MAX_BYTES);
    let length = length.ok_or_else(|| io::Error::other("the document is too long"))?;
    to.write_all(&length.to_le_bytes())?;
    to.write_all(&text)
}

/// Reads one document; `None`: the other end has closed.
pub(super) fn read<T: DeserializeOwned>(from: &mut dyn Read) -> io::Result<Option<T>> {
    let mut length = [0; 4];
    match from.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let length = u32::from_le_bytes(length);
    if length > MAX_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the document is too long"));
    }
    Ok(Some(serde_json::from_slice(&bytes(from, u64::from(length))?)?))
}

/// Reads that many bytes.
pub(super) fn bytes(from: &mut dyn Read, length: u64) -> io::Result<Bytes> {
    let mut all = Vec::new();
    if from.take(length).read_to_end(&mut all)? as u64 != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(all.into())
}
